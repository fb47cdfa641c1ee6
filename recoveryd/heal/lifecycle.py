"""What every repair goes through, whoever asks for it: made, read back a second later, told as it stands then."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial

from recoveryd.clients import Store
from recoveryd.core import Event, Failure, Kind, Outcome, RecoverydError, note
from recoveryd.heal.recovery import Recovery

CONFIRM_S = 1.0
_RETRY_S = 60.0
_LEFT_S = 5.0  # what was made so long ago, its own process would have read back

Later = Callable[[float, Hashable, Callable[[], object]], object]


class Lifecycle:
    """Makes repairs and reads them back. `ended(store, failure, event)` hears of each once, when it is certain.

    `later(seconds, key, job)` is how the daemon does things between others; what can't be read back yet is tried again
    every minute. Without it call `finish`: that waits and tries once, and what can't be read back ends as `pending`.
    The ledger knows what was not read back, so that a later process does it (`take_up`).
    """

    def __init__(
        self, recovery: Recovery, ended: Callable[[Store, Failure, Event], object], later: Later | None = None
    ) -> None:
        self._recovery = recovery
        self._ended = ended
        self._later = later
        self._unconfirmed: dict[str, tuple[float, Store, Failure, Event]] = {}  # by recovery; first when it is due
        self._taken_up: set[str] = set()  # of those that wait, the ones that another process made
        self._told: dict[str, bool] = {}

    def begin(
        self, store: Store, failure: Failure, kind: Kind, name: str = "", still: Callable[[], bool] = lambda: True
    ) -> Event:
        """Repair now. What comes of it is final unless it is healed: then it is yet to be read back."""
        event = self._recovery.attempt(store, failure, kind, name, still)
        if event.outcome is Outcome.HEALED:
            # A thousand may wait: their images are in the ledger.
            self._wait(event.id, CONFIRM_S, store, failure, replace(event, changes=()))
        else:
            self._ended(store, failure, event)
        return event

    def take_up(self, store: Store) -> None:
        """Have read back, and told, what another process repaired in a store: it was ended before it could."""
        for failure, event in self._recovery.unconfirmed(store):
            if event.id not in self._told and event.id not in self._unconfirmed:
                self._taken_up.add(event.id)
                age = time.time() - failure.time / 1000
                self._wait(event.id, min(max(CONFIRM_S, _LEFT_S - age), _LEFT_S), store, failure, event)

    def due(self) -> list[str]:
        """The repairs that are to be read back by now."""
        now = time.monotonic()
        return [name for name, (due, *_) in self._unconfirmed.items() if due <= now]

    def waiting(self) -> list[str]:
        """All that are yet to be read back."""
        return list(self._unconfirmed)

    def confirm(self, name: str, *, last: bool = False) -> None:
        """Read a repair back and have it told. Raises what the ledger does: nothing is told before it can be known.

        `last`: it is told also when it can't be read back now, as `pending`.
        """
        if name not in self._unconfirmed:
            return
        _, store, failure, waiting = self._unconfirmed[name]
        try:
            if name in self._taken_up and self._recovery.confirmed(waiting):  # its own process was only slow
                self._forget(name)
                return
            event = self._recovery.confirm(store, failure, waiting)
        except RecoverydError:
            self._wait(name, _RETRY_S, store, failure, waiting)
            raise
        if event.outcome is Outcome.PENDING and not last:
            self._wait(name, _RETRY_S, store, failure, waiting)
            return
        self._forget(name)
        note(self._told, name, value=True)
        self._ended(store, failure, event)

    def finish(self) -> None:
        """Wait for all that is to be read back, and do so: several at once cost no more than one."""
        for name in self.waiting():
            self.end(name)

    def end(self, name: str) -> None:
        """Read one back for the last time, when the client had its second."""
        due, *_ = self._unconfirmed[name]
        time.sleep(min(max(0.0, due - time.monotonic()), CONFIRM_S))
        self.confirm(name, last=True)

    def _forget(self, name: str) -> None:
        del self._unconfirmed[name]
        self._taken_up.discard(name)

    def _wait(self, name: str, seconds: float, store: Store, failure: Failure, event: Event) -> None:
        self._unconfirmed[name] = time.monotonic() + seconds, store, failure, event
        if self._later is not None:
            self._later(seconds, ("confirm", name), partial(self.confirm, name))


def recover_one(recovery: Recovery, store: Store, failure: Failure, kind: Kind, name: str = "") -> Event:
    """Make one repair and read it back, which takes a second; what became of it. `name`: its id, if it has one yet."""
    ended: list[Event] = []
    lifecycle = Lifecycle(recovery, lambda _store, _failure, event: ended.append(event))
    lifecycle.begin(store, failure, kind, name)
    lifecycle.finish()
    [event] = ended
    return event
