"""Tell at a glance which stores are watched, by whom, and what came of it. Writes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recoveryd.clients import Config, Generation, Store, find_stores
from recoveryd.core import Entry, Failure, Outcome, RecoverydError, command_line
from recoveryd.diagnose import Context, Needing, NeedsUser, at_cap, vain_repairs
from recoveryd.disk import LockOwner, is_full, lockers, watcher, watchers
from recoveryd.heal import find_store
from recoveryd.ledger import Ledger, LedgerFile, Upkeep, count_outcomes, is_there, midnight, peek
from recoveryd.settings import Pause, ignored, paths, paused

NOT_READABLE = "not readable"  # in the place of a generation
# How a `run` was started (`LockOwner.doing`).
HOW: Mapping[str, str] = {"service": "as a service", "terminal": "in a terminal", "program": "in the background"}


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """A store and who watches it.

    `watched`: by which `run`; `problem`: why nothing in it is repaired, "" when it is. `locked`: the processes that
    have its lock, where no `run` is known to and they say nothing of themselves. `late`: why what is written there is
    noticed once a minute only, in a sentence; "" when at once.
    """

    id: str
    generation: Generation | None
    watched: LockOwner | None
    problem: str
    locked: Sequence[int] = ()
    late: str = ""


@dataclass(frozen=True, slots=True)
class LedgerSummary:
    """What `status` tells of the ledger. `today` and `ever` count recoveries by outcome; `capped`: store, session and
    title.
    """

    today: Mapping[Outcome, int] = field(default_factory=dict)
    ever: Mapping[Outcome, int] = field(default_factory=dict)
    pending: Sequence[Entry] = ()
    conflicts: Sequence[Entry] = ()
    capped: Sequence[tuple[str, str, str]] = ()
    need_user: Sequence[Needing] = ()
    problem: str = ""
    unlisted: Mapping[str, str] = field(default_factory=dict)  # as of `NeedsUser`


@dataclass(frozen=True, slots=True)
class Status:
    """All that `status` tells."""

    stores: Sequence[StoreStatus]
    summary: LedgerSummary
    pause: Pause | None
    idle: str  # why the configuration has nothing repaired; "" when it does not
    ignored: Sequence[str]
    config: Path
    ledger: Path
    log: Path
    ignore_problem: str = ""  # why what is to be left alone can't be read: then nothing is repaired
    any_kind: bool = True  # whether the configuration names a kind that is repaired
    unwritable: str = ""  # why the ledger, which can be read, can't be written to
    running: Sequence[LockOwner] = ()  # the daemons that watch these stores, or would if these were there

    @property
    def watching(self) -> Sequence[LockOwner]:
        """The daemons that watch these stores, each once."""
        by_pid = {store.watched.pid: store.watched for store in self.stores if store.watched}
        return list(by_pid.values())

    @property
    def unrepaired(self) -> str:
        """Why nothing at all is repaired now; "" when it is."""
        if not self.stores:
            return "there is no store yet"
        if not self.watching:
            return "nothing runs that would"
        if self.pause is not None:
            return f"paused{self.pause.ending}"
        idle = [holder.idle for holder in self.watching]
        if all(idle):
            return idle[0]
        held = self.ignore_problem or self.summary.problem or self.unwritable  # without a ledger nothing is written
        if held:
            return held
        return "" if self.any_kind else "the configuration names no kind (`kinds = []`)"


Wanted = Callable[[str], bool]  # by the id of a store


def collect_status(
    config: Config, stores: Sequence[Store], state_dir: Path, config_file: Path, now: float, wanted: Wanted
) -> Status:
    """Collect the status. `stores`: those that exist; `wanted`: whether what the ledger has of a store counts, be it
    one that is gone. What can't be read is said in the answer; nothing is raised.
    """
    summary = ledger_summary(config, stores, state_dir, now, wanted)
    found = [_store(config, store, state_dir, summary.unlisted.get(store.id, "")) for store in stores]
    return _status(config, found, summary, state_dir, config_file, now)


def quick_status(config: Config, stores: Sequence[Store], state_dir: Path, config_file: Path, now: float) -> Status:
    """Collect what of the status tells whether anything is repaired now: no store is read for that, and of the ledger
    only whether it can be.
    """
    found = [StoreStatus(store.id, None, watched_by(store, state_dir), "") for store in stores]
    summary = LedgerSummary(problem=_unreadable(paths.ledger_file(state_dir)))
    return _status(config, found, summary, state_dir, config_file, now, tried=False)


def _status(
    config: Config,
    stores: Sequence[StoreStatus],
    summary: LedgerSummary,
    state_dir: Path,
    config_file: Path,
    now: float,
    *,
    tried: bool = True,
) -> Status:
    named: Sequence[str] = config.ignore
    ignore_problem = ""
    try:
        named = (*named, *ignored(state_dir))
    except RecoverydError as error:
        ignore_problem = error.message
    return Status(
        stores=stores,
        running=daemons(config, [store.id for store in stores], state_dir),
        summary=summary,
        pause=paused(state_dir, now),
        idle=config.idle,
        ignored=named,
        config=config_file,
        ledger=paths.ledger_file(state_dir),
        log=paths.log_file(state_dir),
        ignore_problem=ignore_problem,
        any_kind=bool(config.kinds),
        unwritable=why_unwritable(paths.ledger_file(state_dir)) or _why_no_room(state_dir, tried=tried),
    )


def why_unwritable(ledger: Path) -> str:
    """Tell, in a sentence, why the ledger that is there can't be written to; "" where it can."""
    try:
        there = is_there(ledger)
    except RecoverydError as error:
        return error.message
    for place, mode in ((ledger, os.W_OK), (ledger.parent, os.W_OK | os.X_OK)):
        if there and not os.access(place, mode):
            return f"{'The ledger ' if place == ledger else ''}{place} can't be written to, so nothing is repaired."
    return ""


def _why_no_room(state_dir: Path, *, tried: bool) -> str:
    """Tell, in a sentence, that nothing can be kept in the state folder (`tried`: by a write); "" where it can, or
    nobody knows.
    """
    full = f"The disk of {state_dir}, or your quota of it, is full, so nothing is repaired: make room."
    return full if is_full(state_dir, by_write=tried) else ""


def _unreadable(ledger: Path) -> str:
    """Tell why the ledger can't be read; "" where it can, or is not there yet."""
    try:
        peek(ledger, lambda _: None)
    except RecoverydError as error:
        return error.message
    return ""


def daemons(config: Config, stores: Iterable[str], state_dir: Path) -> list[LockOwner]:
    """List the daemons that look where these stores, and those of this configuration, are or will be."""
    places = {*(store.id for store in find_stores(config)), *stores}
    return [holder for holder in watchers(paths.lock_dir(state_dir)) if places & {*holder.stores}]


def watched_by(store: Store, state_dir: Path) -> LockOwner | None:
    """Tell, as `status` shows it, the `run` that watches a store; None where none does. The note of a shared lock names
    its stores.
    """
    holder = watcher(paths.lock_dir(state_dir), store.lock_path)
    return holder if holder is not None and store.id in holder.stores else None


def why_late(store: Store, by: LockOwner | None, state_dir: Path) -> str:
    """Tell, in a sentence, why the `run` that watches a store notices what is written there once a minute only; "" when
    it does at once.
    """
    return _noted(by, state_dir, lambda note: note.late.get(store.id, ""))


def why_unusable(store: Store, by: LockOwner | None, state_dir: Path) -> tuple[str, str]:
    """Tell, each in a sentence, why the `run` that watches a store can repair nothing there though this process could,
    and what to do: a service may have a sandbox, in which a store that came later is closed. "" when it can.
    """
    reason = _noted(by, state_dir, lambda note: note.unusable.get(store.id, ""))
    if not reason or by is None or generation_of(store)[1]:
        return "", ""
    strict = f"If it was installed with --strict: `{command_line('install')}` opens to it what is there now."
    return reason, strict if by.doing == "service" else f"`{command_line('restart')}`, once that is mended."


def _noted(by: LockOwner | None, state_dir: Path, what: Callable[[LockOwner], str]) -> str:
    if by is None:
        return ""
    return next((what(note) for note in watchers(paths.lock_dir(state_dir)) if note.pid == by.pid), "")


def silent_lockers(config: Config, store: Store, state_dir: Path) -> list[int]:
    """List the processes that have the lock of a store but for the daemons that are known: a lock is one of a folder,
    which may hold several stores, and those say which of them they watch.
    """
    held = lockers(paths.lock_dir(state_dir), store.lock_path) or set()
    return sorted(held - {holder.pid for holder in daemons(config, [store.id], state_dir)}) if held else []


def generation_of(store: Store) -> tuple[Generation | None, str]:
    """Tell, as `status` shows it, the generation of a store, and why nothing in it is repaired; "" when it is."""
    try:
        return store.generation(), store.live() or ""
    except RecoverydError as error:
        return None, error.message


def _unlisted(store: Store) -> str:
    """Tell why the sessions of a store can't be listed; "" where they can."""
    try:
        next(iter(store.session_ids()), None)
    except RecoverydError as error:
        return error.in_a_line
    return ""


def ledger_summary(
    config: Config, stores: Sequence[Store], state_dir: Path, now: float, wanted: Wanted = lambda _: True
) -> LedgerSummary:
    """Read what `status` tells of the ledger; `LedgerSummary.problem` when it can't be read."""
    ledger, today = paths.ledger_file(state_dir), midnight(now)

    def work(opened: Ledger) -> LedgerSummary:
        upkeep, context, needs_user = Upkeep(opened), Context(opened, config, state_dir), NeedsUser()
        ended = [one for one in upkeep.ended() if wanted(one.store)]
        return LedgerSummary(
            today=count_outcomes(ended, today),
            ever=count_outcomes(ended),
            pending=[one for one in opened.pending() if wanted(one.store)],
            conflicts=[one for one in upkeep.conflicts() if wanted(one.store)],
            capped=_capped(context, stores),
            need_user=needs_user.find(context, stores),
            unlisted=needs_user.unlisted,
        )

    try:
        return peek(ledger, work) or work(Ledger(LedgerFile.empty(ledger)))
    except RecoverydError as error:
        return LedgerSummary(problem=error.message)


def _store(config: Config, store: Store, state_dir: Path, unlisted: str) -> StoreStatus:
    generation, problem = generation_of(store)
    problem = problem or unlisted or _unlisted(store)
    watched = watched_by(store, state_dir)
    reason, remedy = why_unusable(store, watched, state_dir)
    if reason and not problem:
        problem = f"Nothing in it is repaired by the recoveryd that runs: {reason} {remedy}"
    locked = () if watched else silent_lockers(config, store, state_dir)
    return StoreStatus(store.id, generation, watched, problem, locked, why_late(store, watched, state_dir))


def _capped(context: Context, stores: Sequence[Store]) -> list[tuple[str, str, str]]:
    """List the sessions that had all their recoveries since a prompt was last answered."""
    found = []
    for store_id, session in Upkeep(context.ledger).busiest(context.config.max_retries):
        [newest] = context.ledger.history(1, session, store_id)
        store = find_store(stores, context.ledger, store_id)
        if store is not None and _is_capped(context, store, newest):
            found.append((store.id, session, newest.title))
    return found


def _is_capped(context: Context, store: Store, newest: Entry) -> bool:
    """Whether a session had all its recoveries since a prompt was answered; false where that can't be told."""
    failure = Failure(newest.store, newest.session, "", 0)
    try:
        made = vain_repairs(context, store, failure, store.look(newest.session).last_answer)
    except RecoverydError:
        return False
    return at_cap(made, context.config.max_retries)
