"""`python -m tests.families [--family F] [--version V] [--shape S] [--every N]`: the matrix of families and shapes."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from tests.e2e.install import DATABASE, JSON_STORE, NEWEST
from tests.families.judged import judged
from tests.families.play import Played, played, shapes_for, staged
from tests.families.table import FAMILIES
from tests.shapes import SHAPES

_RETRIED = {"openrouter"}  # 1.18 tries again for 70 s what it takes for a fault of the server


def main() -> None:
    """Play what is asked for, and print a line a shape that is not as it should be, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", action="append", choices=FAMILIES, help="one or more; all by default")
    parser.add_argument("--version", action="append", help=f"one or more; {NEWEST} by default")
    parser.add_argument("--shape", action="append", help="names that begin so; all by default")
    parser.add_argument("--every", type=int, default=1, help="only every so many shapes")
    parser.add_argument("--without-client", action="store_true", help="by the product's own request, in seconds")
    parser.add_argument("--verbose", action="store_true", help="a line for every shape")
    chosen = parser.parse_args()
    if chosen.without_client:
        _matrix(chosen.family or list(FAMILIES), chosen.every)
        return
    for name in chosen.family or FAMILIES:
        for version in chosen.version or [NEWEST]:
            slow = name in _RETRIED and version not in (JSON_STORE, DATABASE)
            kept = [s for s in shapes_for(version) if any(map(s.name.startswith, chosen.shape or [""]))]
            with (
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
                staged(Path(root), FAMILIES[name], version) as stage,
            ):
                made = played(stage, kept[:: chosen.every], at_once=24 if slow else 1)
            _report(name, version, made, verbose=chosen.verbose)


def _matrix(families: list[str], every: int) -> None:
    """A line a shape: what each family makes of it, in the newest form; the sums of all forms below."""
    print(f"{'shape':44}" + "".join(f"{name:>12}" for name in families))
    sums: Counter[tuple[str, str, str]] = Counter()
    for shape in [shape for shape in SHAPES.values() if not shape.json_only][::every]:
        line = f"{shape.name:44}"
        for name in families:
            for form in ("old", "paged", "new"):
                one = judged(FAMILIES[name], shape, form)
                state = "." if one.first is None else "healed" if one.left is None else "STUCK"
                sums[name, form, state] += 1
            line += f"{state:>12}"
        print(line)
    for name in families:
        for form in ("old", "paged", "new"):
            told = {state: n for (f, v, state), n in sorted(sums.items()) if (f, v) == (name, form)}
            print(f"{name} {form}: {told}")


def _report(family: str, version: str, made: list[Played], *, verbose: bool) -> None:
    sums: Counter[str] = Counter()
    for one in made:
        state = _state(one)
        sums[state] += 1
        if not one.rebuilt and (one.refused is not None or not one.entries):
            sums["wire differs"] += 1
            state += ", wire differs"
        if verbose or state not in ("healed", "accepted"):
            print(f"{family} {version} {state}: {one.tell()}")
    print(f"{family} {version}: {dict(sums)}", flush=True)


def _state(one: Played) -> str:
    if one.refused is not None or one.entries:  # what shows by itself is mended before it is prompted
        return "healed" if one.healed else "STUCK"
    return "accepted" if one.untouched and all(one.again) else "CHANGED"


if __name__ == "__main__":
    main()
