"""What the lines of a rollout say, given images of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recoveryd.clients.leaves import leaves
from recoveryd.core import Change, Json, json_of

_FRAME = frozenset({"type", "timestamp", "ordinal", "recoveryd"})  # what a line loses of these, nobody wrote


def is_part(key: str) -> bool:
    """Whether the record of this key is a line: all are."""
    return key.startswith("line/")


def said(image: bytes) -> Json | None:
    """What a line carries; None when it is no JSON."""
    line = shown(image)
    carried = line.get("payload") if isinstance(line, dict) else None
    return carried if isinstance(carried, dict) else None


def shown(image: bytes) -> Any:
    """A line as JSON; None when it is none."""
    return json_of(image)


def sole(changes: Sequence[Change]) -> bool:
    """Whether the before-images have a text or number that none of the after-images has."""
    kept = {value for change in changes if change.after is not None for value in leaves(shown(change.after), _FRAME)}
    for change in changes:
        if change.before is None or change.before == change.after:
            continue
        data = shown(change.before)
        if data is None and change.before.strip():
            return True
        if any(value not in kept for value in leaves(data, _FRAME)):
            return True
    return False
