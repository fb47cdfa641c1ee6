"""How the daemon is, for the service manager: when it is ready, and a line for people."""

from __future__ import annotations

import time
from collections.abc import Iterable

from recoveryd.ledger import Ledger
from recoveryd.model import Outcome
from recoveryd.report import status_line
from recoveryd.sdnotify import ServiceManager
from recoveryd.stores.base import Store


class Standing:
    """Tells `manager` what changed, and nothing twice."""

    def __init__(self, manager: ServiceManager) -> None:
        self._manager = manager
        self._said: tuple[object, ...] = ()
        self._ready = False

    def unready(self) -> None:
        """All is built anew; `ready` when that is done."""
        self._said, self._ready = (), False

    def ready(self, stores: Iterable[Store], ledger: Ledger, told: int) -> None:
        """Every store was swept. `told`: how many recoveries came to an end so far; the status is news after each."""
        roots = tuple(str(store.root) for store in stores if store.exists())
        now = roots, told, midnight(time.time())
        if now != self._said:
            self._said = now
            self._manager.status(status_line(roots, ledger.count(Outcome.HEALED, now[2])))
        if not self._ready:
            self._ready = True
            self._manager.ready()

    def same_as_before(self) -> None:
        """The configuration was read again, and nothing came of it."""
        if self._ready:
            self._manager.ready()


def midnight(seconds: float) -> float:
    """When the day began, in the user's time."""
    day = time.localtime(seconds)
    return time.mktime((*day[:3], 0, 0, 0, *day[6:8], -1))
