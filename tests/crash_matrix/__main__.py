"""Every step of a recovery as the last one, for each store. Ends with 1 if anything was found that must not be."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tests.crash_matrix import work
from tests.crash_matrix.cells import ACTIONS, ENDS, Bench, Cell, Scenario
from tests.crash_matrix.places import FAULTS, PLACES


def main(argv: Sequence[str] | None = None) -> int:
    asked = _parse(argv)
    work.alone()
    work.preload()
    started = time.monotonic()
    scenarios = [
        Scenario(*which)
        for which in product(asked.store or PLACES, FAULTS, ACTIONS, ENDS)
        if which[1:3] != ("one", "confirm")
        and which[1] in PLACES[which[0]].faults
        and (PLACES[which[0]].movable or which[3] != "kill+move")
        and (not asked.short or _in_short(*which[1:]))
    ]
    with multiprocessing.get_context("fork").Pool(asked.jobs) as pool:
        tables = pool.map(_table, scenarios, chunksize=1)
    found = dict(zip(scenarios, tables, strict=True))
    cells = [cell for table in tables for cell in table]
    wrong = [cell for cell in cells if cell.wrong]
    if asked.json:
        asked.json.write_text(json.dumps([_data(*item) for item in found.items()], indent=2) + "\n")
    for scenario, table in found.items():
        _print(scenario, table)
    seconds = time.monotonic() - started
    print(f"{len(cells)} cells in {len(found)} scenarios, {len(wrong)} wrong, {seconds:.0f} s")
    return 1 if wrong else 0


def _table(scenario: Scenario) -> list[Cell]:
    """In a process of its own; in memory, where that can be had: a killed process leaves the same behind there."""
    memory = Path("/dev/shm")
    root = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="recoveryd-crash-", dir=root) as folder:
        return Bench(scenario, PLACES[scenario.store](Path(folder).resolve())).cells()


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash_matrix", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every cell there, too")
    parser.add_argument("--store", action="append", choices=PLACES, help="this one alone (default: all)")
    parser.add_argument("--short", action="store_true", help="every step, but not everything that can end it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once (a core each)")
    return parser.parse_args(argv)


def _in_short(faults: str, action: str, end: str) -> bool:
    """Every step of every action killed, and the rest for what happens every day."""
    if faults == "long":
        return (action, end) in (("repair", "kill"), ("undo", "kill"))
    return faults == "many" and (end in ("kill", "kill+move") or (action == "repair" and end != "kill+kill"))


def _data(scenario: Scenario, table: Sequence[Cell]) -> dict[str, Any]:
    return {"scenario": str(scenario), "cells": [cell.data() for cell in table]}


def _print(scenario: Scenario, table: Sequence[Cell]) -> None:
    """Neighbours that came to the same are one line."""
    print(f"\n{scenario} ({len(table)} steps)")
    start = 0
    for place, cell in enumerate(table):
        following = table[place + 1] if place + 1 < len(table) else None
        if following is not None and _same(cell) == _same(following):
            continue
        steps = f"{start}" if place == start else f"{start}-{place}"
        names = " ".join(dict.fromkeys(c.name.replace(" ", "_") for c in table[start : place + 1]))
        print(f"  {steps:>7}  {cell.found or '?':12} ledger: {cell.ledger or '-':18} then: {cell.then:8} {names}")
        if cell.wrong:
            print(f"{'':11}WRONG: {cell.wrong}")
        start = place + 1


def _same(cell: Cell) -> tuple[str, ...]:
    return cell.found, cell.ledger, cell.then, cell.wrong


if __name__ == "__main__":
    sys.exit(main())
