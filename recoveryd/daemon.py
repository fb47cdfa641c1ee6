"""The daemon: watches the stores, and recovers one session after the other in one thread."""

from __future__ import annotations

import queue
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

from loguru import logger

from recoveryd import paths
from recoveryd.callbacks import Callbacks
from recoveryd.config import Config
from recoveryd.errors import BusyError, RecoverydError
from recoveryd.ledger import Ledger, new_id
from recoveryd.locks import StoreLock, recovery_lock
from recoveryd.model import Event, Failure, Kind, Outcome
from recoveryd.notify import Notifier, Toast
from recoveryd.recovery import Recovery
from recoveryd.report import gave_up_event, headline, notice
from recoveryd.rules import VERSION
from recoveryd.schedule import Schedule
from recoveryd.stores.base import Store
from recoveryd.stores.find import find_stores
from recoveryd.triage import SETTLE_S, Next, Triage
from recoveryd.undo import settle
from recoveryd.watch import Watcher

CONFIRM_S = 1.0
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
        self._unconfirmed: dict[str, Callable[[], Event]] = {}  # by recovery
        self._open: set[tuple[str, str]] = set()  # sessions that the next sweep looks at again
        self._asked: set[str] = set()  # stores that a sweep is asked for
        self._swept: dict[str, float] = {}  # when each store was last swept, time.monotonic()
        self._settled: set[str] = set()  # stores whose cut-off recoveries were brought to an end
        self._locks: dict[Path, StoreLock] = {}
        self._marks: dict[str, dict[str, str]] = {}
        self._said: dict[tuple[str, str], str] = {}
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
        self._notifier = Notifier(enabled=self.config.notify.desktop and not self.config.notify.quiet)
        try:
            with Ledger(paths.ledger_file(self.state_dir)) as self._ledger:
                self._triage = Triage(self._ledger, self.config, lambda store, why: self._say(store, "live", why))
                self._recovery = Recovery(self._ledger, self.config, self.state_dir, callbacks=self._callbacks)
                self._take_locks()
                with Watcher(self.stores.values(), self._told) as watcher:
                    self._watcher = watcher
                    self._loop()
                for recovery in list(self._unconfirmed):  # what was repaired a moment ago is told before we go
                    self._safely("confirm", partial(self._confirm, recovery))
        finally:
            for lock in self._locks.values():
                lock.release()
            self._notifier.close()

    def _loop(self) -> None:
        self._tick_later()
        self._prune()
        for store_id in self.stores:  # the watcher speaks only of those that have messages yet
            self._touched(store_id, None)
        while not self._stopping:
            self._receive()
            while not self._stopping and (job := self._schedule.pop()) is not None:
                self._safely("watch", job)
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

    def _safely(self, about: str, job: Callable[[], object]) -> None:
        """One thing's trouble never stops the others."""
        try:
            job()
        except RecoverydError as error:
            self._say("", about, f"{error.message} {error.hint}".strip())
        except Exception:
            logger.exception("a fault of recoveryd; it goes on")

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
            self._later(store, session)
        elif key not in self._schedule:  # never put off: a client that streams would do so for ever
            wait = self._swept.get(store_id, 0) + SETTLE_S - time.monotonic()
            self._schedule.at(max(wait, 0), key, lambda: self._sweep(store))

    def _later(self, store: Store, session: str, seconds: float = SETTLE_S) -> None:
        """Look at a session once nobody has touched it for a moment."""
        self._schedule.at(seconds, (store.id, session), lambda: self._guarded(store, session))

    def _tick_later(self) -> None:
        self._schedule.at(SWEEP_S, "tick", self._tick)

    def _tick(self) -> None:
        self._tick_later()
        self._watcher.check()
        for problem in self._watcher.problems():
            self._say("watch", problem, problem)
        for store in list(self.stores.values()):
            self._safely(store.id, partial(self._sweep, store, again=True))

    def _prune(self) -> None:
        self._schedule.at(_PRUNE_S, "prune", self._prune)
        limits = self.config.ledger
        with suppress(RecoverydError):
            self._ledger.prune(limits.keep_days, limits.keep_mb, time.time())

    def _take_locks(self) -> None:
        """One daemon a store. A store that another one watches is left to it, unless that is all there is."""
        busy: list[BusyError] = []
        for store in list(self.stores.values()):
            try:
                if store.exists():
                    self._lock(store)
            except BusyError as error:
                busy.append(error)
                del self.stores[store.id]
            except RecoverydError as error:  # one bad store never stops the others; the sweep tries again
                self._say(store.id, "lock", error.message)
        if busy and not any(store.exists() for store in self.stores.values()):
            raise busy[0]
        for refused in busy:
            logger.warning("{}", refused.message)

    def _lock(self, store: Store) -> None:
        """Several stores may share a lock: databases in one folder."""
        lock = self._locks.get(store.lock_path)
        if lock is None or not lock.holds():
            if lock is not None:
                lock.release()
            self._settled -= {other.id for other in self.stores.values() if other.lock_path == store.lock_path}
            self._locks[store.lock_path] = lock = StoreLock(store.lock_path, self.state_dir, store.id)
            lock.acquire()
        if store.id not in self._settled:
            with recovery_lock(self.state_dir, store.id):
                for settled in settle(store, self._ledger):
                    logger.warning("{}: {} ({})", settled.entry.id, settled.detail, settled.outcome)
            self._settled.add(store.id)

    def _sweep(self, store: Store, *, again: bool = False) -> None:
        """Look at every session that changed since it was last found in order; the first one catches up."""
        self._asked.discard(store.id)
        try:
            if store.exists():
                self._lock(store)
                self._sweep_sessions(store, again=again)
            elif not any(other.exists() for other in self.stores.values()):
                places = ", ".join(str(other.root) for other in self.stores.values())
                self._say("", "absent", f"OpenCode is not there yet; waiting for {places}")
        except RecoverydError as error:
            self._say(store.id, "sweep", error.message)
        self._swept[store.id] = time.monotonic()

    def _sweep_sessions(self, store: Store, *, again: bool) -> None:
        first = store.id not in self._marks
        if first:
            self._marks[store.id] = _of_this_version(self._ledger.remembered(store.id))
        known = self._marks[store.id]
        named = store.fresh(known, int((time.time() - self.config.lookback_hours * 3600) * 1000))
        waiting = [(session, "") for id_, session in self._open if again and id_ == store.id]
        seen: set[str] = set()
        fresh: dict[str, str] = {}
        old = 0
        for session, mark in chain(named, waiting):
            if session in seen:
                continue
            seen.add(session)
            if self._stopping:
                return
            verdict = self._guarded(store, session)
            old += verdict == "old"
            if verdict != "open":
                fresh[session] = mark
        marks = {session: mark for session, mark in fresh.items() if mark}
        gone = {session for session in fresh if session in known and session not in marks}
        if marks or gone:
            self._ledger.remember_many(store.id, {s: f"{VERSION}:{mark}" for s, mark in marks.items()}, gone)
            self._marks[store.id] = {s: m for s, m in {**known, **marks}.items() if s not in gone}
        if first:
            logger.info("watching {} ({} sessions)", store.root, len(known.keys() | seen))
            if old:
                hours = self.config.lookback_hours
                logger.info("{} sessions got stuck more than {:g} hours ago: `recoveryd scan` lists them", old, hours)

    def _guarded(self, store: Store, session: str) -> str:
        verdict = "open"
        try:
            verdict = self._look(store, session)
        except RecoverydError as error:
            self._say(store.id, session, f"session {session}: {error.message} {error.hint}".strip())
        except Exception:
            logger.exception("session {}: a fault of recoveryd; the session is left alone", session)
        (self._open.add if verdict == "open" else self._open.discard)((store.id, session))
        return verdict

    def _look(self, store: Store, session: str) -> str:
        """ "open": look again at the next sweep; "old": stuck for too long to be news; "done": nothing more to do."""
        verdict = self._triage.judge(store, session)
        if verdict.next is Next.AGAIN:
            if verdict.wait:
                self._later(store, session, verdict.wait)
            return "open"
        if verdict.next is Next.TOO_OLD:
            return "old"
        failure, kind = verdict.failure, verdict.kind
        if failure is None or kind is None or verdict.next is Next.NOTHING:
            if verdict.reason:
                logger.debug("session {}: {}", session, verdict.reason)
            return "done"
        if verdict.next is Next.RECOVER:
            return self._recover(store, failure, kind)
        event = gave_up_event(new_id(), failure, kind, verdict.reason)
        self._ledger.record(
            event.id,
            failure,
            "",
            kind,
            Outcome.GAVE_UP,
            event.detail,
            session_state=verdict.state,
            rules_version=VERSION,
        )
        self._tell(event)
        return "done"

    def _recover(self, store: Store, failure: Failure, kind: Kind) -> str:
        if self.config.dry_run or not self.config.enabled:
            self._say(store.id, failure.message, f"session {failure.session}: {kind}; nothing is written (dry run)")
            return "open"  # a dry run does not count
        event = self._recovery.attempt(store, failure, kind)
        if event.outcome is Outcome.HEALED:
            self._unconfirmed[event.id] = lambda: self._recovery.confirm(store, failure, event)
            self._schedule.at(CONFIRM_S, ("confirm", event.id), lambda: self._confirm(event.id))
        elif event.outcome is Outcome.PENDING:
            self._say(store.id, failure.message, f"session {failure.session}: {event.detail}")
            return "open"
        else:
            self._tell(event)
        return "done"

    def _confirm(self, recovery: str) -> None:
        event = self._unconfirmed[recovery]()
        del self._unconfirmed[recovery]
        self._tell(event)

    def _tell(self, event: Event) -> None:
        level = "INFO" if event.outcome is Outcome.HEALED else "WARNING"
        logger.log(level, "{}", headline(event))
        self._recovery.on_complete(event)
        if not self._told_before(event):
            self._notifier.send(Toast(*notice(event)))

    def _told_before(self, event: Event) -> bool:
        """What is not repaired (a conversation that is too long, say) is said once a session, not at each prompt."""
        if event.outcome not in (Outcome.REFUSED, Outcome.NOT_UNDERSTOOD):
            return False
        now = (event.store, event.kind, event.outcome, event.detail)
        said = self._ledger.history(50, event.session)
        return any(e.id != event.id and (e.store, e.kind, e.outcome, e.detail) == now for e in said)

    def _say(self, store: str, about: str, text: str) -> None:
        """Log a sentence when it is news, not at every sweep."""
        if self._said.get((store, about)) != text:
            self._said[(store, about)] = text
            logger.warning("{}", text)


def _of_this_version(marks: Mapping[str, str]) -> dict[str, str]:
    """What other rules found in order has to be looked at again."""
    prefix = f"{VERSION}:"
    return {session: mark.removeprefix(prefix) if mark.startswith(prefix) else "" for session, mark in marks.items()}
