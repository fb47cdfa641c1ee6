"""When nobody has written to a session for a moment: what is read then is what stands."""

from __future__ import annotations

import time
from collections.abc import Callable

from recoveryd.client import Client
from recoveryd.errors import ActiveError
from recoveryd.model import Failure, Session
from recoveryd.stores.base import Stamp, Store

SETTLE_S = 0.15  # the client cleans up for about 50 ms after an error; an edit made in that time was lost (measured)
_PATIENCE_S = 2.0


def until_quiet(stamp: Stamp, seconds: float, now: float) -> float:
    """Seconds until nothing was written for `seconds`, 0 when it is so. A clock that jumped back is quiet."""
    left = stamp.newest_mtime_ns / 1e9 + seconds - now
    return left if 0 < left <= seconds else 0.0


def settled(store: Store, session: str, clock: Callable[[], float] = time.time) -> Stamp:
    """Wait until nobody has written to a session for a moment; its stamp then: while it has that, it stays quiet.

    ActiveError: it is still written to after two seconds.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while wait := until_quiet(stamp := store.stamp(session), SETTLE_S, clock()):
        if time.monotonic() > deadline:
            raise ActiveError("The client is writing to this session: it is left alone until it is quiet.")
        time.sleep(wait)
    return stamp


def stop_turn(store: Store, client: Client, session: Session, failure: Failure) -> bool:
    """Abort what still runs in the session behind its failure.

    True if the client was asked to: what was read before is old then. Not where the failure is not recorded (the client
    could not send it): there a turn that has just begun looks the same.
    """
    recorded = any(message.id == failure.message and message.error for message in session.messages)
    return recorded and client.abort(failure, session.directory, lambda: _is_newest(store, failure))


def _is_newest(store: Store, failure: Failure) -> bool:
    newest = store.load(failure.session).newest
    return newest is not None and newest.id == failure.message
