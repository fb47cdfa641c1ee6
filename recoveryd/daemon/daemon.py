"""The daemon: watches, sweeps, and does what is due, in one thread; all of it anew for another configuration."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from loguru import logger

from recoveryd.clients import SETTLE_S, Config, Store, Whose, find_stores
from recoveryd.core import RecoverydError, ReplacedError
from recoveryd.daemon.figures import Figures
from recoveryd.daemon.healer import Healer
from recoveryd.daemon.log_once import LogOnce
from recoveryd.daemon.own_process import SETTLED_S, OwnCode, handle_signals
from recoveryd.daemon.schedule import Schedule
from recoveryd.daemon.sd_notify import SdNotify, ServiceStatus
from recoveryd.daemon.store_locks import StoreLocks
from recoveryd.daemon.sweeper import Sweeper
from recoveryd.diagnose import Context
from recoveryd.disk import REPLACED, RunNote, private_files
from recoveryd.ledger import KnownStores, Ledger, Upkeep
from recoveryd.settings import paths
from recoveryd.tell import Callbacks
from recoveryd.watch import Watcher

SWEEP_S = 60.0
TURN_S = 0.05  # a sweep goes on for so long before whatever is due gets its turn: a failure in another store, say
_SOON_S = 1.0  # until it is told what is not watched: what is stuck at a start comes first
_PRUNE_S = 86_400.0
_CLOCK_S = 3600.0  # until what is old is told by the clock: at a start it may be years ahead, until NTP sets it right


class Daemon:
    """Heals the sessions of all stores until `stop`. `callbacks` are a parent system's; the rest is for tests.

    `load` reads the configuration again for `reload` (SIGHUP); what it raises is logged, and the old one stays.
    `started`: when the program began that this one goes on for; None: it begins with `run`.
    `run` raises `BusyError` when another daemon watches the stores, and `ReplacedError` when recoveryd was upgraded,
    once the new code is whole, or was removed some minutes ago.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        callbacks: Callbacks | None = None,
        state_dir: Path | None = None,
        stores: Sequence[Store] | None = None,
        env: Mapping[str, str] | None = None,
        load: Callable[[], Config] | None = None,
        lock_dir: Path | None = None,
        started: float | None = None,
    ) -> None:
        self._started = started
        self._lock_dir = lock_dir  # of stores that nobody else has; None: the user's one place
        self.config = config or Config()
        self.state_dir = private_files.make_folder(state_dir or paths.state_dir())
        self._given, self._env, self._load = stores, env, load
        self.stores = self._find()
        self._callbacks = callbacks or Callbacks()
        self._inbox: queue.SimpleQueue[tuple[str, str | None] | Callable[[], object] | None] = queue.SimpleQueue()
        self._schedule = Schedule(self._inbox.put)
        self._log_once = LogOnce()
        place = lock_dir or paths.lock_dir(self.state_dir)
        self._locks, self._note = StoreLocks(place), RunNote(place)
        self._touches = 0  # how often the watcher told of a store
        self._asked: set[str] = set()  # stores that a sweep is asked for
        self._swept: dict[str, float] = {}  # when each store was last swept, time.monotonic()
        self._sweeping: dict[str, Iterator[None]] = {}  # the sweep of each store that is under way
        self._late: dict[str, str] = {}  # as in its note (`LockOwner.late`)
        self._unusable: dict[str, str] = {}  # the same
        self._tell(SdNotify({}))
        self._code = OwnCode()
        self._stopping = self._renewing = self._replaced = False

    def _find(self) -> dict[str, Store]:
        found = find_stores(self.config, self._env) if self._given is None else self._given
        return {store.id: store for store in found}

    def _tell(self, manager: SdNotify) -> None:
        self._manager, self._service_status = manager, ServiceStatus(manager)
        self._tick_s = min(SWEEP_S, (manager.watchdog_s or 3 * SWEEP_S) / 3)

    def stop(self, *_: object) -> None:
        """End `run` after the recovery that is under way. Safe in a signal handler and from any thread."""
        self._stopping = True
        self._inbox.put(None)

    def reload(self) -> None:
        """Read the configuration again, after what is under way. Safe in a signal handler and from any thread."""
        self._renewing = True
        self._inbox.put(None)

    def run(self, *, signals: bool = False) -> None:
        """Watch and heal until `stop`.

        With `signals` the process is ours: it ends at SIGTERM and SIGINT, does `reload` at SIGHUP, and tells the
        service manager that started it how it is.
        """
        if signals:
            handle_signals(self.stop, self.reload, lambda: self._inbox.put(None))
            self._tell(SdNotify(self._env))
        try:
            with Ledger(paths.ledger_file(self.state_dir)) as ledger:
                ledger.file.replaced = partial(_tell_replaced, ledger.file.path)
                self._work(ledger, self._started)
                while not (self._stopping or self._replaced):  # a new configuration
                    self.stores = self._find()
                    self._work(ledger)
        finally:
            self._note.release()
            self._locks.release()
        if self._replaced and not self._stopping:
            raise ReplacedError("It was upgraded, or removed, while it ran.", "Start it again.")

    def _work(self, ledger: Ledger, started: float | None = None) -> None:
        """Watch and heal until `stop`, or until there is another configuration."""
        self._whose = Whose(self.config, self.stores.values(), KnownStores(ledger.file).clients())
        self._begin_anew()
        context = self._context(ledger, started)
        callbacks = self._callbacks.then(self._figures.callbacks)
        self._healer = Healer(context, self._locks, self._schedule, self._log_once, callbacks)
        self._sweeper = Sweeper(context, self.stores, self._locks, self._healer, self._log_once)
        try:
            self._say_note(self.config.idle)
            self._sweeper.take_locks()
            with Watcher(self.stores.values(), self._told) as self._watcher:
                self._prune(ledger, math.inf)
                self._loop(context)
            renewed = None if self._stopping else self._context(ledger, context.started)
            self._healer.finish(renewed, leave=self._replaced)
        finally:
            self._figures.close()
            self._healer.close()

    def _context(self, ledger: Ledger, started: float | None = None) -> Context:
        return Context(ledger, self.config, self.state_dir, lock_dir=self._lock_dir, started=started)

    def _begin_anew(self) -> None:
        """Forget what was due, asked for or told by the configuration before."""
        self._schedule = Schedule(self._inbox.put)
        self._asked.clear()
        self._swept.clear()
        self._sweeping.clear()
        self._late, self._unusable = {}, {}
        self._service_status.unready()
        self._figures = Figures(self.config, self._whose.title)

    def _loop(self, context: Context) -> None:
        self._tick_later()
        self._schedule.at(_SOON_S, "watch", partial(self._log_once.safely, "watch", self._say_late))
        for store_id in self.stores:  # the watcher speaks only of those that have messages yet
            self._touched(store_id, None)
        while not (self._stopping or self._replaced or self._renewed()):
            self._receive()
            while not (self._stopping or self._upgraded()) and (job := self._schedule.pop()) is not None:
                self._log_once.safely("work", job)
                self._log_once.safely("status", partial(self._speak, context))
                if not self._inbox.empty():
                    break
        if self._stopping:
            self._manager.stopping()

    def _upgraded(self) -> bool:
        """Whether recoveryd was upgraded. Then nothing is done any more; waits for the new code to be whole."""
        if self._code.replaced() and not self._replaced:
            self._replaced = True
            says = "recoveryd was upgraded, or removed: nothing is repaired until it has started anew"
            logger.warning("{}", says)
            self._manager.status(says)
            self._say_note(REPLACED)
            self._locks.say(REPLACED)
            while not (self._stopping or self._code.settled()):
                with suppress(queue.Empty):
                    self._inbox.get(timeout=SETTLED_S)
                self._alive()
        return self._replaced

    def _renewed(self) -> bool:
        """Whether a new configuration was asked for, and it is sound and differs."""
        if not self._renewing or self._load is None:
            return False
        self._renewing = False
        self._manager.reloading()
        try:
            config = self._load()
        except RecoverydError as error:
            logger.error("The configuration is refused, and the one before stays:\n{}", error)
        else:
            if config != self.config:
                logger.info("the configuration was read again and has changed")
                self.config = config
                return True
            logger.info("the configuration was read again; nothing in it has changed")
        self._service_status.same_as_before()
        return False

    def _speak(self, context: Context) -> None:
        """Tell the service manager the status, and `status` what can't be used, after each job."""
        self._alive()
        if self._sweeper.unusable != self._unusable:
            self._unusable = dict(self._sweeper.unusable)
            self._say_note(self.config.idle)
        if self.stores.keys() <= self._swept.keys():
            mine = [store for store in self.stores.values() if self._locks.mine(store)]
            self._service_status.ready(mine, self._sweeper.unusable, context.ledger, self._healer.told)
            wait = self._figures.tell(context, self.stores.values(), self._healer.told, self._touches)
            if wait is not None:
                self._schedule.at(wait, "figures", lambda: None)  # they are told behind each job

    def _alive(self) -> None:
        """Tell the service manager that this thread lives."""
        if self._watcher.alive():
            self._manager.alive()

    def _receive(self) -> None:
        """Wait for a touch or for the next job; then take all touches there are, so that many count as one."""
        with suppress(queue.Empty):
            touch = self._inbox.get(timeout=self._schedule.wait())
            while True:
                if isinstance(touch, tuple):
                    self._touched(*touch)
                elif touch is not None:
                    self._schedule.at(0, touch, touch)
                touch = self._inbox.get_nowait()

    def _told(self, store_id: str, session: str | None) -> None:
        """Take a touch from the watcher. In its threads: a database is written to a hundred times a second while a
        model answers.
        """
        if session is None:
            if store_id in self._asked:
                return
            self._asked.add(store_id)
        self._inbox.put((store_id, session))

    def _touched(self, store_id: str, session: str | None) -> None:
        store, key = self.stores.get(store_id), (store_id, "")
        if store is None:  # said by the watcher of the configuration before
            return
        self._touches += 1
        if session is not None:
            self._healer.later(store, session)
        elif key not in self._schedule:  # never put off: a client that streams would do so for ever
            wait = self._swept.get(store_id, 0) + SETTLE_S - time.monotonic()
            self._sweep_later(store, max(wait, 0))

    def _sweep_later(self, store: Store, seconds: float = 0, *, again: bool = False) -> None:
        self._schedule.at(seconds, (store.id, ""), partial(self._sweep, store, again=again))

    def _sweep(self, store: Store, *, again: bool) -> None:
        """Begin a sweep; while one is under way, the next begins behind it."""
        if store.id in self._sweeping:
            self._sweep_later(store, TURN_S, again=again)
            return
        self._asked.discard(store.id)
        self._sweeping[store.id] = self._sweeper.sweep(store, again=again)
        self._go_on(store)

    def _go_on(self, store: Store) -> None:
        """Go on with a sweep until it ends, its turn is over or the daemon stops."""
        until, unfinished = time.monotonic() + TURN_S, False
        try:
            unfinished = any(self._stopping or time.monotonic() >= until for _ in self._sweeping[store.id])
        finally:
            if unfinished:
                self._schedule.at(0, ("sweep", store.id), partial(self._go_on, store))
            else:
                del self._sweeping[store.id]
                self._swept[store.id] = time.monotonic()

    def _tick_later(self) -> None:
        self._schedule.at(self._tick_s, "tick", self._tick)

    def _tick(self) -> None:
        self._tick_later()
        self._log_once.safely("places", self._find_again)
        self._watcher.check()
        self._log_once.safely("watch", self._say_late)
        for store in self.stores.values():
            self._sweep_later(store, again=True)

    def _say_late(self) -> None:
        """Tell, in the log and in the note for `status`, what keeps writes from being noticed at once."""
        found = self._watcher.problems()
        for problem in found:
            self._log_once.say(("watch", problem), problem)
        late = {store: problem for problem, stores in found.items() for store in stores}
        if late != self._late:
            self._late = late
            self._say_note(self.config.idle)

    def _say_note(self, idle: str) -> None:
        self._note.say(self.stores, idle, self._late, self._unusable)

    def _find_again(self) -> None:
        """Find stores that are new, and symlinks that were pointed elsewhere."""
        found = self._find()
        if found.keys() != self.stores.keys():
            now = {key: self.stores.get(key, store) for key, store in found.items()}
            self.stores.clear()
            self.stores.update(now)
            self._say_note(self.config.idle)
            self._sweeper.drop_locks()
            self._watcher.watch(now.values())

    def _prune(self, ledger: Ledger, keep_days: float) -> None:
        """Drop originals beyond the limits, now and each day; at a start those beyond that of bytes alone."""
        limits, whose = self.config.ledger, self._whose
        next_s = _CLOCK_S if keep_days == math.inf else _PRUNE_S
        self._schedule.at(next_s, "prune", partial(self._prune, ledger, limits.keep_days))
        with suppress(RecoverydError):
            Upkeep(ledger, whose.sole, whose.quoting_titles).prune(keep_days, limits.keep_mb, time.time())


def _tell_replaced(ledger: Path) -> None:
    logger.warning(
        "The ledger {} was removed or replaced: from now on the one that is there is used, or a new one. What was "
        "repaired before can be undone with the one before alone.",
        ledger,
    )
