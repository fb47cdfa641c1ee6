"""docs/json.md as a judge: whether a document has the keys and types that it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

TEXT = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
_TYPES: dict[str, tuple[type, ...]] = {"text": (str,), "integer": (int,), "number": (int, float), "bool": (bool,)}
_ROW = re.compile(r"^\| (?:`([^`]+)`(\??)|(\.\.\.)) \| ([^|]+) \|", re.MULTILINE)
SHAPES = {
    heading.strip(): [(key or more, bool(optional), cell.strip()) for key, optional, more, cell in _ROW.findall(body)]
    for heading, body in re.findall(r"^##+ ([^\n]+)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
}
EXITS = {
    tuple(command.split()): {code: cell.strip() for code, cell in zip((0, 1, 3, 4, 75), cells.split("|"), strict=True)}
    for command, cells in re.findall(r"^\| `([a-z ]+)` \|((?:[^|\n]*\|){4}[^|\n]*)\|$", TEXT, re.MULTILINE)
}
SHAPES["error document"] = SHAPES.pop("When there is no result")
LISTS = {name for name in SHAPES if re.search(rf"^#### {re.escape(name)}\n\nA list", TEXT, re.MULTILINE)}


def faults(name: str, said: Any) -> list[str]:
    """Where what was `said` under this heading is not what the page says; none when it is."""
    if name in LISTS:
        return [fault for n, one in enumerate(said) for fault in _object(name, one, f"{name}[{n}]")]
    return _object(name, said, name)


def _object(shape: str, said: Any, where: str) -> list[str]:
    if not isinstance(said, dict):
        return [f"{where} is no object"]
    keys = dict(_keys(shape))
    found = [f"{where}: {key} is missing" for key, (optional, _) in keys.items() if not optional and key not in said]
    for key, value in said.items():
        _, cell = keys.get(key) or keys.get("*") or (False, "")
        found += _value(cell, value, f"{where}.{key}") if cell else [f"{where}: {key} is not on the page"]
    return found


def _keys(shape: str) -> list[tuple[str, tuple[bool, str]]]:
    rows: list[tuple[str, tuple[bool, str]]] = []
    for key, optional, cell in SHAPES[shape]:
        rows += _keys(cell) if key == "..." else [(key, (optional or key == "*", cell))]
    return rows


def _value(cell: str, value: Any, where: str) -> list[str]:
    if cell == "any" or (value is None and cell.endswith(" or null")):
        return []
    cell = cell.removesuffix(" or null")
    kind, _, inner = cell.partition(" of ")
    if inner:
        if not isinstance(value, {"list": list, "map": dict}[kind]):
            return [f"{where} is no {kind}"]
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [fault for name, one in items for fault in _value(inner, one, f"{where}[{name}]")]
    if cell not in _TYPES:
        return _object(cell, value, where)
    fits = isinstance(value, _TYPES[cell]) and (cell == "bool" or not isinstance(value, bool))
    return [] if fits else [f"{where} is {value!r}; {cell} was to be expected"]
