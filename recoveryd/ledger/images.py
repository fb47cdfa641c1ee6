"""Choose which images of recoveries may be forgotten, and join those of a second writing with the first ones. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from recoveryd.core import Change

DAY_S = 86_400
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Images:
    """The images of one finished recovery: when it was (seconds since the epoch), their bytes, whether they must
    stay.
    """

    seq: int
    time: float
    size: int
    held: bool


def digest(image: bytes | None) -> bytes | None:
    """Hash an image of the ledger, to recognise it once it is no longer kept; None for no record."""
    return None if image is None else hashlib.sha256(image).digest()


def droppable(images: Iterable[Images], keep_days: float, keep_mb: float, now: float) -> list[int]:
    """List the recoveries (`seq`) whose images the ledger may drop, of `images` oldest first: too old, or beyond
    `keep_mb` (10^6 bytes).

    Images that must stay don't count against `keep_mb`: else they would in time drive out those of each new recovery.
    None is older than those before it, whatever its time: the clock went back then.
    """
    images = list(images)
    total = sum(i.size for i in images if not i.held)
    gone, since = [], 0.0
    for i in images:
        since = max(since, i.time) if i.time <= now else since
        if i.held:
            continue
        if max(since, i.time) < now - keep_days * DAY_S or total > keep_mb * _MB:
            gone.append(i.seq)
            total -= i.size
    return gone


def join_images(first: Iterable[Change], second: Iterable[Change]) -> tuple[Change, ...]:
    """Join the before- and after-images of a recovery that was written (`first`) and is written again because the
    client wrote since.

    Undoing has to lead back to before the first writing wherever that still stands, and else to what the client wrote.
    """
    images = {change.key: change for change in first}
    for change in second:
        old = images.pop(change.key, None)
        ours = old is not None and old.after == change.before
        images[change.key] = Change(change.key, old.before, change.after, old.mode) if old and ours else change
    return tuple(images.values())
