"""Go round the sessions of a store: take its locks, finish what a crash cut off, look at the sessions that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

from loguru import logger

from recoveryd.clients import Store, Whose, is_abandoned, is_store_of
from recoveryd.core import ActiveError, BusyError, RecoverydError, StoreError, command_line
from recoveryd.daemon.healer import Healer
from recoveryd.daemon.log_once import LogOnce
from recoveryd.daemon.store_locks import StoreLocks
from recoveryd.diagnose import Context
from recoveryd.disk import recovery_lock
from recoveryd.heal import finish_interrupted, follow_moved
from recoveryd.ledger import SeenSessions
from recoveryd.providers import VERSION


class Sweeper:
    """Sweeps stores. `stores` is the daemon's own table, which may change. `locks` are released by their owner."""

    def __init__(
        self, context: Context, stores: Mapping[str, Store], locks: StoreLocks, healer: Healer, log_once: LogOnce
    ) -> None:
        config = context.config
        self.stores = stores
        self._context = context
        self._ledger = context.ledger
        self._seen = SeenSessions(context.ledger.file)
        self._healer = healer
        self._log_once = log_once
        self._idle = config.idle
        self._whose = Whose(config, stores.values())
        self._judged_by = f"{VERSION}.{config.digest}:"
        self._lock_dir = context.lock_dir
        self._finished: set[str] = set()  # stores whose cut-off recoveries were brought to an end
        self._locks = locks
        self._marks: dict[str, dict[str, str]] = {}
        self.unusable: dict[str, str] = {}  # why the last sweep could not read a store, or nothing there can be edited

    def take_locks(self) -> None:
        """Take the lock of each store. A store that another daemon watches is left to that one until it ends.

        Raises `BusyError` when there is no other store.
        """
        self.drop_locks()
        busy: list[BusyError] = []
        there = [store for store in self.stores.values() if store.exists()]
        for store in there:
            try:
                self._lock(store)
            except BusyError as error:
                busy.append(error)
            except RecoverydError as error:  # one bad store never stops the others; the sweep tries again
                self._log_once.say((store.id, "lock"), error.message)
            except Exception:
                logger.exception("a fault of recoveryd at {}; it goes on", store.id)
        if busy and len(busy) == len(there):
            raise busy[0]

    def drop_locks(self) -> None:
        """Release the locks of folders that hold none of the stores any more, or were moved away."""
        self._locks.keep({store.lock_path for store in self.stores.values()})

    def sweep(self, store: Store, *, again: bool) -> Iterator[None]:
        """Look at every session that changed since it was last found in order; the first one catches up.

        Yields before each session, so that the caller can end it, or go on with other things first. `again`: also at
        those that are open. Raises nothing of the store's.
        """
        try:
            if again:
                self._finished.discard(store.id)
            self.drop_locks()
            if store.exists():
                self._lock(store)
                due = again or store.id not in self._marks or store.id in self.unusable
                yield from self._sweep_sessions(store, self._healer.open(store) if again else ())
                if due:  # not behind each write of a client
                    self._note_usable(store)
            elif not any(other.exists() for other in self.stores.values()):
                places = ", ".join(str(other.root) for other in self.stores.values())
                missing = " or ".join(dict.fromkeys(self._whose.title(other.id) for other in self.stores.values()))
                self._log_once.say("absent", f"{missing} is not there yet; waiting for {places}")
        except BusyError as error:
            self._log_once.say((store.id, "sweep"), f"{error.message} It is left to that one until it ends.")
        except RecoverydError as error:
            if isinstance(error, StoreError):
                self.unusable[store.id] = error.message
            self._log_once.say((store.id, "sweep"), error.message)

    def _note_usable(self, store: Store) -> None:
        """Note whether a store can be edited, and log why not, also while nothing in it is stuck."""
        reason = None if is_abandoned(store) else store.live()
        if reason is None:
            self.unusable.pop(store.id, None)
            self._log_once.forget((store.id, "edit"))
        else:
            self.unusable[store.id] = reason
            self._log_once.say((store.id, "edit"), reason)

    def _lock(self, store: Store) -> None:
        """Take the lock of a store's folder; where it was another's, finish what that one left."""
        if not self._locks.mine(store):
            self._finished -= {other.id for other in self.stores.values() if other.lock_path == store.lock_path}
        self._locks.take(store, self._idle)
        if store.id not in self._finished:
            follow_moved(store, self._ledger)
            self._finish_interrupted(store)
            self._healer.take_up(store)

    def _finish_interrupted(self, store: Store) -> None:
        """Finish or roll back recoveries that a crash or a full disk interrupted.

        Those of sessions that are retried anyway are skipped: the retry does it.
        """
        waiting = self._healer.open(store)
        cut_off = [entry for entry in self._ledger.pending() if is_store_of(store, entry.store)]
        for session in {entry.session for entry in cut_off}.difference(waiting):
            self._log_once.safely((store.id, session, "cut off"), partial(self._finish_session, store, session))
        if not cut_off or self._healer.held(store) is None:
            self._finished.add(store.id)

    def _finish_session(self, store: Store, session: str) -> None:
        def allowed() -> None:
            held = self._healer.held_there(store, session)
            if held is not None:
                raise ActiveError(f"It was cut off and stays half done: {held}.")

        with recovery_lock(store.lock_path, self._lock_dir, store.id):
            ended = finish_interrupted(store, self._ledger, session, allowed=allowed)
        for one in ended:
            self._log_once.say((store.id, one.entry.id), f"{session} {one.entry.id} {one.outcome}: {one.detail}")
            self._healer.later(store, session)  # it may be as it was remembered, and stuck

    def _sweep_sessions(self, store: Store, waiting: Iterable[str]) -> Iterator[None]:
        first = store.id not in self._marks  # also where one before it broke off: the client was making its tables, say
        known = self._still_good(self._seen.remembered(store.id)) if first else self._marks[store.id]
        named = store.fresh(known, self._context.since_ms)
        fresh: dict[str, str] = {}
        seen: set[str] = set()
        old: dict[str, str] = {}
        for session, mark in chain(named, ((session, "") for session in waiting)):
            if session in seen:
                continue
            seen.add(session)
            yield
            attended = self._healer.attend(store, session)
            if attended == "old":
                old[session] = mark
            elif attended != "open":
                fresh[session] = mark
        self._remember(store, known, fresh)
        known.update(old)  # till the next start: the limit may be raised by then, or the clock set right
        if first:
            count = sum(1 for _ in store.session_ids())  # a database named only those of late
            logger.info("watching {} ({} session{})", store.root, count, "" if count == 1 else "s")
            if old:
                logger.info(
                    "{} got stuck more than {:g} hours ago: `{}` lists {}",
                    "1 session" if len(old) == 1 else f"{len(old)} sessions",
                    self._context.config.lookback_hours,
                    command_line("scan"),
                    "it" if len(old) == 1 else "them",
                )
        self._marks[store.id] = known

    def _remember(self, store: Store, known: dict[str, str], fresh: Mapping[str, str]) -> None:
        marks = {session: mark for session, mark in fresh.items() if mark}
        gone = {session for session in fresh if session in known and session not in marks}
        if marks or gone:
            self._seen.remember(store.id, {s: self._judged_by + mark for s, mark in marks.items()}, gone)
            known.update(marks)  # in place: there may be ten thousand
            for session in gone:
                del known[session]

    def _still_good(self, marks: Mapping[str, str]) -> dict[str, str]:
        """Return the remembered stamps; "" for sessions judged under other rules or another configuration: they are
        looked at again.
        """
        prefix = self._judged_by
        return {s: mark.removeprefix(prefix) if mark.startswith(prefix) else "" for s, mark in marks.items()}
