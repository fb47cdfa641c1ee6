"""Take every repair, whoever asks for it, from the write to its end: read back a second later, then told."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from functools import partial

from recoveryd.clients import Store
from recoveryd.core import Event, Outcome, RecoverydError, keep_newest
from recoveryd.diagnose import Case
from recoveryd.heal.recovery import Recovery

CONFIRM_S = 1.0
_RETRY_S = 60.0
_LEFT_S = 5.0  # what was made so long ago, its own process would have read back

Later = Callable[[float, Hashable, Callable[[], object]], object]


class Lifecycle:
    """Makes repairs and reads them back. `ended(case)` is called once for each, when its outcome is certain.

    `later(seconds, key, job)` is how the daemon does things between others; what can't be read back yet is tried again
    every minute. Without it call `finish`: that waits and tries once, and what can't be read back ends as `pending`.
    The ledger knows what was not read back, so that a later process does it (`take_up`).
    """

    def __init__(self, recovery: Recovery, ended: Callable[[Case], object], later: Later | None = None) -> None:
        self._recovery = recovery
        self._ended = ended
        self._later = later
        self._unconfirmed: dict[str, tuple[float, Case]] = {}  # by recovery, with the time when it is due
        self._taken_up: set[str] = set()  # of those that wait, the ones that another process made
        self._told: dict[str, bool] = {}

    def begin(self, case: Case, still: Callable[[], bool] = lambda: True) -> Case:
        """Repair now. The outcome is final unless it is `healed`: then the repair is yet to be read back.

        `still`: as of `Recovery.attempt`.
        """
        case = self._recovery.attempt(case, still)
        if case.outcome is Outcome.HEALED:
            self._wait(CONFIRM_S, case.updated(changes=()))  # a thousand may wait: their originals are in the ledger
        else:
            self._ended(case)
        return case

    def take_up(self, store: Store) -> None:
        """Schedule the repairs of a process that ended before it could read them back and tell of them."""
        for case in self._recovery.unconfirmed(store):
            if case.recovery not in self._told and case.recovery not in self._unconfirmed:
                self._taken_up.add(case.recovery)
                age = time.time() - case.failure.time / 1000
                self._wait(min(max(CONFIRM_S, _LEFT_S - age), _LEFT_S), case)

    def due(self) -> list[str]:
        """List the repairs that are to be read back by now."""
        now = time.monotonic()
        return [name for name, (due, *_) in self._unconfirmed.items() if due <= now]

    def waiting(self) -> list[str]:
        """List all repairs that are yet to be read back."""
        return list(self._unconfirmed)

    def confirm(self, name: str, *, last: bool = False) -> None:
        """Read a repair back and have it told. Errors of the ledger pass: nothing is told before it is certain.

        `last`: it is told also when it can't be read back now, as `pending`.
        """
        if name not in self._unconfirmed:
            return
        _, waiting = self._unconfirmed[name]
        try:
            if name in self._taken_up and self._recovery.confirmed(waiting):  # its own process was only slow
                self._forget(name)
                return
            case = self._recovery.confirm(waiting)
        except RecoverydError:
            self._wait(_RETRY_S, waiting)
            raise
        if case.outcome is Outcome.PENDING and not last:
            self._wait(_RETRY_S, waiting)
            return
        self._forget(name)
        keep_newest(self._told, name, value=True)
        self._ended(case)

    def finish(self) -> None:
        """Wait for all repairs that are to be read back, and read them: several at once cost no more than one."""
        for name in self.waiting():
            self.end(name)

    def end(self, name: str) -> None:
        """Read a repair back for the last time, once the client had its second."""
        due, _ = self._unconfirmed[name]
        time.sleep(min(max(0.0, due - time.monotonic()), CONFIRM_S))
        self.confirm(name, last=True)

    def _forget(self, name: str) -> None:
        del self._unconfirmed[name]
        self._taken_up.discard(name)

    def _wait(self, seconds: float, case: Case) -> None:
        name = case.recovery
        self._unconfirmed[name] = time.monotonic() + seconds, case
        if self._later is not None:
            self._later(seconds, ("confirm", name), partial(self.confirm, name))


def recover_one(recovery: Recovery, case: Case) -> Event:
    """Take one repair through its lifecycle: make it and read it back, which takes a second; return what became of
    it.
    """
    ended: list[Case] = []
    lifecycle = Lifecycle(recovery, ended.append)
    lifecycle.begin(case)
    lifecycle.finish()
    return ended[0].event
