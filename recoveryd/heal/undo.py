"""Put originals back: for a person who asks, and at a start after a crash. One way of writing for both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from recoveryd.clients import (
    Stamp,
    Store,
    is_abandoned,
    is_store_of,
    stored_images,
    untouched,
    wait_until_quiet,
)
from recoveryd.core import (
    CUT_OFF,
    ActiveError,
    Change,
    ConflictError,
    Entry,
    Failure,
    FormError,
    NotFoundError,
    Outcome,
    RecoverydError,
    RefusedError,
    StoreError,
    command_line,
    kind_info,
)
from recoveryd.disk import recovery_lock
from recoveryd.heal.cut_texts import remove_cut_texts
from recoveryd.heal.undo_obstacles import answered, below, keys_of_lost, obstacle_of, own_turn
from recoveryd.ledger import OVERWRITTEN, Ledger, Record, new_id, without_originals

UNDOABLE = frozenset({Outcome.HEALED, Outcome.CONFLICT, *CUT_OFF})


@dataclass(frozen=True, slots=True)
class Interrupted:
    """What undo made of a recovery that a crash interrupted."""

    entry: Entry
    outcome: Outcome
    detail: str
    passes: bool = False  # what kept it from being written, by itself and soon

    @property
    def open(self) -> bool:
        """Whether it could not be finished or rolled back now."""
        return self.outcome in CUT_OFF


def finish_interrupted(
    store: Store,
    ledger: Ledger,
    session: str | None = None,
    *,
    allowed: Callable[[], object] = lambda: None,
    open_turn: bool = False,
) -> list[Interrupted]:
    """Finish, or undo, every recovery of `store` (or of one session) that a crash interrupted.

    Only under the recovery lock: without it, what another process is just writing looks cut off. Nothing is written
    where a repair would not be: `allowed` raises while nothing may be, the session is quiet and as it was looked at,
    and no turn of it runs but the recovery's own; `open_turn`: any may be open, which the caller knows to have ended.
    """
    mine = [entry for entry in ledger.pending() if is_store_of(store, entry.store) and session in (None, entry.session)]
    return [_finish_interrupted(store, ledger, entry, allowed, open_turn=open_turn) for entry in mine]


def _finish_interrupted(
    store: Store, ledger: Ledger, entry: Entry, allowed: Callable[[], object], *, open_turn: bool
) -> Interrupted:
    try:
        allowed()
        return _end(store, ledger, entry, allowed, open_turn=open_turn)
    except ConflictError as error:
        return _close(ledger, entry, Outcome.CONFLICT, error.message)
    except ActiveError as error:
        return Interrupted(entry, entry.outcome, error.message, passes=True)
    except (StoreError, NotFoundError) as error:  # not there now, or not writable: left pending for the next start
        return Interrupted(entry, entry.outcome, error.message)


def _end(store: Store, ledger: Ledger, entry: Entry, allowed: Callable[[], object], *, open_turn: bool) -> Interrupted:
    kept = store.located(ledger.changes(entry.id))
    changes = _of_content(kept)
    store.clean(kept)
    found = stored_images(store, changes)
    ours = [c for c, s in zip(changes, found, strict=True) if s == "after"]
    obstacle = store.undo_obstacle(entry, kept)
    if obstacle and "before" in found:  # neither way is safe now
        return Interrupted(entry, entry.outcome, obstacle.message)
    undoing = entry.outcome is Outcome.UNDOING
    new_ids = kind_info(entry.kind).new_ids and "before" not in found  # the client goes on under these
    if not undoing and (len(ours) == len(changes) or (new_ids and not ledger.later(entry))):
        return _close(ledger, entry, Outcome.HEALED, entry.detail)
    if not undoing and ledger.later(entry):
        detail = "Cut off by a crash, and the session was repaired again since: what is there stays."
        return _close(ledger, entry, Outcome.CONFLICT, detail)
    whose = "Its undo was cut off by a crash" if undoing else "Cut off by a crash"
    if ours:
        read = _at_rest(store, entry, open_turn=open_turn)
        if _went_on(store, ledger, entry):
            if undoing and len(ours) == len(changes):  # nothing of it was taken back yet
                return _close(ledger, entry, Outcome.HEALED, entry.detail)
            detail = f"{whose}, and the session went on since: what is there stays."
            return _close(ledger, entry, Outcome.CONFLICT, detail)
        allowed()
        if _at_rest(store, entry, open_turn=open_turn) != read:
            raise ActiveError("The client wrote to this session meanwhile: it stays half done until it is quiet.")
        put_back(store, ours)
    if "other" in found:
        detail = f"{whose}, and the client wrote to the same parts since: its version stays."
        return _close(ledger, entry, Outcome.CONFLICT, detail)
    remove_cut_texts(store, kept)
    if undoing:
        return _close(ledger, entry, Outcome.UNDONE, entry.detail)
    return _close(ledger, entry, Outcome.FAILED, "Cut off before it was whole, and taken back.", settled=False)


def _of_content(changes: Sequence[Change]) -> list[Change]:
    """Leave out the records that a recovery keeps as they were: what is stored of them does not tell who wrote it."""
    return [change for change in changes if change.before != change.after]


def _at_rest(store: Store, entry: Entry, *, open_turn: bool) -> Stamp | None:
    """Wait until the session of a recovery is quiet; return its stamp, None where it is deleted: to that nobody writes.
    ActiveError while a turn of it runs.
    """
    if not store.has(entry.session):
        return None
    read = wait_until_quiet(store, entry.session)
    if store.look(entry.session).running and not (open_turn or own_turn(store, entry)):
        raise ActiveError("A turn of this session is running, or was cut off: it stays half done until that has ended.")
    return read


def _went_on(store: Store, ledger: Ledger, entry: Entry) -> bool:
    """Whether the model answered behind what had failed, since the recovery or its undo was begun. A forced undo may be
    begun behind an answer, and says nothing of it.
    """
    if ledger.answered(entry.id) is None or not store.has(entry.session):
        return False
    try:
        return bool(answered(store, entry))
    except FormError:  # what was repaired had another one
        return True


def _close(ledger: Ledger, entry: Entry, outcome: Outcome, detail: str, *, settled: bool = True) -> Interrupted:
    ledger.finish(entry.id, outcome, detail, settled=settled)
    return Interrupted(entry, outcome, detail)


def put_back(store: Store, changes: Sequence[Change]) -> None:
    """Undo `changes`: write their before-images. ConflictError when one of them is not what we wrote any more."""
    store.apply([change.reversed() for change in reversed(changes)])


def taken_back(store: Store, entry: Entry, changes: Sequence[Change]) -> tuple[Outcome, bool]:
    """Undo what is stored of `changes` as written; return the outcome, and whether there were any.

    `failed`: all is as it was before; `conflict`: somebody wrote over the rest, and their version stays. Not of new ids
    that the client goes on under, or where the client says that it can't be.
    """
    written = _of_content(changes)
    found = stored_images(store, written)
    ours = [c for c, now in zip(written, found, strict=True) if now == "after"]
    goes_on = kind_info(entry.kind).new_ids and "other" in found and "before" not in found
    if not ours or goes_on or store.undo_obstacle(entry, changes):
        return Outcome.CONFLICT, False
    put_back(store, ours)
    if "other" in found:
        return Outcome.CONFLICT, True
    remove_cut_texts(store, changes)
    return Outcome.FAILED, True


def take_back(
    store: Store, ledger: Ledger, lock_dir: Path, name: str, *, force: bool = False, dry_run: bool = False
) -> tuple[Entry, list[Change]]:
    """Undo a recovery as a person asks for it: under the lock that repairs take, and when the session is quiet.

    Returns the recovery as it is then, and what was written. Raises also `BusyError` and, if the session does not get
    quiet, `ActiveError`.
    """
    with recovery_lock(store.lock_path, lock_dir, store.id, doing="an undo"):
        entry = ledger.get(name)
        if store.has(entry.session) and not (dry_run or force):  # to one that is deleted nobody writes
            wait_until_quiet(store, entry.session)
        changes = undo(store, ledger, entry, force=force, dry_run=dry_run)
        return ledger.get(entry.id), changes


def why_not_undone(store: Store, ledger: Ledger, entry: Entry) -> RecoverydError | None:
    """Tell what `undo` would raise for a recovery as things are now; None where it would be undone."""
    try:
        undo(store, ledger, entry, dry_run=True)
        unwritable = store.live()
    except RecoverydError as error:
        return error
    return StoreError(unwritable) if unwritable else None


def undo(store: Store, ledger: Ledger, entry: Entry, *, force: bool = False, dry_run: bool = False) -> list[Change]:
    """Put the originals of a recovery back; return what is (or with `dry_run` would be) written.

    Of one that was cut off half way (and only under the recovery lock is that known) it is what stands of it.
    RefusedError when something would be lost: a newer recovery stands on it, a part changed or lost its message since,
    or a prompt was answered since. `force` overrides all but the first, after keeping what is there now as a recovery.
    NotFoundError: the images are gone.
    """
    if entry.overwritten and entry.outcome not in CUT_OFF:  # one that a crash cut off is in the way of all others
        hint = f"What stood there, as files: {command_line('ledger', 'export', entry.id)}"
        raise RefusedError(f"{entry.id} is no repair, but what a forced undo wrote over.", hint)
    if entry.outcome is Outcome.UNDONE:
        raise RefusedError(f"{entry.id} was undone before.")
    if entry.outcome not in UNDOABLE:
        raise RefusedError(f"{entry.id} changed nothing ({entry.outcome}), so there is nothing to undo.")
    changes = ledger.changes(entry.id)
    if not changes:
        raise NotFoundError(f"{without_originals(entry)}. So it can't be undone any more.")
    if not store.exists():  # else its sessions would be told as deleted
        raise StoreError(f"{entry.id} can't be undone now: {store.root} is not there.", "Is its disk mounted?")
    if is_abandoned(store):
        says = f"{entry.id} can't be undone: its client keeps its sessions elsewhere by now."
        raise RefusedError(says, f"Its originals, as files: {command_line('ledger', 'export', entry.id)}")
    if newer := ledger.later(entry):
        raise below(ledger, entry, newer)
    changes = store.located(changes)
    if not dry_run:
        store.clean(changes)
    if impossible := store.undo_obstacle(entry, changes):  # with `force`, too
        raise impossible
    obstacle = obstacle_of(store, entry, changes)
    todo = _backward(store, entry, changes, whatever=obstacle is not None)
    if obstacle is not None and not force:
        then = "To undo it all the same" if todo else "Nothing is left to put back. To have it count as undone"
        raise RefusedError(obstacle, f"{then}: {command_line('undo', entry.id, '--force')}")
    if not dry_run:
        _write(store, ledger, entry, todo, forced=obstacle is not None)
        remove_cut_texts(store, changes)
    return todo


def _backward(store: Store, entry: Entry, changes: Sequence[Change], *, whatever: bool) -> list[Change]:
    """Make the changes that lead back to the originals, from what is stored as written, or from `whatever` is there.

    Nothing comes back into what its client deleted since: a message, or the whole session.
    """
    back = list(reversed(changes))
    now = store.read_all([change.key for change in back])
    if whatever:
        lost = keys_of_lost(store, entry, back)
        forced = (replace(c, before=n, after=c.before) for c, n in zip(back, now, strict=True))
        return [c for c in forced if c.before != c.after and (c.before is not None or c.key not in lost)]
    return [c.reversed() for c, n in zip(back, now, strict=True) if n == c.after]


def _write(store: Store, ledger: Ledger, entry: Entry, todo: Sequence[Change], *, forced: bool) -> None:
    ledger.taking_back(entry.id, store.look(entry.session).last_answer)
    if not todo:  # nothing is written over that would have to be kept
        ledger.undone(entry.id)
        return
    if forced:  # cut off by a crash, it is itself taken back: never a heal
        failure = Failure(entry.store, entry.session, entry.message, int(entry.time * 1000))
        judged = replace(OVERWRITTEN, root=ledger.root(entry.id))
        record = Record(new_id(), failure, entry.title, entry.kind, f"Forced undo of {entry.id}.", judged=judged)
        record = replace(record, changes=tuple(todo), sole=store.content.sole(todo), client=store.client)
        ledger.begin(record, Outcome.UNDOING)
        doing = record.id
    else:  # a crash in the middle is finished at the next start
        doing = entry.id
        ledger.mark(doing, Outcome.UNDOING)
    try:
        store.apply(todo)
    except (StoreError, NotFoundError, KeyboardInterrupt) as error:
        gone = isinstance(error, NotFoundError) and not any(store.read_all([change.key for change in todo]))
        if gone or untouched(store, todo):  # else it is left to `finish_interrupted`
            if forced:  # nothing was written over
                ledger.drop(doing)
            ledger.finish(entry.id, entry.outcome, entry.detail, settled=entry.outcome not in CUT_OFF)
        raise
    ledger.undone(doing, entry.id, whole=not forced)
