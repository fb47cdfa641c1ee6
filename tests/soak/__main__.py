"""The daemon under load. stdout is the JSON; the exit code is 1 if a limit is not held."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.soak.day import Result, a_day
from tests.soak.long import long_session
from tests.soak.sound import sound
from tests.soak.streams import looks_ahead, streams

PARTS = ("day", "streams", "ahead", "sound", "long")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for a day of use, half of it for each store (10)")
    parser.add_argument("--messages", type=int, default=5_000, help="in the long session (5,000)")
    parser.add_argument("--rounds", type=int, default=10, help="of five failures while fifty sessions stream (10)")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--dir", type=Path, help="where to make the stores (default: the usual temporary folder)")
    asked = parser.parse_args(argv)
    result: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="recoveryd-soak-", dir=asked.dir) as folder:
        root = Path(folder).resolve()
        measure: dict[str, Callable[[], Result]] = {
            "day": lambda: a_day(root, asked.minutes * 30),
            "streams": lambda: streams(root, asked.rounds),
            "ahead": lambda: looks_ahead(root, 3),
            "sound": lambda: sound(root, 2_000, 400),
            "long": lambda: long_session(root, asked.messages),
        }
        for part in asked.only or PARTS:
            print(f"{part} ...", file=sys.stderr, flush=True)
            result[part] = measure[part]()
    print(json.dumps(result, indent=2))
    return 0 if all(found["holds"] for found in result.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
