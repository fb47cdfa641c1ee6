"""When nobody has written to a session for a moment: what is read then is what stands."""

from __future__ import annotations

from recoveryd.clients.base import Stamp

SETTLE_S = 0.15  # the client cleans up for about 50 ms after an error; an edit made in that time was lost (measured)


def until_quiet(stamp: Stamp, seconds: float, now: float) -> float:
    """Seconds until nothing was written for `seconds`, 0 when it is so. A clock that jumped back is quiet."""
    left = stamp.newest_mtime_ns / 1e9 + seconds - now
    return left if 0 < left <= seconds else 0.0
