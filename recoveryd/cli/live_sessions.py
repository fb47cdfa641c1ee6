"""Follow the sessions of all stores as they run, fail and are healed: what `recoveryd watch` shows. Writes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from recoveryd.cli.common import known_ledger
from recoveryd.cli.findings import Finding, finding_of
from recoveryd.clients import Config, SessionStatus, Store, is_abandoned, root_title
from recoveryd.core import (
    UNANSWERED,
    UNDONE,
    UNREADABLE,
    Change,
    Entry,
    NotFoundError,
    Outcome,
    RecoverydError,
    command_line,
)
from recoveryd.diagnose import Context, hangs_on_asker
from recoveryd.doctor import quick_status
from recoveryd.heal import Recovery, find_store
from recoveryd.ledger import Ledger
from recoveryd.settings import ignored_mark, paths

_STORES_S = 10.0  # how often stores that are new are looked for
_UNDER_WAY_S = 5.0  # what may change without a write is believed so long, and then asked again and again


class State(StrEnum):
    """What a live session is doing, in the word that is shown."""

    RUNNING = "running"
    WAITING = "waiting"  # for an answer to its newest prompt
    ANSWERED = "answered"
    ERROR = "error"  # one that is not about the history
    STUCK = "stuck"
    HEALED = "healed"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A session with its newest state. `at`: when it was last written to, or repaired, in seconds since the epoch.

    `recovery`: the id of the newest one that changed it and was not undone; "" when there is none.
    """

    store: Store
    session: str
    title: str
    state: State
    at: float
    says: str = ""
    recovery: str = ""


class LiveSessions:
    """The sessions that changed within `lookback_hours`, the newest first. For one thread.

    `stores` lists the stores that are there now, `reread` is the configuration as it is now: `config` is as it was read
    last. What can't be read is in `problems`, by the id of the store.
    """

    def __init__(
        self,
        config: Config,
        stores: Callable[[], Sequence[Store]],
        clock: Callable[[], float] = time.time,
        reread: Callable[[], Config] | None = None,
    ) -> None:
        self.config, self._find_stores, self._clock = config, stores, clock
        self._reread = reread or (lambda: config)
        self._stores: dict[str, Store] = {}
        self._listed = float("-inf")
        self._marks: dict[str, dict[str, str]] = {}
        self._rows: dict[tuple[str, str], LiveSession] = {}
        self._due: dict[str, set[str]] = {}  # sessions to be looked at, by store
        self._under_way: dict[tuple[str, str], float] = {}  # sessions that wait for others, by when they were looked at
        self._standing: dict[tuple[str, str], str] = {}  # what the ledger said of them then
        self._ignored = ""  # as it was at the last look
        self.problems: dict[str, str] = {}

    def refresh(self) -> list[LiveSession]:
        """Look at what changed since the last call, and list all of it anew."""
        now = self._clock()
        if now - self._listed >= _STORES_S:
            self._note_config()
            self._list_stores()
            self._listed = now
        self._note_ignored()
        with known_ledger() as ledger:
            recovery = Recovery(Context(ledger, self.config, paths.state_dir(), clock=self._clock))
            since_ms = recovery.context.since_ms
            for store in self._stores.values():
                try:
                    self._refresh(store, recovery, since_ms)
                    self.problems.pop(store.id, None)
                except RecoverydError as error:
                    self.problems[store.id] = error.message
        return sorted((row for row in self._rows.values() if row.at * 1000 >= since_ms), key=lambda row: -row.at)

    def _list_stores(self) -> None:
        found = {store.id: store for store in self._find_stores() if not is_abandoned(store)}
        self._stores = {name: self._stores.get(name, store) for name, store in found.items()}  # each has its place
        for of_stores in (self._marks, self._due, self.problems):
            for gone in of_stores.keys() - found.keys():
                del of_stores[gone]
        for of_sessions in (self._rows, self._under_way, self._standing):
            for key in [key for key in of_sessions if key[0] not in found]:
                del of_sessions[key]

    def _note_config(self) -> None:
        """Go by another configuration once there is one: `ignore` and others say what becomes of a session."""
        config = self._reread()
        if config != self.config:
            self.config = config
            self._look_again()

    def _note_ignored(self) -> None:
        """Have all sessions looked at again once their user ignored others: nothing is written to them."""
        said = ignored_mark(paths.state_dir())
        if said != self._ignored:
            self._look_again()
        self._ignored = said

    def _look_again(self) -> None:
        for store, session in self._rows:
            self._due.setdefault(store, set()).add(session)

    def idle(self) -> str:
        """Tell why nothing is repaired now, as a line; "" where all is watched and repaired."""
        stores, state = list(self._stores.values()), paths.state_dir()
        found = quick_status(self.config, stores, state, paths.config_file(), self._clock())
        if not found.running:
            return f"Nothing is repaired, for no recoveryd runs: {command_line('start')}"
        if found.watching and found.pause is not None:
            return f"Nothing is repaired: {command_line('unpause')}"
        return f"Nothing is repaired: {found.unrepaired}" if found.unrepaired else ""

    def changes(self, row: LiveSession) -> list[Change]:
        """Return the changes that the session's recovery made; none where the ledger has no more of them."""
        with known_ledger() as ledger:
            return ledger.changes(row.recovery) if row.recovery else []

    def _refresh(self, store: Store, recovery: Recovery, since_ms: int) -> None:
        known = self._marks.setdefault(store.id, {})
        changed = dict(store.fresh(known, since_ms))
        for session, mark in changed.items():
            known.pop(session, None)
            known.update({session: mark} if mark else {})
        newest = self._newest(store, recovery.context.ledger)
        due = self._due.setdefault(store.id, set())
        due |= changed.keys() | self._retold(store, newest) | self._waited(store)
        for session in [*due]:
            row = self._row(store, session, newest.get(session), recovery, since_ms)
            if row is None:
                self._rows.pop((store.id, session), None)
                self._standing.pop((store.id, session), None)
            else:
                self._rows[store.id, session] = row
                self._standing[store.id, session] = _standing(newest.get(session))
            due.discard(session)  # not where the look failed: then it is made again

    def _newest(self, store: Store, ledger: Ledger) -> dict[str, Entry]:
        """Return the newest recovery of each session of a store that stands; of others the newest one."""
        recent = ledger.history(200)
        mine = {of for of in {entry.store for entry in recent} if find_store((store,), ledger, of)}
        found = {entry.session: entry for entry in reversed(recent) if entry.store in mine}
        return found | {of.session: of for of in reversed(recent) if of.store in mine and _standing(of)}

    def _retold(self, store: Store, newest: dict[str, Entry]) -> set[str]:
        """List the sessions of which the ledger says otherwise than is shown."""
        return {
            session
            for session, entry in newest.items()
            if self._standing.get((store.id, session), _standing(entry)) != _standing(entry)
        }

    def _waited(self, store: Store) -> set[str]:
        """List the sessions that were under way: what is stored does not tell when their client ends, or what the one
        that asked a refused subagent does.
        """
        then = self._clock() - _UNDER_WAY_S
        return {name for (of, name), looked in self._under_way.items() if of == store.id and looked <= then}

    def _row(
        self, store: Store, session: str, entry: Entry | None, recovery: Recovery, since_ms: int
    ) -> LiveSession | None:
        self._under_way.pop((store.id, session), None)
        try:
            at = store.stamp(session).newest_mtime_ns / 1e9
        except NotFoundError:  # its user deleted it
            return None
        if at * 1000 < since_ms:
            return None
        now, done = self._clock(), _standing(entry)
        ledger = recovery.context.ledger
        row = partial(LiveSession, store, session, at=_shown(at, done, ledger), recovery=done)
        look = _look(store, session)
        if now - at >= _UNDER_WAY_S or look is None or not look.newer:
            finding = finding_of(store, session, recovery)
            if finding is not None:
                diagnosis = finding.diagnosis
                if diagnosis.reason == UNREADABLE or hangs_on_asker(store, diagnosis):
                    self._under_way[store.id, session] = now
                says = finding.outlook if finding.stuck else finding.said
                stands = finding.recovery if finding.healed else done
                then = _shown(at, stands, ledger)
                return row(title=finding.title, state=_of(finding), at=then, says=says, recovery=stands)
        state = State.ANSWERED
        if look is not None and look.newer:
            state = State.RUNNING if look.running else State.WAITING
            self._under_way[store.id, session] = now
        return row(title=root_title(store, session), state=state)


def _look(store: Store, session: str) -> SessionStatus | None:
    try:
        return store.look(session)
    except RecoverydError:  # said by the finding
        return None


def _shown(at: float, stands: str, ledger: Ledger) -> float:
    """Return the time that is shown of a session: that of its repair, where that left its file's as it was."""
    entry = ledger.find(stands) if stands else None
    return max(at, entry.time) if entry is not None else at


def _standing(entry: Entry | None) -> str:
    """Return the id of a recovery that can be shown and undone, else ""."""
    return entry.id if entry is not None and entry.outcome is Outcome.HEALED else ""


def _of(finding: Finding) -> State:
    if finding.elsewhere:
        return {UNANSWERED: State.WAITING, UNDONE: State.ANSWERED}.get(finding.diagnosis.reason, State.ERROR)
    if finding.healed:
        return State.HEALED
    return State.IGNORED if finding.ignored else State.STUCK
