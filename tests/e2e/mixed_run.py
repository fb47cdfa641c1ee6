"""`python -m tests.e2e.mixed_run --version 1.18.33 --sessions 500 --seed 7`: many mixed sessions on one client."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.e2e.crowd import Case, play
from tests.e2e.daemon import healing
from tests.e2e.install import DEFAULT_VERSION
from tests.support.mixed import catalogue, mixed

BATCH = 50


def main() -> None:
    """Play them in batches, one with bound thinking and one without in turn; tell what did not hold, and figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=DEFAULT_VERSION)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="play the session of this number alone")
    asked = parser.parse_args()
    began = time.monotonic()
    cases: list[Case] = []
    rng, of = random.Random(asked.seed), catalogue(asked.version)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with healing(root, asked.version) as (harness, daemon):
            for number, at in enumerate(range(0, asked.sessions, BATCH)):
                batch = [mixed(rng, of) for _ in range(min(BATCH, asked.sessions - at))]
                if asked.only is not None:
                    batch = [made for place, made in enumerate(batch, at) if place == asked.only]
                played = play(harness, daemon, batch, bound=number % 2 == 0)
                for case in (case for case in played if case.problems):
                    print(f"seed {asked.seed} session {at + played.index(case)} bound {number % 2 == 0}: {case.tell()}")
                cases += played
                print(f"{len(cases)} after {time.monotonic() - began:.0f} s", flush=True)
            if "Traceback" in daemon.log:
                print(daemon.log[-3000:])
    print(figures(asked.version, cases))


def figures(version: str, cases: list[Case]) -> str:
    """How many were broken, with how many faults, how many recoveries they took, and of which kinds."""
    broken = [case for case in cases if case.broken]
    first = Counter([*case.refusals, "mended before it was sent"][0] for case in broken)
    return "\n".join(
        (
            f"{version}: {len(cases)} sessions, {len(broken)} refused, {sum(bool(c.problems) for c in cases)} wrong",
            f"faults put in: {dict(sorted(Counter(len(c.generated.faults) for c in broken).items()))}",
            f"recoveries: {dict(sorted(Counter(len(c.entries) for c in broken).items()))}",
            f"first refusal: {dict(first.most_common())}",
            f"edits: {sum(entry['edits'] for case in broken for entry in case.entries)}",
        )
    )


if __name__ == "__main__":
    main()
