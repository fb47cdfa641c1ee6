"""Record a recovery in the ledger: before an edit the originals, then how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from loguru import logger

from recoveryd.clients import Client, Store, is_store_of, root_session, untouched
from recoveryd.core import (
    KINDS,
    ActiveError,
    Change,
    Diagnosis,
    DiskError,
    Entry,
    Outcome,
    RecoverydError,
    Refusal,
    Session,
    StoreError,
    UnreadError,
    keep_newest,
)
from recoveryd.diagnose import Case, Context, judged_state, maybe_unread, standing_repair
from recoveryd.heal.propose import not_understood
from recoveryd.heal.undo import finish_interrupted, taken_back
from recoveryd.ledger import Judged, Record, join_images
from recoveryd.providers import VERSION
from recoveryd.tell import log_prefix


class Recorder:
    """Records cases in the ledger, each under the id of its recovery."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ledger = context.ledger
        self._config = context.config
        self._unread: dict[str, str] = {}  # recoveries that could not be read back, and why

    def entry(self, case: Case) -> Entry | None:
        """Return what the ledger has of a case so far."""
        return self._ledger.find(case.recovery)

    def keep(self, case: Case, *, written: bool) -> tuple[Change, ...]:
        """Keep on the disk, before any edit, the exact bytes of all that it touches; return what was kept of the case
        before. `written`: some of it is done.
        """
        known, changes = self.entry(case) is not None, case.event.changes
        earlier = self.changes(case) if known else ()
        if known and written:
            changes = join_images(earlier, changes)
        record = replace(_record(case), changes=changes, sole=case.store.content.sole(changes))
        if known:
            self._ledger.rewrite(record)
        else:
            self._ledger.begin(replace(record, judged=self._judged(case)))
        return earlier

    def confirm(self, case: Case) -> None:
        """Record that the repair was read back: no later start has to do it."""
        self._ledger.confirm(case.recovery)

    def advised(self, case: Case, client: Client) -> Case:
        """Return a healed case with what its user has to do so that the client reads the repair. That holds now: it is
        told, and not recorded.
        """
        entry, detail = self.entry(case), case.event.detail
        if case.outcome is not Outcome.HEALED or entry is None:
            return case
        try:
            late = client.unread(case.store, case.session, entry.time)
        except RecoverydError:  # nothing can be told of it now
            return case
        return case.updated(detail=f"{detail}; {late}") if late and late not in detail else case

    def gone(self, case: Case) -> Case | None:
        """Return the case of a session that was deleted since, and record that there is nothing to read back: else it
        would be told as healed, at each start. None where the session is there. StoreError: its store is not, now.
        """
        if not case.store.exists():
            raise StoreError(f"{case.store.root} is not there.")
        if case.store.has(case.session):
            return None
        self.confirm(case)
        return case.became(Outcome.UNDONE, "Its session was deleted since.")

    def fault(self, case: Case, error: Exception) -> str:
        """Log a fault of recoveryd that ended what was to be done about a case, once for a repair that is read back
        every minute; return it in words.
        """
        detail = f"A fault of recoveryd: {type(error).__name__}: {error}."
        if self._unread.get(case.recovery) != detail:
            logger.opt(exception=error).error("{}: a fault of recoveryd", log_prefix(case.event))
        return detail

    def unread(self, case: Case, detail: str) -> Case:
        """Leave a repair that can't be read back now to a later look: the ledger has it as such."""
        level = "DEBUG" if self._unread.get(case.recovery) == detail else "WARNING"
        keep_newest(self._unread, case.recovery, detail)
        logger.log(level, "{}: can't be read back now: {}", log_prefix(case.event), detail)
        pending = case.became(Outcome.PENDING, f"Repaired ({case.recovery}), and not read back yet. {detail}")
        return pending.updated(changes=())

    def unconfirmed(self, store: Store) -> list[Case]:
        """List the repairs of `store` that were whole when they were made, and were not read back since."""
        entries = (entry for entry in self._ledger.unconfirmed() if is_store_of(store, entry.store))
        return [Case.of_entry(store, one, int(one.time * 1000)) for one in entries if one.kind is not None]

    def close(self, case: Case) -> Case:
        """Record the outcome. What is half written stays pending: the next attempt or start brings it to an end."""
        event = case.event
        if self.entry(case) is not None:
            if event.outcome is not Outcome.FAILED or self._untouched(case):
                seconds = time.monotonic() - case.begun
                self._ledger.finish(event.id, event.outcome, event.detail, seconds=seconds)
            return case
        try:
            judged = self._judged(case)
        except RecoverydError:
            judged = Judged(rules_version=VERSION, answered=0)
        known = self._recorded(case)
        if known is not None:  # what changed in the session since does not matter: one record a failure
            case = case.updated(id=known.id, repeated=True)
        self._ledger.record(replace(_record(case), judged=judged, actions=()), event.outcome)
        return case

    def _recorded(self, case: Case) -> Entry | None:
        """Return the record of the same end of this failure, if that is what came of it last."""
        event = case.event
        said = self._ledger.history(20, event.session, event.store)
        last = next((entry for entry in said if entry.message == event.message), None)
        now = event.kind, event.outcome, event.detail
        return last if last is not None and not last.edits and (last.kind, last.outcome, last.detail) == now else None

    def _judged(self, case: Case) -> Judged:
        store, session = case.store, case.session
        state, answered = judged_state(store.stamp(session), self._config), store.look(session).last_answer
        return Judged(
            session_state=state, rules_version=VERSION, answered=answered, root=root_session(store, session)[0]
        )

    @contextmanager
    def forgotten_if_unwritten(self, case: Case) -> Iterator[None]:
        """Forget, under the lock, what the disk let nothing be written of: it was no try. What is half written, or left
        its files behind, stays pending.
        """
        try:
            yield
        except DiskError:
            with suppress(StoreError):
                case.store.clean(self.changes(case))
                self.drop_untouched(case)
            raise

    def drop_untouched(self, case: Case) -> None:
        """Forget a recovery that was begun, if nothing of it was written."""
        if self.entry(case) is not None and self._untouched(case):
            self._ledger.drop(case.recovery)

    def finish_interrupted(self, case: Case, allowed: Callable[[], object]) -> Case | None:
        """Finish or roll back what a crash interrupted in this session; return this failure's repair, if it is whole.

        `allowed` raises while nothing may be written. An earlier try at the same failure that was rolled back is
        forgotten. ActiveError, DiskError: it is still half written.
        """
        healed, open_turn = None, KINDS[case.kind].open_turn
        for ended in finish_interrupted(case.store, self._ledger, case.session, allowed=allowed, open_turn=open_turn):
            if ended.open:
                raise (ActiveError if ended.passes else DiskError)(ended.detail)
            entry = ended.entry
            own = entry.message == case.failure.message
            if own and ended.outcome is Outcome.FAILED:
                self._ledger.drop(entry.id)
                continue
            logger.warning("{} {} {}: {}", entry.session, entry.id, ended.outcome, ended.detail)
            if own and ended.outcome is Outcome.HEALED:
                healed = self._as_made(case, entry)
        return healed

    def standing(self, case: Case) -> Case | None:
        """Return the repair of this failure that is stored, if any: another process may have been first."""
        entry = standing_repair(case.store, self._ledger, Diagnosis(case.failure, case.refused))
        return None if entry is None else self._as_made(case, entry)

    def _as_made(self, case: Case, entry: Entry) -> Case:
        changes = tuple(self._ledger.changes(entry.id))
        made = case.became(Outcome.HEALED, entry.detail)
        return made.updated(id=entry.id, title=entry.title, actions=entry.actions, changes=changes)

    def overtaken(self, case: Case, session: Session, planned: Refusal, client: Client) -> Refusal:
        """Choose what to tell where nothing stored explains a failure, and the session was repaired before.

        The client may have built the prompt while we wrote the repair: then the user is told to prompt again. One that
        reads a session but once may have sent what it had in memory: UnreadError, and nothing is recorded.
        """
        failure = case.failure
        if planned.understood:
            return planned
        before = maybe_unread(self._ledger, client, case.store, session, failure)
        if before is not None:
            says = "and it was refused again by a client that may not have read it since: open it anew and prompt it"
            then = "; if that is refused too, leave it open and run `recoveryd scan --repair`" * client.edits_shift
            how = client.go_on(case.store, session.id)
            raise UnreadError(f"What is stored was repaired before ({before.id}), {says}{then}. {how}.")
        failed = session.message(failure.message)
        asked = str(failed.data.get("parentID")) if failed is not None else ""
        handled = self._ledger.handled(failure.store, failure.session, asked)
        if handled is not None and handled.outcome is Outcome.HEALED:
            return Refusal("it was repaired while this prompt was on its way: prompt it again")
        then = not_understood(self._context, case.store, failure)
        return replace(planned, reason=f"{planned.reason}{then}")

    def changes(self, case: Case) -> tuple[Change, ...]:
        """Return what the ledger keeps of the changes of a case."""
        return tuple(self._ledger.changes(case.recovery))

    def repaired_since(self, entry: Entry) -> bool:
        """Whether the session has a newer repair: that one was proved on all that is stored."""
        return bool(self._ledger.later(entry))

    def taken_back(self, case: Case) -> tuple[Outcome, bool]:
        """Put the originals back where the edits are stored as written; return the outcome, and whether any were.

        `failed`: all is as it was before; `conflict`: the client wrote over some of it, and its version stays.
        """
        self._ledger.mark(case.recovery, Outcome.PENDING)  # a crash on the way is not to leave a repair that counts
        return taken_back(case.store, self._ledger.get(case.recovery), self._ledger.changes(case.recovery))

    def _untouched(self, case: Case) -> bool:
        try:
            return untouched(case.store, self._ledger.changes(case.recovery))
        except RecoverydError:
            return False


def _record(case: Case) -> Record:
    event = case.event
    record = Record(event.id, case.failure, event.title, event.kind, event.detail, event.actions)
    return replace(record, client=case.store.client, sent=event.sent, kinds=event.kinds)
