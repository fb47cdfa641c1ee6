"""Make one repair: wait for quiet, plan, stop the turn, keep the originals, write, read back; and again later."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from loguru import logger

from recoveryd.clients import Stamp, Store, all_written, wait_until_quiet
from recoveryd.core import (
    KINDS,
    REFUSED,
    ActiveError,
    BusyError,
    BusyStoreError,
    ByHand,
    ConflictError,
    DiskError,
    Event,
    FormError,
    LedgerError,
    LeftAloneError,
    Outcome,
    RecoverydError,
    Refusal,
    Session,
    UnreadError,
    capital,
    failpoint,
)
from recoveryd.diagnose import Case, Context, diagnose
from recoveryd.disk import recovery_lock
from recoveryd.heal.cut_texts import remove_cut_texts, write_cut_texts
from recoveryd.heal.propose import Proposal, Proposer
from recoveryd.heal.recorder import Recorder
from recoveryd.heal.stop_turn import TurnStopper
from recoveryd.tell import Callbacks, log_prefix, safely

ROUNDS = 3  # the first plan, and two more when the client wrote in between


class Recovery:
    """Carries out recoveries.

    `held(store, session)` says why nothing may be written to it now, None when it may: asked first, and right before
    each write. What the user wants left alone is, in any case. `by_hand`: as of `Proposer`.
    """

    def __init__(
        self,
        context: Context,
        *,
        callbacks: Callbacks | None = None,
        held: Callable[[Store, str], str | None] | None = None,
        by_hand: ByHand | None = None,
    ) -> None:
        config = context.config
        self.context = context
        self._recorder = Recorder(context)
        self._held = held or (lambda *_: config.idle if config.dry_run else None)  # `enabled` is for the daemon
        self._callbacks = callbacks or Callbacks()
        self._proposer = Proposer(context, by_hand)
        self._by_hand = by_hand is not None
        self._stopper = TurnStopper(self.on_abort)
        self._proposed: dict[str, Proposal] = {}  # of recoveries that are yet to be confirmed, without the images

    def on_abort(self, session_id: str) -> None:
        """Tell the parent system, before a session is touched, that its turn is over."""
        safely(f"{session_id}: on_abort", self._callbacks.on_abort, session_id)

    def on_complete(self, event: Event) -> None:
        """Tell the parent system how a recovery ended."""
        safely(f"{log_prefix(event)}: on_complete", self._callbacks.on_complete, event)

    def attempt(self, case: Case, still: Callable[[], bool] = lambda: True) -> Case:
        """Repair the session of a case; the outcome is in the ledger when this returns. Raises no error of the store.

        `still` is asked under the lock: whether it is still to be done.
        """
        case = self._locked(case, still)
        if case.outcome is not Outcome.HEALED:
            self._proposed.pop(case.recovery, None)
        return case.updated(seconds=time.monotonic() - case.begun)

    def propose(self, case: Case) -> tuple[Session, Proposal | Refusal]:
        """Return what `attempt` would do about a case, without doing it, and the session as it is now."""
        session = case.store.load(case.session)
        planned = self._proposer.propose(case, session)
        return session, self._overtaken(case, session, planned) if isinstance(planned, Refusal) else planned

    def confirm(self, case: Case) -> Case:
        """Read a repair back once more, after the client had time to clean up; what it undid is written again, once.

        `case` is what `attempt` returned. `pending`: it can't be read back now; confirm it later.
        """
        case = self._locked(case.updated(changes=self._recorder.changes(case)))
        if case.outcome is not Outcome.PENDING:
            self._proposed.pop(case.recovery, None)
        case = case.updated(refused_since=case.outcome is Outcome.HEALED and self._refused_since(case))
        return self._recorder.advised(case, self.context.clients.of(case.store))

    def _refused_since(self, case: Case) -> bool:
        """Whether the newest answer holds an error of unknown words: who tells of a heal tells of that, too."""
        try:
            look = case.store.look(case.session)
            if look.failure is None or look.failure.message == case.event.message:
                return False
            found = diagnose(self.context, case.store, case.session, look)
        except RecoverydError:  # nothing can be told of it now
            return False
        return found is not None and found.reason == REFUSED and found.failure.message != case.event.message

    def unconfirmed(self, store: Store) -> list[Case]:
        """List the repairs of a store that nobody read back yet, as `confirm` takes them. Errors of the ledger pass."""
        return self._recorder.unconfirmed(store)

    def confirmed(self, case: Case) -> bool:
        """Whether a repair needs no reading back any more: another process did that, or it is none by now."""
        entry = self._recorder.entry(case)
        return entry is None or (entry.confirmed and entry.outcome is not Outcome.PENDING)

    def _locked(self, case: Case, still: Callable[[], bool] = lambda: True) -> Case:
        store, case = case.store, replace(case, begun=time.monotonic())
        try:
            with recovery_lock(store.lock_path, self.context.lock_dir, store.id):
                if case.outcome is Outcome.PENDING:
                    if not still():
                        return case.updated(detail="It was seen to meanwhile: repaired, or its repair undone.")
                    made = None if self._by_hand or case.event.ahead else self._recorder.standing(case)
                    with self._recorder.forgotten_if_unwritten(case):
                        return made or (self._ended if KINDS[case.kind].stopped else self._repair)(case)
                case = self._confirm(case)
                if case.outcome is Outcome.HEALED:
                    self._recorder.confirm(case)
                return case
        except (ActiveError, BusyError, BusyStoreError) as error:
            return self._not_now(case, error.message).updated(until_written=isinstance(error, UnreadError))
        except LeftAloneError as error:  # on no record: it would keep us from it when that was taken back
            left = self._not_now(case, error.message)
            return left if case.outcome is Outcome.HEALED else left.became(Outcome.REFUSED)
        except LedgerError:
            raise  # without a ledger nothing is written, and nothing can be recorded
        except DiskError as error:  # what is half written stays pending: the next attempt brings it to an end first
            return self._failed(case, error.in_a_line, close=False)
        except RecoverydError as error:
            return self._failed(case, error.message, refused=isinstance(error, FormError))
        except Exception as error:  # a record that nobody thought of: told and recorded once, like any failure
            return self._failed(case, self._recorder.fault(case, error))

    def _confirm(self, case: Case) -> Case:
        known = self._recorder.entry(case)
        if known is None:  # taken back by an attempt that came between, which is told for itself
            return case.became(Outcome.UNDONE, "It was taken back, or the ledger was replaced.")
        if known.outcome not in (Outcome.HEALED, Outcome.PENDING):  # undone by the user, say
            return case.became(known.outcome, known.detail)
        failpoint.reach("confirm")
        if (gone := self._recorder.gone(case)) is not None:
            return gone
        if known.outcome is Outcome.HEALED and (
            all_written(case.store, case.event.changes) or self._recorder.repaired_since(known)
        ):
            return case
        found = diagnose(self.context, case.store, case.session)
        if case.recovery not in self._proposed and found is not None:  # made by a process that is gone: it knew why
            why = case.refused if found.refused is None else replace(found.refused, kind=case.kind)
            case = replace(case, failure=found.failure, refused=why)
        logger.info("{}: it does not stand as it was written; it is made again if it has to be", log_prefix(case.event))
        return self._repair(case)

    def _not_now(self, case: Case, detail: str) -> Case:
        """Record nothing of what passes by itself: the failure stays open, and is looked at again."""
        if case.outcome is Outcome.HEALED:  # what stands of it is known to the ledger, for a later look or a start
            detail = f"Repaired ({case.recovery}), and not read back yet. {detail}"
        else:
            self._recorder.drop_untouched(case)
        return case.became(Outcome.PENDING, detail).updated(changes=())

    def _failed(self, case: Case, detail: str, *, close: bool = True, refused: bool = False) -> Case:
        known = self._recorder.entry(case)
        if known is not None and known.outcome is Outcome.HEALED:
            return self._recorder.unread(case, detail)
        case = case.became(Outcome.REFUSED if refused else Outcome.FAILED, detail)
        if not close and known is None:
            return case.updated(id="")  # no command knows it
        return self._recorder.close(case) if close else case

    def _repair(self, case: Case) -> Case:
        """Plan and write until the repair is stored as planned. A case that is healed already is repaired again, as the
        same recovery.
        """
        written = case.outcome is Outcome.HEALED
        self._allowed(case)
        if not written:
            healed = self._recorder.finish_interrupted(case, partial(self._allowed, case))
            if healed is not None:
                return healed
        applied = False
        for _ in range(ROUNDS):
            made = self._planned(case, written=written)
            if made is None:
                return self._went_on(case, written=written)
            session, planned, read = made
            case = case.titled()
            if isinstance(planned, Refusal):
                return self._judged(case, session, planned) if written else self._refuse(case, session, planned)
            case = planned.told(case, again=written)
            earlier = self._recorder.keep(case, written=written)
            if not self._as_read(case, read):
                continue
            applied = True
            try:
                with write_cut_texts(case.store, planned.changes, planned.files):
                    case.store.apply(planned.changes)
            except ConflictError as error:
                logger.info("{}: {} It is planned again.", log_prefix(case.event), error.message)
                continue
            written = True
            remove_cut_texts(case.store, earlier, but=self._recorder.changes(case))
            self._proposed[case.recovery] = replace(planned, changes=(), edits=())
            if self._stands(case, planned):
                return self._recorder.close(case.became(Outcome.HEALED))
        if not applied:
            raise ActiveError("The client kept writing to this session: it is left alone until it is quiet.")
        return self._unproven(case, "The client kept writing to this session; its own version stays.")

    def _planned(self, case: Case, *, written: bool) -> tuple[Session, Proposal | Refusal, Stamp] | None:
        """Plan from what is read when all is quiet and no turn runs; also returns the stamp of that.

        None where the session is not stuck on this failure any more.
        """
        server = self.context.clients.of(case.store).server
        while True:
            read = wait_until_quiet(case.store, case.session, self.context.clock)
            self._at_rest(case)
            session = case.store.load(case.session)
            if not self._still_stuck(case, session, written=written):
                return None
            planned = self._proposer.propose(case, session, self._proposed.get(case.recovery))
            if isinstance(planned, Refusal):
                return session, planned, read
            if written or not self._stopper.stop(case.store, server, session, case.failure):
                from recoveryd.repair import explain_thinking  # late

                for line in explain_thinking(session, planned.edits, case.kind):
                    logger.debug("{}: {}", log_prefix(case.event), line)
                return session, planned, read

    def _still_stuck(self, case: Case, session: Session, *, written: bool) -> bool:
        """Whether the failure is what keeps the session from going on: its user may have gone on since the look.

        What was `written` may have taken it away, and there may be none yet: then as long as nothing came since.
        """
        found = diagnose(self.context, case.store, session.id)
        if found is not None and (found.stuck or found.kind is not None):  # also what its next prompt clears
            return found.failure.message == case.failure.message
        newest = session.newest.id if session.newest is not None else ""
        unrefused = self._by_hand or case.event.ahead  # what is stored need not have been refused
        return (unrefused or (written and found is None)) and newest == case.failure.message

    def _went_on(self, case: Case, *, written: bool) -> Case:
        """End a case whose session is not stuck on the failure any more: nothing is written, what was written stays."""
        if written:
            logger.info("{}: the session went on since, or its turn was taken back", log_prefix(case.event))
            return self._recorder.close(case.became(Outcome.HEALED))
        made = self._recorder.standing(case)
        return made or self._not_now(case, "It is not stuck on this any more: it went on, or was seen to.")

    def _allowed(self, case: Case) -> None:
        """Raise ActiveError while nothing may be written, DiskError where nothing ever is."""
        held = self._held(case.store, case.session)
        if held is not None:
            raise ActiveError(f"Nothing is written: {held}.")
        reason = case.store.live()
        if reason is not None:
            raise DiskError(reason)

    def _at_rest(self, case: Case) -> None:
        """Raise ActiveError while a turn runs that the repair is not about."""
        if case.store.look(case.session).running and not KINDS[case.kind].open_turn:
            raise ActiveError("A turn of this session is running, or was cut off: it is left alone until it has ended.")

    def _as_read(self, case: Case, read: Stamp) -> bool:
        """Whether, right before the write, the session is as it was planned for."""
        self._allowed(case)
        self._proposer.heed(case)
        self._at_rest(case)
        if case.store.stamp(case.session) == read:
            return True
        logger.info("{}: the client wrote while the repair was planned; it is planned again", log_prefix(case.event))
        return False

    def _unproven(self, case: Case, detail: str) -> Case:
        """Take back what is still refused when it is read back: no half of it stays."""
        outcome, back = self._recorder.taken_back(case)
        if outcome is Outcome.FAILED:  # nobody else wrote: the fault is ours
            detail = f"Read back, the repair was still refused; it was taken back. {detail}"
        elif back:
            detail = f"The client wrote over a part of the repair, and the rest of it was taken back. {detail}"
        return self._recorder.close(case.became(outcome, detail))

    def _judged(self, case: Case, session: Session, planned: Refusal) -> Case:
        """End a case where no second plan was found for what the client wrote over the repair: healed if the rules
        accept the session as it is now.
        """
        proposed = self._proposed.get(case.recovery)
        if proposed is not None and not proposed.objections(session):
            return self._recorder.close(case.became(Outcome.HEALED))
        return self._unproven(case, f"{capital(planned.reason)}.")

    def _overtaken(self, case: Case, session: Session, planned: Refusal) -> Refusal:
        if self._by_hand:  # nothing need have been refused
            return planned
        return self._recorder.overtaken(case, session, planned, self.context.clients.of(case.store))

    def _stands(self, case: Case, proposed: Proposal) -> bool:
        """Whether what is read back is what was written, and nothing speaks against it."""
        if not all_written(case.store, proposed.changes):
            return False
        failpoint.reach("read back")
        left = proposed.objections(case.store.load(case.session))
        for reason in left:
            logger.warning("{}: read back, the rules object: {}", log_prefix(case.event), reason)
        return not left

    def _ended(self, case: Case) -> Case:
        """Stop a client that repeats itself; nothing is edited."""
        self._allowed(case)
        session = case.store.load(case.session)
        still = partial(self._still_stuck, case, session, written=False)
        if not still():
            return self._went_on(case, written=False)
        why = self._proposer.propose(case, session)
        assert isinstance(why, Refusal)
        if case.kind in self.context.config.kinds:
            server = self.context.clients.of(case.store).server
            ended = self._stopper.end(server, session, case.failure, still, why)
            if ended is None:
                return self._not_now(case, "Its client is slow to stop what it does; it is asked again in a moment.")
            why = ended
        return self._refuse(case.titled(), session, why)

    def _refuse(self, case: Case, session: Session, planned: Refusal) -> Case:
        if case.event.ahead or planned.again_s:
            return self._not_now(case, f"{capital(planned.reason)}.").updated(again_s=planned.again_s)
        refusal = self._overtaken(case, session, planned)
        outcome = Outcome.REFUSED if refusal.understood else Outcome.NOT_UNDERSTOOD
        return self._recorder.close(case.became(outcome, f"{capital(refusal.reason)}.").updated(changes=()))
