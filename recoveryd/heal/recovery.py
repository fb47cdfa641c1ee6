"""One repair: wait for quiet, plan, stop the turn, keep the images, write, read back; and again a second later."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from loguru import logger

from recoveryd.clients import Stamp, Store, root_title, stand
from recoveryd.core import (
    REFUSED,
    ActiveError,
    BusyError,
    BusyStoreError,
    ConflictError,
    DiskError,
    Event,
    Failure,
    Kind,
    LeftAloneError,
    Outcome,
    RecoverydError,
    Refusal,
    Session,
    UnreadError,
    capital,
    failpoint,
    kind_info,
    note,
)
from recoveryd.diagnose import Context, diagnose
from recoveryd.disk import recovery_lock
from recoveryd.heal.book import Book
from recoveryd.heal.propose import Proposal, Proposer
from recoveryd.heal.shorten import put
from recoveryd.heal.stop_turn import settled, stop_turn
from recoveryd.ledger import LedgerError, new_id
from recoveryd.repair import thinking
from recoveryd.tell import Callbacks, marked, safely

ROUNDS = 3  # the first plan, and two more when the client wrote in between


class Recovery:
    """Carries out recoveries.

    `held(store, session)` says why nothing may be written to it now, None when it may: asked first, and right before
    each write. What the user wants left alone is, in any case. `share`: as of `Proposer`.
    """

    def __init__(
        self,
        context: Context,
        *,
        callbacks: Callbacks | None = None,
        held: Callable[[Store, str], str | None] | None = None,
        share: float | None = None,
    ) -> None:
        config = context.config
        self.context = context
        self._book = Book(context)
        self._held = held or (lambda *_: config.idle if config.dry_run else None)  # `enabled` is for the daemon
        self._callbacks = callbacks or Callbacks()
        self._proposer = Proposer(context, share)
        self._by_hand = share is not None
        self._stopped: dict[tuple[str, str, str], bool] = {}  # failures whose turn was stopped: once each
        self._proposed: dict[str, Proposal] = {}  # of recoveries that are yet to be confirmed, without the images

    def on_abort(self, session_id: str) -> None:
        """Before a session is touched: the parent system is told that its turn is over."""
        safely(f"{session_id}: on_abort", self._callbacks.on_abort, session_id)

    def on_complete(self, event: Event) -> None:
        """After a recovery, whatever it came to."""
        safely(f"{marked(event)}: on_complete", self._callbacks.on_complete, event)

    def attempt(
        self, store: Store, failure: Failure, kind: Kind, name: str = "", still: Callable[[], bool] = lambda: True
    ) -> Event:
        """Repair the session of `failure`; the outcome is in the ledger when this returns. Raises no store's error.

        `name`: the id that a proposal was given. `still`, asked under the lock: whether it is still to be done.
        """
        self._book.started = started = time.monotonic()
        event = Event(name or new_id(), store.id, failure.session, "", failure.message, kind, Outcome.PENDING, "")
        event = self._locked(store, failure, event, still)
        if event.outcome is not Outcome.HEALED:
            self._proposed.pop(event.id, None)
        return replace(event, seconds=time.monotonic() - started)

    def propose(self, store: Store, failure: Failure, kind: Kind, name: str = "") -> tuple[Session, Proposal | Refusal]:
        """What `attempt` of this name would do, without doing it."""
        session = store.load(failure.session)
        planned = self._proposer.propose(store, session, failure, kind, name or new_id())
        if isinstance(planned, Refusal):
            planned = self._overtaken(store, session, failure, planned)
        return session, planned

    def confirm(self, store: Store, failure: Failure, event: Event) -> Event:
        """Read back once more, after the client had time to clean up; what it undid is applied again, once.

        `event` is what `attempt` gave. `pending`: not now; confirm it later.
        """
        event = self._locked(store, failure, replace(event, changes=self._book.changes(event)))
        if event.outcome is not Outcome.PENDING:
            self._proposed.pop(event.id, None)
        return replace(event, refused_since=event.outcome is Outcome.HEALED and self._refused_since(store, event))

    def _refused_since(self, store: Store, event: Event) -> bool:
        """Whether the newest answer holds an error of unknown words: who tells of a heal tells of that, too."""
        try:
            found = diagnose(self.context, store, event.session)
        except RecoverydError:  # nothing can be told of it now
            return False
        return found is not None and found.reason == REFUSED and found.failure.message != event.message

    def unconfirmed(self, store: Store) -> list[tuple[Failure, Event]]:
        """The repairs of a store that nobody read back yet, as `confirm` takes them. Errors of the ledger pass."""
        return self._book.unconfirmed(store)

    def confirmed(self, event: Event) -> bool:
        """Whether a repair needs no reading back any more: another process did that, or it is none by now."""
        entry = self._book.entry(event)
        return entry is None or (entry.confirmed and entry.outcome is not Outcome.PENDING)

    def _locked(self, store: Store, failure: Failure, event: Event, still: Callable[[], bool] = lambda: True) -> Event:
        try:
            with recovery_lock(store.lock_path, self.context.lock_dir, store.id):
                if event.outcome is Outcome.PENDING:
                    if not still():
                        return replace(event, detail="It was seen to meanwhile: repaired, or its repair undone.")
                    made = None if self._by_hand else self._book.standing(store, failure, event)
                    return made or self._repair(store, failure, event)
                event = self._confirm(store, failure, event)
                if event.outcome is Outcome.HEALED:
                    self._book.confirm(event)
                return event
        except (ActiveError, BusyError, BusyStoreError) as error:
            return replace(self._not_now(store, event, error.message), until_written=isinstance(error, UnreadError))
        except LeftAloneError as error:  # on no record: it would keep us from it when that was taken back
            left = self._not_now(store, event, error.message)
            return left if event.outcome is Outcome.HEALED else replace(left, outcome=Outcome.REFUSED)
        except LedgerError:
            raise  # without a ledger nothing is written, and nothing can be recorded
        except DiskError as error:  # what was begun stays pending: the next attempt brings it to an end first
            return self._failed(store, failure, event, f"{error.message} {error.hint}".rstrip(), close=False)
        except RecoverydError as error:
            return self._failed(store, failure, event, error.message)
        except Exception as error:  # a record that nobody thought of: told and recorded once, like any failure
            logger.exception("{}: a fault of recoveryd", marked(event))
            return self._failed(store, failure, event, f"A fault of recoveryd: {type(error).__name__}: {error}.")

    def _confirm(self, store: Store, failure: Failure, event: Event) -> Event:
        known = self._book.entry(event)
        if known is None:  # taken back by an attempt that came between, which is told for itself
            return replace(event, outcome=Outcome.UNDONE)
        if known.outcome not in (Outcome.HEALED, Outcome.PENDING):  # undone by the user, say
            return replace(event, outcome=known.outcome, detail=known.detail)
        failpoint.reach("confirm")
        if known.outcome is Outcome.HEALED and (stand(store, event.changes) or self._book.repaired_since(known)):
            return event
        found = diagnose(self.context, store, event.session)
        if event.id not in self._proposed and found is not None:  # made by a process that is gone: it knew the error
            failure = found.failure
        logger.info("{}: the client wrote over the repair; it is made again", marked(event))
        return self._repair(store, failure, event)

    def _not_now(self, store: Store, event: Event, detail: str) -> Event:
        """Nothing is recorded of what passes by itself: the failure stays open, and is looked at again."""
        if event.outcome is Outcome.HEALED:  # what stands of it is known to the ledger, for a later look or a start
            detail = f"Repaired ({event.id}), and the client wrote over the repair since. {detail}"
        else:
            self._book.drop_untouched(store, event)
        return replace(event, outcome=Outcome.PENDING, detail=detail, changes=())

    def _failed(self, store: Store, failure: Failure, event: Event, detail: str, *, close: bool = True) -> Event:
        known = self._book.entry(event)
        if known is not None and known.outcome is Outcome.HEALED:
            logger.warning("{}: could not be confirmed: {}", marked(event), detail)
            return event
        event = replace(event, outcome=Outcome.FAILED, detail=detail)
        return self._book.close(store, failure, event) if close else event

    def _repair(self, store: Store, failure: Failure, event: Event) -> Event:
        """Plan and write until it stands. An event that is healed already is made again, as the same recovery."""
        written = event.outcome is Outcome.HEALED
        self._allowed(store, failure.session)
        if not written:
            settled(store, failure.session, self.context.clock)
            self._at_rest(store, failure, event)
            healed = self._book.settle(store, failure, event)
            if healed is not None:
                return healed
        applied = False
        for _ in range(ROUNDS):
            made = self._planned(store, failure, event, written=written)
            if made is None:
                return self._went_on(store, failure, event, written=written)
            session, planned, read = made
            event = replace(event, title=session.title if session.parent is None else root_title(store, session.id))
            if isinstance(planned, Refusal):
                if written:
                    return self._settled(store, failure, event, session, planned)
                return self._refuse(store, failure, event, self._overtaken(store, session, failure, planned))
            event = _told(event, planned, again=written)
            self._book.keep(store, failure, event, written=written)
            if not self._as_read(store, failure, event, read):
                continue
            applied = True
            put(planned.files)
            try:
                store.apply(planned.changes)
            except ConflictError as error:
                logger.info("{}: {} It is planned again.", marked(event), error.message)
                continue
            written = True
            self._proposed[event.id] = replace(planned, changes=(), edits=())
            if self._stands(store, event, planned):
                return self._book.close(store, failure, replace(event, outcome=Outcome.HEALED))
        if not applied:
            raise ActiveError("The client kept writing to this session: it is left alone until it is quiet.")
        return self._unproven(store, failure, event, "The client kept writing to this session; its own version stays.")

    def _planned(
        self, store: Store, failure: Failure, event: Event, *, written: bool
    ) -> tuple[Session, Proposal | Refusal, Stamp] | None:
        """What to write, made from what is read when all is quiet and no turn runs, with the stamp of that.

        None where the session is not stuck on this failure any more.
        """
        assert event.kind is not None
        while True:
            read = settled(store, failure.session, self.context.clock)
            self._at_rest(store, failure, event)
            session = store.load(failure.session)
            if not self._still_stuck(store, failure, session, written=written):
                return None
            earlier = self._proposed.get(event.id)
            planned = self._proposer.propose(store, session, failure, event.kind, event.id, earlier)
            if isinstance(planned, Refusal):
                return session, planned, read
            if written or not self._stop_turn(store, session, failure):
                for line in thinking(session, planned.edits, event.kind):
                    logger.debug("{}: {}", marked(event), line)
                return session, planned, read

    def _still_stuck(self, store: Store, failure: Failure, session: Session, *, written: bool) -> bool:
        """Whether `failure` is what keeps the session from going on: its user may have gone on since it was looked at.

        What was `written` may have taken it away, and by hand there may be none: then as long as nothing came since.
        """
        found = diagnose(self.context, store, session.id)
        if found is not None:
            return found.failure.message == failure.message
        newest = session.newest.id if session.newest is not None else ""
        return (written or self._by_hand) and newest == failure.message

    def _went_on(self, store: Store, failure: Failure, event: Event, *, written: bool) -> Event:
        """The session is not stuck on the failure any more: nothing is written, and what was written stays."""
        if written:
            logger.info("{}: the client wrote over the repair, and the session went on since", marked(event))
            return self._book.close(store, failure, replace(event, outcome=Outcome.HEALED))
        made = self._book.standing(store, failure, event)
        return made or self._not_now(store, event, "It is not stuck on this any more: it went on, or was seen to.")

    def _allowed(self, store: Store, session: str) -> None:
        """ActiveError while nothing may be written, DiskError where nothing ever is."""
        held = self._held(store, session)
        if held is not None:
            raise ActiveError(f"Nothing is written: {held}.")
        reason = store.live()
        if reason is not None:
            raise DiskError(reason)

    def _at_rest(self, store: Store, failure: Failure, event: Event) -> None:
        """ActiveError while a turn runs that the repair is not about."""
        if store.look(failure.session).running and not kind_info(event.kind).open_turn:
            raise ActiveError("A turn of this session is running, or was cut off: it is left alone until it has ended.")

    def _as_read(self, store: Store, failure: Failure, event: Event, read: Stamp) -> bool:
        """Whether, right before the write, the session is as it was planned for: what was quiet then still is."""
        self._allowed(store, failure.session)
        self._proposer.heed(store, failure.session)
        self._at_rest(store, failure, event)
        if store.stamp(failure.session) == read:
            return True
        logger.info("{}: the client wrote while the repair was planned; it is planned again", marked(event))
        return False

    def _unproven(self, store: Store, failure: Failure, event: Event, detail: str) -> Event:
        """What was written is refused when read back: no half of it stays. Where nobody wrote, the fault is ours."""
        outcome, back = self._book.taken_back(store, event)
        if outcome is Outcome.FAILED:
            detail = f"Read back, the repair was still refused; it was taken back. {detail}"
        elif back:
            detail = f"The client wrote over a part of the repair, and the rest of it was taken back. {detail}"
        return self._book.close(store, failure, replace(event, outcome=outcome, detail=detail))

    def _settled(self, store: Store, failure: Failure, event: Event, session: Session, planned: Refusal) -> Event:
        """Planned again on what the client wrote over the repair: is the session accepted as it is now?"""
        proposed = self._proposed.get(event.id)
        if proposed is not None and not proposed.objections(session):
            return self._book.close(store, failure, replace(event, outcome=Outcome.HEALED))
        return self._unproven(store, failure, event, f"{capital(planned.reason)}.")

    def _overtaken(self, store: Store, session: Session, failure: Failure, planned: Refusal) -> Refusal:
        return self._book.overtaken(session, failure, planned, reads_once=self.context.clients.of(store).reads_once)

    def _stands(self, store: Store, event: Event, proposed: Proposal) -> bool:
        """Whether what is read back is what was written, and nothing speaks against it."""
        if not stand(store, proposed.changes):
            return False
        failpoint.reach("read back")
        left = proposed.objections(store.load(event.session))
        for reason in left:
            logger.warning("{}: read back, the rules object: {}", marked(event), reason)
        return not left

    def _stop_turn(self, store: Store, session: Session, failure: Failure) -> bool:
        if (key := (failure.store, failure.session, failure.message)) in self._stopped:
            return False
        note(self._stopped, key, value=True)
        self.on_abort(failure.session)
        return stop_turn(store, self.context.clients.of(store).server, session, failure)

    def _refuse(self, store: Store, failure: Failure, event: Event, refusal: Refusal) -> Event:
        outcome = Outcome.REFUSED if refusal.understood else Outcome.NOT_UNDERSTOOD
        detail = f"{capital(refusal.reason)}."
        return self._book.close(store, failure, replace(event, outcome=outcome, detail=detail, changes=()))


def _told(event: Event, planned: Proposal, *, again: bool) -> Event:
    """With what is done. Made again where the client wrote over a part of it, a repair is the same and told whole."""
    event = replace(event, changes=planned.changes)
    if again and set(planned.actions) <= set(event.actions):
        return event
    return replace(event, actions=planned.actions, detail=planned.detail, places=planned.places)
