"""What of a recovery goes into the ledger, and when: before an edit its images, then how it ended."""

from __future__ import annotations

import time
from dataclasses import replace

from loguru import logger

from recoveryd.clients import Store, is_of, root, untouched
from recoveryd.core import (
    Change,
    Diagnosis,
    DiskError,
    Entry,
    Event,
    Failure,
    Outcome,
    RecoverydError,
    Refusal,
    Refused,
    Session,
    UnreadError,
)
from recoveryd.diagnose import Context, standing, state_of
from recoveryd.heal.undo import settle, taken_back
from recoveryd.ledger import Judged, Record, joined
from recoveryd.providers import VERSION


class Book:
    """Keeps the account of recoveries in the ledger, each under the id of its event."""

    def __init__(self, context: Context) -> None:
        self._ledger = context.ledger
        self._config = context.config
        self.started = 0.0  # when the repair that is under way began, time.monotonic()

    def entry(self, event: Event) -> Entry | None:
        """What the ledger has of it so far."""
        return self._ledger.find(event.id)

    def keep(self, store: Store, failure: Failure, event: Event, *, written: bool) -> None:
        """Before any edit: the exact bytes of all that it touches, on the disk. `written`: some edits stand by now."""
        known = self.entry(event) is not None
        changes = joined(self._ledger.changes(event.id), event.changes) if known and written else event.changes
        record = replace(_record(failure, event), changes=changes, sole=store.content.sole(changes))
        if known:
            self._ledger.rewrite(record)
        else:
            self._ledger.begin(replace(record, judged=self._judged(store, failure)))

    def confirm(self, event: Event) -> None:
        """It was read back: no later start has to."""
        self._ledger.confirm(event.id)

    def unconfirmed(self, store: Store) -> list[tuple[Failure, Event]]:
        """The repairs of `store` that stood when they were made, and were not read back since."""
        return [_begun(store, entry) for entry in self._ledger.unconfirmed() if is_of(store, entry.store)]

    def close(self, store: Store, failure: Failure, event: Event) -> Event:
        """The outcome. What was begun and stands half written stays pending: the next attempt or start ends it."""
        if self.entry(event) is not None:
            if event.outcome is not Outcome.FAILED or self._untouched(store, event):
                seconds = time.monotonic() - self.started
                self._ledger.finish(event.id, event.outcome, event.detail, seconds=seconds)
            return event
        try:
            judged = self._judged(store, failure)
        except RecoverydError:
            judged = Judged(rules_version=VERSION, answered=0)
        self._ledger.record(replace(_record(failure, event), judged=judged, actions=()), event.outcome)
        return event

    def _judged(self, store: Store, failure: Failure) -> Judged:
        session = failure.session
        state, answered = state_of(store.stamp(session), self._config), store.look(session).last_answer
        return Judged(session_state=state, rules_version=VERSION, answered=answered, root=root(store, session)[0])

    def drop_untouched(self, store: Store, event: Event) -> None:
        """Forget what was begun if nothing of it was written."""
        if self.entry(event) is not None and self._untouched(store, event):
            self._ledger.drop(event.id)

    def settle(self, store: Store, failure: Failure, event: Event) -> Event | None:
        """Bring what was cut off in this session to an end; the event of this failure's own repair, if that stands.

        An earlier try at it that was taken back counts for nothing. DiskError: a half repair is still there.
        """
        healed = None
        for settled in settle(store, self._ledger, failure.session):
            if settled.open:
                raise DiskError(settled.detail)
            entry = settled.entry
            own = entry.message == failure.message
            if own and settled.outcome is Outcome.FAILED:
                self._ledger.drop(entry.id)
                continue
            logger.warning("{} {} {}: {}", entry.session, entry.id, settled.outcome, settled.detail)
            if own and settled.outcome is Outcome.HEALED:
                healed = self._as_made(event, entry)
        return healed

    def standing(self, store: Store, failure: Failure, event: Event) -> Event | None:
        """The repair of this failure that was made and stands, as its event: another process may have been first."""
        entry = standing(store, self._ledger, Diagnosis(failure, Refused(event.kind) if event.kind else None))
        return None if entry is None else self._as_made(event, entry)

    def _as_made(self, event: Event, entry: Entry) -> Event:
        changes = tuple(self._ledger.changes(entry.id))
        event = replace(event, id=entry.id, title=entry.title, outcome=Outcome.HEALED, detail=entry.detail)
        return replace(event, actions=entry.actions, changes=changes)

    def overtaken(self, session: Session, failure: Failure, planned: Refusal, *, reads_once: bool) -> Refusal:
        """What to say where nothing stored explains a failure, and it was repaired before.

        A client that was slow to begin may have read half of a repair: of the prompt that it seemed to fail on. One
        that reads a session but once may have sent what it had in memory: UnreadError, and it goes on no record.
        """
        if planned.understood:
            return planned
        made = [entry for entry in self._ledger.history(1, failure.session) if entry.store == failure.store]
        if reads_once and made and made[0].outcome is Outcome.HEALED and made[0].time * 1000 < failure.time:
            says = "and it was refused again by a client that may not have read it since"
            raise UnreadError(f"What is stored was repaired before ({made[0].id}), {says}: open it anew and prompt it.")
        asked = next((str(m.data.get("parentID")) for m in session.messages if m.id == failure.message), "")
        handled = self._ledger.handled(failure.store, failure.session, asked)
        if handled is None or handled.outcome is not Outcome.HEALED:
            return planned
        return Refusal("it was repaired while this prompt was on its way: prompt it again")

    def changes(self, event: Event) -> tuple[Change, ...]:
        """The images that are kept of it."""
        return tuple(self._ledger.changes(event.id))

    def repaired_since(self, entry: Entry) -> bool:
        """Whether a newer repair of the session stands: that one was proved on all that is there."""
        return bool(self._ledger.later(entry))

    def taken_back(self, store: Store, event: Event) -> tuple[Outcome, bool]:
        """Take back all of the edits that stands as it was written: what that comes to, and whether any did.

        `failed`: all is as it was before; `conflict`: but for what the client wrote over, whose version stays.
        """
        self._ledger.mark(event.id, Outcome.PENDING)  # a crash on the way is not to leave a repair that stands
        return taken_back(store, self._ledger.get(event.id), self._ledger.changes(event.id))

    def _untouched(self, store: Store, event: Event) -> bool:
        try:
            return untouched(store, self._ledger.changes(event.id))
        except RecoverydError:
            return False


def _record(failure: Failure, event: Event) -> Record:
    return Record(event.id, failure, event.title, event.kind, event.detail, event.actions)


def _begun(store: Store, entry: Entry) -> tuple[Failure, Event]:
    """A repair of another process."""
    failure = Failure(store.id, entry.session, entry.message, int(entry.time * 1000))
    names = store.id, entry.session, entry.title, entry.message, entry.kind
    return failure, Event(entry.id, *names, entry.outcome, entry.detail, entry.actions)
