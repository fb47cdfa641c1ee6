"""Stop what still runs behind a failure, before the session is repaired."""

from __future__ import annotations

from recoveryd.clients import Server, Store
from recoveryd.core import Failure, Session


def stop_turn(store: Store, server: Server, session: Session, failure: Failure) -> bool:
    """Ask the client to stop the turn behind a failure, if one runs. True if it was asked: what was read is old then.

    Not where the failure is not recorded (the client could not send it): there a turn that has just begun looks the
    same.
    """
    recorded = any(message.id == failure.message and message.error for message in session.messages)
    return recorded and server.abort(failure, session.directory, lambda: _is_newest(store, failure))


def _is_newest(store: Store, failure: Failure) -> bool:
    newest = store.load(failure.session).newest
    return newest is not None and newest.id == failure.message
