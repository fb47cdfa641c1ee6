"""All measurements in one command. stdout is the JSON, unless `--json FILE` takes it; then it is a table."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from recoveryd.core.version import __version__
from tests.bench.database import databases
from tests.bench.detect import at_once, one_by_one
from tests.bench.harness import Figure
from tests.bench.idle import idle
from tests.bench.neighbours import neighbours
from tests.bench.picture import svg
from tests.bench.rollouts import rollouts
from tests.bench.shorten import plan
from tests.bench.sizes import QUICK, SIZES, Point, measure
from tests.bench.start import starts

PUBLISHED = Path(__file__).parents[2] / "docs" / "figures.md"
PARTS = ("detect", "storm", "start", "idle", "neighbours", "database", "rollouts", "plan")


def main(argv: Sequence[str] | None = None) -> int:
    asked = _parse(argv)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="recoveryd-bench-", dir=asked.dir) as folder:
        root = Path(folder).resolve()
        measure: dict[str, Callable[[], list[Figure]]] = {
            "detect": lambda: [one_by_one(root, asked.runs)],
            "storm": lambda: [at_once(root, asked.at_once)],
            "start": lambda: starts(root, asked.sessions, asked.sessions * 20),
            "idle": lambda: idle(root, asked.idle),
            "neighbours": lambda: [neighbours(root, asked.runs)],
            "database": lambda: databases(root, asked.megabytes * 1_000_000, asked.runs, asked.stream),
            "rollouts": lambda: rollouts(root, asked.rollouts, 10, asked.runs),
            "plan": lambda: plan(500 if asked.quick else 5_000),
        }
        for part in asked.only or ([] if asked.picture else PARTS):
            print(f"{part} ...", file=sys.stderr, flush=True)
            begun = time.monotonic()
            figures += measure[part]()
            print(f"{part}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            for known in published(part):
                print(f"  by docs/figures.md: {known}", file=sys.stderr, flush=True)
        points = _sizes(root, asked) if asked.picture else []
    data: dict[str, Any] = {
        "version": __version__,
        "machine": _machine(),
        "quick": asked.quick,
        "figures": [f.data() for f in figures],
    }
    if asked.picture:
        data["sizes"] = [point.data() for point in points]
        asked.picture.write_text(svg(points))
    if asked.json:
        asked.json.write_text(json.dumps(data, indent=2) + "\n")
        print("\n".join(map(_line, figures)))
    else:
        print(json.dumps(data, indent=2))
    return 0


def published(part: str) -> Iterator[str]:
    """What docs/figures.md says of a part, to be compared with what is measured."""
    for line in PUBLISHED.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and f"tests.bench --only {part}`" in cells[3]:
            yield f"{cells[1]}: {cells[2]}"


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, and show a table")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="measure by the size of the store, and draw it (SVG)"
    )
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help=f"sessions, for the picture {SIZES}")
    parser.add_argument("--quick", action="store_true", help="smaller numbers: about a minute")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--dir", type=Path, help="where to make the stores (default: the usual temporary folder)")
    parser.add_argument("--runs", type=int, help="failures one by one (60; quick: 20)")
    parser.add_argument("--at-once", type=int, help="failures at once (1,000; quick: 200)")
    parser.add_argument("--sessions", type=int, help="sessions at a start, of 20 messages (10,000; quick: 1,000)")
    parser.add_argument("--megabytes", type=int, help="size of a database (1,000; quick: 20)")
    parser.add_argument("--stream", type=float, help="seconds to stream into a database (10; quick: 3)")
    parser.add_argument("--rollouts", type=int, help="threads of Codex of 10 MB each (1,000; quick: 50)")
    parser.add_argument("--idle", type=float, help="seconds to be idle (60, a whole sweep; quick: 5)")
    asked = parser.parse_args(argv)
    usual = {"runs": (60, 20), "at_once": (1000, 200), "sessions": (10_000, 1_000), "idle": (60.0, 5.0)}
    usual |= {"megabytes": (1000, 20), "stream": (10.0, 3.0), "rollouts": (1000, 50)}
    for name, (full, quick) in usual.items():
        if getattr(asked, name) is None:
            setattr(asked, name, quick if asked.quick else full)
    return asked


def _sizes(root: Path, asked: argparse.Namespace) -> list[Point]:
    print("sizes ...", file=sys.stderr, flush=True)
    sizes = tuple(asked.sizes) if asked.sizes else QUICK if asked.quick else SIZES
    return measure(root, sizes, max(2, asked.runs // 3))


def _machine() -> dict[str, Any]:
    return {"system": platform.system(), "release": platform.release(), "python": platform.python_version()}


def _line(figure: Figure) -> str:
    verdict = {True: "holds", False: "MISSED", None: "-"}[figure.holds]
    times = f"{figure.ratio:8.2f} x floor {figure.floor:.2f}" if figure.floor else " " * 8
    target = f"{verdict:7} {figure.limit_of} {figure.limit:g}"
    return f"{figure.name:32} {figure.value:10.2f} {figure.unit:8} {times:32} {target}"


if __name__ == "__main__":
    sys.exit(main())
