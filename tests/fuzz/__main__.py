"""Hostile input: no crash, no hang, nothing outside of the store touched, all as before once it is undone."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.run import STORES, Report, run

_EVERY = 2_000


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000, help="hostile sessions, over all stores (1,000)")
    parser.add_argument("--seed", type=int, help="to do the same again (default: by chance)")
    parser.add_argument("--dir", type=Path, help="where to make the stores (default: the usual temporary folder)")
    parser.add_argument("--store", choices=STORES, help="of this client alone (default: all)")
    asked = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    said = 0

    def progress(report: Report) -> None:
        nonlocal said
        for line in report.broken[said:]:
            print(line, file=sys.stderr, flush=True)
        said = len(report.broken)
        if report.inputs % _EVERY < 100:
            print(f"{report.inputs} inputs, {report.seconds:.0f} s, {said} broken", file=sys.stderr, flush=True)

    report = run(asked.inputs, seed, asked.dir, progress, asked.store)
    print(json.dumps(report.data(), indent=2))
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
