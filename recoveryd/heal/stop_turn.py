"""When nobody has written to a session for a moment: what is read then is what stands."""

from __future__ import annotations

import time
from collections.abc import Callable

from recoveryd.clients import SETTLE_S, Quiet, Server, Stamp, Store
from recoveryd.core import ActiveError, Failure, Session

_PATIENCE_S = 2.0


def settled(store: Store, session: str, clock: Callable[[], float] = time.time) -> Stamp:
    """Wait until nobody has written to a session for a moment; its stamp then: while it has that, it stays quiet.

    ActiveError: it is still written to after two seconds.
    """
    deadline, quiet = time.monotonic() + _PATIENCE_S, Quiet(clock)
    while wait := quiet.wait(session, stamp := store.stamp(session), SETTLE_S):
        if time.monotonic() > deadline:
            raise ActiveError("The client is writing to this session: it is left alone until it is quiet.")
        time.sleep(wait)
    return stamp


def stop_turn(store: Store, server: Server, session: Session, failure: Failure) -> bool:
    """Abort what still runs in the session behind its failure.

    True if the client was asked to: what was read before is old then. Not where the failure is not recorded (the client
    could not send it): there a turn that has just begun looks the same.
    """
    recorded = any(message.id == failure.message and message.error for message in session.messages)
    return recorded and server.abort(failure, session.directory, lambda: _is_newest(store, failure))


def _is_newest(store: Store, failure: Failure) -> bool:
    newest = store.load(failure.session).newest
    return newest is not None and newest.id == failure.message
