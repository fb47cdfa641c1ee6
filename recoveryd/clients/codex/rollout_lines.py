"""What a line of a rollout is, and what may be written over it.

A line keeps its length for ever: Codex remembers where each turn begins as a number of bytes (measured on 0.169.0), so
what is written over a line is padded with spaces before its newline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from recoveryd.core import Json, StoreError

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_TYPE = re.compile(
    rb'\{"timestamp":"[^"\\]{0,40}",(?:"ordinal":\d{1,19},)?"type":"(\w{1,40})","payload":\{"type":"(\w{1,60})"'
)
_NUMBER = re.compile(rb'\{"timestamp": ?"[^"\\]{0,40}", ?"ordinal": ?(\d{1,19})\b')


def types(head: bytes) -> tuple[str, str] | None:
    """Read the type of a rollout's line, and of what it carries, from its first bytes; None where those do not tell."""
    found = _TYPE.match(head)
    return (found[1].decode(), found[2].decode()) if found else None


def number(raw: bytes) -> int | None:
    """Read the number of a rollout's line: of its first bytes, where Codex writes it; None where it has none."""
    found = _NUMBER.match(raw)
    told = int(found[1]) if found else (parse(raw) or {}).get("ordinal") if b'"ordinal"' in raw else None
    return told if isinstance(told, int) else None


def parse(raw: bytes) -> dict[str, Any] | None:
    """Read a rollout's line as Codex does; None for what it passes over: no JSON object, or half of a
    character in it.
    """
    try:
        data = json.loads(raw, parse_constant=_no_constant)
        if _HALF.search(raw):
            dump(data)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _no_constant(name: str) -> Any:
    raise ValueError(name)  # NaN, Infinity: no JSON to the client


def tidied(raw: bytes) -> bytes:
    """Return a rollout's line with spaces in the place of what some editors and crashes leave in it: a byte order mark,
    NULs.
    """
    mark = b"\xef\xbb\xbf"
    return (b"   " + raw[3:] if raw.startswith(mark) else raw).replace(b"\0", b" ")


def payload(line: Mapping[str, Any]) -> Json:
    """Return the payload of a rollout's line; nothing where that is no object."""
    found = line.get("payload")
    return found if isinstance(found, dict) else {}


def dump(data: Mapping[str, Any]) -> bytes:
    """Write a line of a rollout as Codex does: JSON on one line. UnicodeEncodeError: it holds half of a character.
    StoreError.
    """
    try:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=dict, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise
    except (TypeError, ValueError) as error:
        raise StoreError(f"This can't be written as JSON: {error}") from error


def in_length_of(raw: bytes, line: Mapping[str, Any]) -> bytes | None:
    """Write a rollout's `line` as JSON in the length of `raw`, the line that it replaces; None where it is longer."""
    new = dump(line)
    return new + b" " * (len(raw) - len(new)) if len(new) <= len(raw) else None


def first_line_fault(raw: bytes) -> str | None:
    """Tell what of its bytes keeps Codex from reading the first line of a rollout."""
    return None if tidied(raw) == raw else "Codex does not open it: its first line has bytes in it that are no text"


def last_line_fault(first: Json, last: Json) -> bool:
    """Whether the last line of a rollout lacks the number that the first one has."""
    return "ordinal" in first and "ordinal" not in last
