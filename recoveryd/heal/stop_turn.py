"""Stop what still runs behind a failure, before the session is repaired."""

from __future__ import annotations

from collections.abc import Callable

from recoveryd.clients import Server, Store
from recoveryd.core import Failure, Refusal, Session


def stop_turn(store: Store, server: Server, session: Session, failure: Failure) -> bool:
    """Ask the client to stop the turn behind a failure, if one runs. True if it was asked: what was read is old then.

    Not where the failure is not recorded (the client could not send it): there a turn that has just begun looks the
    same.
    """
    recorded = any(message.id == failure.message and message.error for message in session.messages)
    return recorded and server.abort(failure, session.directory, lambda: _is_newest(store, failure))


def end_turn(server: Server, session: Session, failure: Failure, still: Callable[[], bool], why: Refusal) -> Refusal:
    """Ask the client to stop what goes on without end, if `still` says that it does; `why`, with what came of that."""
    asked = server.abort(failure, session.directory, still)
    said = "it was told to stop" if asked else "if it still runs, stop it there"
    return Refusal(f"{why.reason}; {said}")


def _is_newest(store: Store, failure: Failure) -> bool:
    newest = store.load(failure.session).newest
    return newest is not None and newest.id == failure.message
