"""`python -m tests.families [--family F] [--version V] [--shape S] [--every N]`: the matrix of families and shapes.

All shapes of a family take minutes: `--kept FILE --most N` plays the next N that the file has no line of, and
`--figures FILE` prints a table of what it holds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.install import DATABASE, JSON_STORE, NEWEST
from tests.families.judged import PATHS, WANTS_REASONING, judged
from tests.families.play import Played, played, shapes_for, staged, undone
from tests.families.table import EVERY_FAMILY, FAMILIES, UNREASONED
from tests.shapes import SHAPES, Shape, is_old

_RETRIED = {
    "openrouter",
    "openrouter-kimi",
    "openrouter-kimi-default",
}  # 1.18 tries again for 70 s what it takes for a fault of the server
_AT_ONCE = 6  # prompts in flight: half the time that they take one after the other
Line = dict[str, Any]


def main() -> None:
    """Play what is asked for, and print a line a shape that is not as it should be, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", action="append", choices=EVERY_FAMILY, help="one or more; all by default")
    parser.add_argument("--version", action="append", help=f"one or more; {NEWEST} by default")
    parser.add_argument("--shape", action="append", help="names that begin so; all by default")
    parser.add_argument("--every", type=int, default=1, help="only every so many shapes")
    parser.add_argument("--refused", action="store_true", help="only what is refused by the product's own request")
    parser.add_argument("--without-client", action="store_true", help="by the product's own request, in seconds")
    parser.add_argument("--verbose", action="store_true", help="a line for every shape")
    parser.add_argument("--undo", action="store_true", help="take back what healed, in a second session")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="add a line a shape to it; play those it has not")
    parser.add_argument("--most", type=int, metavar="N", help="so many shapes of a family at the most")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="print what was kept as a table, and end")
    chosen = parser.parse_args()
    if chosen.figures:
        _figures(_lines(chosen.figures))
    elif chosen.without_client:
        _matrix(chosen.family or [*FAMILIES, *(UNREASONED.keys() & PATHS.keys())], chosen.every)
    else:
        for name in chosen.family or FAMILIES:
            for version in chosen.version or [NEWEST]:
                _play(name, version, chosen)


def _play(name: str, version: str, chosen: argparse.Namespace) -> None:
    """Play the shapes of a family that are asked for; tell and keep what became of them."""
    done = {line["shape"] for line in _lines(chosen.kept) if (line["family"], line["version"]) == (name, version)}
    asked = [shape for shape in _asked_for(chosen, version) if shape.name not in done]
    if chosen.refused:
        form = "new" if not is_old(version) else "old" if version == JSON_STORE else "paged"
        asked = [shape for shape in asked if judged(EVERY_FAMILY[name], shape, form).first is not None]
    shapes = asked[: chosen.most]
    if not shapes:
        return
    slow = name in _RETRIED and version not in (JSON_STORE, DATABASE)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        staged(Path(root), EVERY_FAMILY[name], version) as stage,
    ):
        at_once = len(shapes) if slow else _AT_ONCE
        made = played(stage, shapes, at_once=at_once)
        healed = [one.shape for one in made if one.healed] if chosen.undo else []
        back = {shape.name: exact for shape, exact in zip(healed, undone(stage, healed, at_once), strict=True)}
    lines = [{**_line(name, version, one), "undone": back.get(one.shape.name)} for one in made]
    for line, one in zip(lines, made, strict=True):
        if (
            chosen.verbose
            or line["state"] not in ("healed", "accepted", "left")
            or False in (line["wire"], line["undone"])
        ):
            odd = ", wire differs" * (line["wire"] is False) + ", undo differs" * (line["undone"] is False)
            print(f"{name} {version} {line['state']}{odd}: {one.tell()}")
    print(f"{name} {version}: {dict(Counter(line['state'] for line in lines))}", flush=True)
    if chosen.kept:
        with chosen.kept.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines)


def _asked_for(chosen: argparse.Namespace, version: str) -> list[Shape]:
    kept = [s for s in shapes_for(version) if any(map(s.name.startswith, chosen.shape or [""]))]
    return kept[:: chosen.every]


def _lines(kept: Path | None) -> list[Line]:
    if kept is None or not kept.exists():
        return []
    return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]


def _line(family: str, version: str, one: Played) -> Line:
    """What is kept of a shape; `wire`: whether the product built what was sent, None where nothing of it was."""
    told = one.rebuilt if one.refused is not None or not one.stuck else None
    if one.stuck:
        state = "healed" if one.healed else "left" if one.left else "STUCK"
    else:
        state = "accepted" if one.untouched and all(one.again) else "CHANGED"
    return {"family": family, "version": version, "shape": one.shape.name, "state": state, "wire": told}


def _figures(lines: list[Line]) -> None:
    """A row a family and version: how many shapes were refused, healed, left, taken as they were, and rebuilt."""
    print("| family | OpenCode | shapes | refused | healed | left | undone | taken, unchanged | request as built |")
    print("|---|---|---|---|---|---|---|---|---|")
    for family, version in sorted({(line["family"], line["version"]) for line in lines}, key=_place):
        own = [line for line in lines if (line["family"], line["version"]) == (family, version)]
        states = Counter(line["state"] for line in own)
        stuck, fine = states["healed"] + states["left"] + states["STUCK"], states["accepted"] + states["CHANGED"]
        back = [line["undone"] for line in own if line.get("undone") is not None]
        wires = [line["wire"] for line in own if line["wire"] is not None]
        told = [f"{sum(back)} of {len(back)}", f"{states['accepted']} of {fine}", f"{sum(wires)} of {len(wires)}"]
        print(
            f"| {' | '.join(map(str, (family, version, len(own), stuck, states['healed'], states['left'], *told)))} |"
        )


def _place(row: tuple[str, str]) -> tuple[int, list[int]]:
    """Where a row stands: the families as in their table, of each the newest client first."""
    return list(EVERY_FAMILY).index(row[0]), [-int(number) for number in row[1].split(".")]


def _matrix(families: list[str], every: int) -> None:
    """A line a shape: what each family makes of it, in the newest form; the sums of all forms below."""
    print("`.`: taken as it is; `healed`: refused, and taken after the repair; `STUCK`: refused after it, too;")
    print("`left`: refused, and left alone, since reasoning would have to be made up (docs/limits.md).\n")
    wide = {name: max(12, len(name) + 2) for name in families}
    print(f"{'shape':44}" + "".join(name.rjust(wide[name]) for name in families))
    sums: Counter[tuple[str, str, str]] = Counter()
    for shape in [shape for shape in SHAPES.values() if not shape.json_only][::every]:
        line = f"{shape.name:44}"
        for name in families:
            for form in ("old", "paged", "new"):
                one = judged(EVERY_FAMILY[name], shape, form)
                stuck = "left" if name in UNREASONED and one.left == WANTS_REASONING else "STUCK"
                state = "." if one.first is None else "healed" if one.left is None else stuck
                sums[name, form, state] += 1
            line += state.rjust(wide[name])
        print(line)
    for name in families:
        for form in ("old", "paged", "new"):
            told = {state: n for (f, v, state), n in sorted(sums.items()) if (f, v) == (name, form)}
            print(f"{name} {form}: {told}")


if __name__ == "__main__":
    main()
