"""What the lines of a transcript say, given images of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recoveryd.clients import leaves
from recoveryd.clients.claude_code.transcript import parse
from recoveryd.core import Change, Json

# What a block loses of these, nobody wrote.
_FRAME = frozenset({"id", "type", "tool_use_id", "name", "recoveryd"})


def is_part(key: str) -> bool:
    """Whether the record of this key is a line of the conversation: all are."""
    return "#" in key


def said(image: bytes) -> Json | None:
    """The line as JSON; None when it is none."""
    return parse(image)


def shown(image: bytes) -> Any:
    """All of a line as JSON, for people."""
    return parse(image)


def sole(changes: Sequence[Change]) -> bool:
    """Whether a before-image says something that none of the after-images says."""
    return leaves.sole(changes, parse, _FRAME)
