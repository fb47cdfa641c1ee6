"""What the images of recoveries mean: which may be forgotten, and how a second writing joins the first. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from recoveryd.core.model import Change

# Keys of a part, and of a tool's state, whose values name or place it: what those lose, nobody wrote.
_FRAME = frozenset({"id", "sessionID", "messageID", "callID", "type", "tool", "time", "role", "cost", "tokens"})
_FRAME |= {"parentID", "tail_start_id", "revert"}  # name other records; nothing but ids is ever changed in them
_STATE_FRAME = frozenset({"status", "time"})
_DAY = 86_400
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Images:
    """Those of one finished recovery: when it was (seconds since the epoch), their bytes, whether they must stay."""

    seq: int
    time: float
    size: int
    held: bool

    def may_go(self) -> Self:
        """The same, not held: the user says so."""
        return replace(self, held=False)


def digest(image: bytes | None) -> bytes | None:
    """What stands for an image that is not kept; None for no record."""
    return None if image is None else hashlib.sha256(image).digest()


def sole(change: Change, beside: Iterable[Change] = ()) -> bool:
    """Whether the before-image has content that neither its after-image nor that of a change `beside` it has.

    Content is each text and number but the frame of a part (its ids, type, status and times); of a record that is no
    JSON, the whole. A part that moves is one change that takes it away and one that adds it, hence `beside`.
    """
    return _Left((change, *beside)).lacks(change)


def any_sole(changes: Sequence[Change]) -> bool:
    """Whether any of the changes of a recovery is `sole` beside the others: each image is read once."""
    # Kept although unchanged: the client was about to take it away.
    if any(c.before is not None and c.before == c.after and c.key.startswith(("message/", "part/")) for c in changes):
        return True
    left = _Left(changes)
    return any(left.lacks(change) for change in changes)


class _Left:
    """What the after-images of some changes hold."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._raw = {change.after for change in changes if change.after is not None}
        self._values: set[str | float] = set().union(*(_content(after) or () for after in self._raw))
        self._texts = [value for value in self._values if isinstance(value, str)]

    def lacks(self, change: Change) -> bool:
        """Whether something of the before-image is nowhere among it."""
        if change.before is None:
            return False
        before = _content(change.before)
        if before is None:
            return bool(change.before.strip()) and change.before not in self._raw
        gone = (value for value in before if value not in self._values)
        return any(not (isinstance(v, str) and any(v in text for text in self._texts)) for v in gone)


def droppable(images: Iterable[Images], keep_days: float, keep_mb: float, now: float) -> list[int]:
    """The recoveries (`seq`) whose images go, of `images` oldest first: too old, or beyond `keep_mb` (10^6 bytes).

    What is held does not use up `keep_mb`: else it would in time drive out the images of each new recovery.
    """
    may_go = [i for i in images if not i.held]
    total = sum(i.size for i in may_go)
    gone = []
    for i in may_go:
        if i.time < now - keep_days * _DAY or total > keep_mb * _MB:
            gone.append(i.seq)
            total -= i.size
    return gone


def joined(first: Iterable[Change], second: Iterable[Change]) -> list[Change]:
    """The images of a recovery that was written once (`first`) and is written again where the client wrote since.

    Undoing has to lead back to before the first writing wherever that still stands, and else to what the client wrote.
    """
    images = {change.key: change for change in first}
    for change in second:
        old = images.pop(change.key, None)
        ours = old is not None and old.after == change.before
        images[change.key] = Change(change.key, old.before, change.after, old.mode) if old and ours else change
    return list(images.values())


def _content(raw: bytes) -> set[str | float] | None:
    """None when the record is no JSON object."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    said = said_by_row(data)
    if said is not None:
        return _content(said.encode("utf-8", "surrogateescape"))
    inner = [value for key, value in data.items() if key not in _FRAME and key != "state"]
    state = data.get("state")
    inner += [v for k, v in state.items() if k not in _STATE_FRAME] if isinstance(state, dict) else [state]
    return set(_leaves(inner))


def said_by_row(data: object) -> str | None:
    """The column of a row, given its image as JSON, that holds what the row says; None for a file's image."""
    said = data.get("data") if isinstance(data, dict) and "session_id" in data else None
    return said if isinstance(said, str) else None


def _leaves(data: Any) -> Iterator[str | float]:
    stack = [data]
    while stack:
        value = stack.pop()
        if isinstance(value, (dict, list)):
            stack.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, str):
            if value.strip():
                yield value
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield value
