"""What the lines of a transcript say, given images of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recoveryd.clients.claude_code.transcript import parse
from recoveryd.clients.leaves import leaves
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
    after = [parse(change.after) for change in changes if change.after is not None]
    kept = {value for image in after for value in leaves(image, _FRAME)}
    texts = [value for value in kept if isinstance(value, str)]
    for change in changes:
        if change.before is None or change.before == change.after:
            continue
        before = parse(change.before)
        if before is None:
            return True
        lost = [value for value in leaves(before, _FRAME) if value not in kept]
        if any(not isinstance(value, str) or not any(value in text for text in texts) for value in lost):
            return True
    return False
