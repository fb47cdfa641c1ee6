"""Stop what still runs behind a failure, before the session is repaired."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from recoveryd.clients import Rest, Server, Store
from recoveryd.core import Failure, Refusal, Session, keep_newest

_TIMES, _PAUSE_S = 10, 0.3  # how often a client is asked to stop what has no end
_RESTS = 2  # so often it has to be at rest, one after the other: between two requests it may look so
_LIMIT_S = 3.5  # for all of that while others wait; who answers at once was asked ten times by then


@dataclass
class _SoFar:
    """How often a client was looked at and asked to stop, and was at rest, one time after the other."""

    looks: int = 0
    asked: int = 0
    rests: int = 0

    @property
    def over(self) -> bool:
        """Whether there is no need, or no use, in asking again."""
        nobody = self.looks > 1 and not (self.asked or self.rests)
        return self.rests == _RESTS or self.looks == _TIMES or nobody

    @property
    def said(self) -> str:
        """What came of it, in words."""
        if not self.asked:
            return "if it still runs, stop it there"
        if self.rests == _RESTS:
            return "it was told to stop"
        return f"it was told to stop {self.asked} times, and may go on: stop it there then"


class TurnStopper:
    """Asks clients to stop turns. `on_abort` is called with the session, once before each is asked."""

    def __init__(self, on_abort: Callable[[str], object]) -> None:
        self._on_abort = on_abort
        self._stopped: dict[tuple[str, str, str], bool] = {}  # failures whose turn was stopped: once each
        self._endless: dict[tuple[str, str], _SoFar] = {}  # sessions whose client is yet to be asked again

    def stop(self, store: Store, server: Server, session: Session, failure: Failure) -> bool:
        """Ask the client, once a failure, to stop the turn behind it, if one runs. True if it was asked: what was read
        is old then.

        Not where the failure is not recorded (the client could not send it): there a turn that has just begun looks
        the same.
        """
        if (key := (failure.store, failure.session, failure.message)) in self._stopped:
            return False
        keep_newest(self._stopped, key, value=True)
        self._on_abort(failure.session)
        failed = session.message(failure.message)
        recorded = failed is not None and bool(failed.error)
        return recorded and server.abort(failure, session.directory, lambda: _is_newest(store, failure))

    def end(
        self, server: Server, session: Session, failure: Failure, still: Callable[[], bool], why: Refusal
    ) -> Refusal | None:
        """Ask the client to stop what goes on without end, if `still` says that it does; `why`, with what came of that.

        What comes between two requests the client may not hear: it is asked again while it runs. Others wait meanwhile:
        after some seconds None is returned, and this is to be called again.
        """
        key, until = (session.store, session.id), time.monotonic() + _LIMIT_S
        if key not in self._endless:
            self._on_abort(session.id)
        so_far = self._endless.pop(key, _SoFar())
        while True:
            rest = server.bring_to_rest(failure, session.directory, still)
            so_far.looks += 1
            so_far.asked += rest is Rest.ASKED
            so_far.rests = so_far.rests + 1 if rest is Rest.IDLE else 0
            if so_far.over:
                return Refusal(f"{why.reason}; {so_far.said}")
            if time.monotonic() >= until:
                keep_newest(self._endless, key, so_far)
                return None
            time.sleep(_PAUSE_S)


def _is_newest(store: Store, failure: Failure) -> bool:
    newest = store.load(failure.session).newest
    return newest is not None and newest.id == failure.message
