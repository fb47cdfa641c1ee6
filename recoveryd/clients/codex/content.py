"""What the lines of a rollout say, given images of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recoveryd.clients import leaves
from recoveryd.core import Change, Json, json_of

# What a line loses of these, nobody wrote.
_FRAME = frozenset({"type", "timestamp", "ordinal", "id", "role", "name", "call_id", "turn_id", "recoveryd"})


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
    """Whether a before-image says something that none of the after-images says."""
    return leaves.sole(changes, shown, _FRAME)
