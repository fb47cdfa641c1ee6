"""Stop what still runs behind a failure, before the session is repaired."""

from __future__ import annotations

import time
from collections.abc import Callable

from recoveryd.clients import Server, Store
from recoveryd.core import Failure, Refusal, Session

_TIMES, _PAUSE_S = 10, 0.3  # how often a client is asked to stop what has no end
_RESTS = 2  # so often it has to be at rest, one after the other: between two requests it may look so


def stop_turn(store: Store, server: Server, session: Session, failure: Failure) -> bool:
    """Ask the client to stop the turn behind a failure, if one runs. True if it was asked: what was read is old then.

    Not where the failure is not recorded (the client could not send it): there a turn that has just begun looks the
    same.
    """
    recorded = any(message.id == failure.message and message.error for message in session.messages)
    return recorded and server.abort(failure, session.directory, lambda: _is_newest(store, failure))


def end_turn(server: Server, session: Session, failure: Failure, still: Callable[[], bool], why: Refusal) -> Refusal:
    """Ask the client to stop what goes on without end, if `still` says that it does; `why`, with what came of that.

    What comes between two requests the client may not hear: it is asked again, for some seconds, while it runs.
    """
    asked = rests = 0
    for attempt in range(_TIMES):
        if attempt:
            time.sleep(_PAUSE_S)
        if server.at_rest(failure, session.directory):
            rests += 1
        else:
            rests = 0
            asked += server.abort(failure, session.directory, still, patient=True)
        if rests == _RESTS or (attempt and not asked and not rests):
            break
    if not asked:
        said = "if it still runs, stop it there"
    elif rests == _RESTS:
        said = "it was told to stop"
    else:
        said = f"it was told to stop {asked} times, and may go on: stop it there then"
    return Refusal(f"{why.reason}; {said}")


def _is_newest(store: Store, failure: Failure) -> bool:
    newest = store.load(failure.session).newest
    return newest is not None and newest.id == failure.message
