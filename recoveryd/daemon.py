"""The daemon: watches, sweeps, and does what is due, in one thread."""

from __future__ import annotations

import queue
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from recoveryd import paths
from recoveryd.callbacks import Callbacks
from recoveryd.config import Config
from recoveryd.errors import RecoverydError
from recoveryd.healer import Healer
from recoveryd.ledger import Ledger
from recoveryd.news import News
from recoveryd.notify import Notifier
from recoveryd.patrol import Patrol
from recoveryd.quiet import SETTLE_S
from recoveryd.schedule import Schedule
from recoveryd.stores.base import Store
from recoveryd.stores.find import find_stores
from recoveryd.watch import Watcher

SWEEP_S = 60.0
_PRUNE_S = 86_400.0


class Daemon:
    """Heals the sessions of all stores until `stop`. `callbacks` are a parent system's; the rest is for tests.

    Raises `BusyError` from `run` when another daemon watches the stores.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        callbacks: Callbacks | None = None,
        state_dir: Path | None = None,
        stores: Sequence[Store] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.config = config or Config()
        self.state_dir = paths.make_private(state_dir or paths.state_dir())
        places = self.config.opencode
        self.stores = {
            s.id: s for s in (stores if stores is not None else find_stores(places.data_dirs, places.databases, env))
        }
        self._callbacks = callbacks or Callbacks()
        self._inbox: queue.SimpleQueue[tuple[str, str | None] | None] = queue.SimpleQueue()
        self._schedule = Schedule()
        self._news = News()
        self._asked: set[str] = set()  # stores that a sweep is asked for
        self._swept: dict[str, float] = {}  # when each store was last swept, time.monotonic()
        self._stopping = False

    def stop(self, *_: object) -> None:
        """Ends `run` after the recovery that is under way. Safe in a signal handler and from any thread."""
        self._stopping = True
        self._inbox.put(None)

    def run(self, *, signals: bool = False) -> None:
        """Watch and heal until `stop`; with `signals`, also until SIGTERM or SIGINT."""
        if signals:
            signal.signal(signal.SIGTERM, self.stop)
            signal.signal(signal.SIGINT, self.stop)
        notifier = Notifier(enabled=self.config.notify.desktop and not self.config.notify.quiet)
        try:
            with Ledger(paths.ledger_file(self.state_dir)) as ledger:
                self._work(ledger, notifier)
        finally:
            notifier.close()

    def _work(self, ledger: Ledger, notifier: Notifier) -> None:
        self._healer = Healer(
            self.config, ledger, self.state_dir, self._schedule, notifier, self._news, self._callbacks
        )
        self._patrol = Patrol(
            self.stores,
            ledger,
            self._healer,
            self._news,
            self.state_dir,
            lookback_hours=self.config.lookback_hours,
            stopping=lambda: self._stopping,
        )
        try:
            self._patrol.take_locks()
            with Watcher(self.stores.values(), self._told) as self._watcher:
                self._prune(ledger)
                self._loop()
            self._healer.finish()
        finally:
            self._patrol.release()

    def _loop(self) -> None:
        self._tick_later()
        for store_id in self.stores:  # the watcher speaks only of those that have messages yet
            self._touched(store_id, None)
        while not self._stopping:
            self._receive()
            while not self._stopping and (job := self._schedule.pop()) is not None:
                self._news.safely("work", job)
                if not self._inbox.empty():
                    break

    def _receive(self) -> None:
        """Wait for a touch or for the next job; then take all touches there are, so that many count as one."""
        with suppress(queue.Empty):
            touch = self._inbox.get(timeout=self._schedule.wait())
            while True:
                if touch is not None:
                    self._touched(*touch)
                touch = self._inbox.get_nowait()

    def _told(self, store_id: str, session: str | None) -> None:
        """In the watcher's threads. A database is written to a hundred times a second while a model answers."""
        if session is None:
            if store_id in self._asked:
                return
            self._asked.add(store_id)
        self._inbox.put((store_id, session))

    def _touched(self, store_id: str, session: str | None) -> None:
        store, key = self.stores[store_id], (store_id, "")
        if session is not None:
            self._healer.later(store, session)
        elif key not in self._schedule:  # never put off: a client that streams would do so for ever
            wait = self._swept.get(store_id, 0) + SETTLE_S - time.monotonic()
            self._schedule.at(max(wait, 0), key, lambda: self._sweep(store))

    def _sweep(self, store: Store, *, again: bool = False) -> None:
        self._asked.discard(store.id)
        self._patrol.sweep(store, again=again)
        self._swept[store.id] = time.monotonic()

    def _tick_later(self) -> None:
        self._schedule.at(SWEEP_S, "tick", self._tick)

    def _tick(self) -> None:
        self._tick_later()
        self._watcher.check()
        for problem in self._watcher.problems():
            self._news.say(("watch", problem), problem)
        for store in list(self.stores.values()):
            self._news.safely(store.id, partial(self._sweep, store, again=True))

    def _prune(self, ledger: Ledger) -> None:
        self._schedule.at(_PRUNE_S, "prune", lambda: self._prune(ledger))
        limits = self.config.ledger
        with suppress(RecoverydError):
            ledger.prune(limits.keep_days, limits.keep_mb, time.time())
