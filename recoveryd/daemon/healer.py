"""Attend to one session: look at it, repair it, read the repair back, tell the user."""

from __future__ import annotations

import time
from functools import partial
from typing import Literal

from loguru import logger

from recoveryd.clients import SETTLE_S, Store, root_session
from recoveryd.core import Event, LedgerError, Outcome, RecoverydError, Refusal, command_line, keep_newest, kind_info
from recoveryd.daemon.log_once import LogOnce
from recoveryd.daemon.own_process import release_memory
from recoveryd.daemon.schedule import Schedule
from recoveryd.daemon.store_locks import StoreLocks
from recoveryd.diagnose import Case, Context, Next, Triage, Verdict, left_alone, undone_repair
from recoveryd.heal import Answer, Lifecycle, Recovery, Resumer, ahead, by_hand
from recoveryd.ledger import Handled, Judged, Record
from recoveryd.providers import VERSION
from recoveryd.settings import paused, why_held
from recoveryd.tell import Callbacks, Commands, Notifier, Teller, Toast, deeds_by_place, log_prefix, next_step

REST_S = 3.0
_SOON_S, _LATEST_S = 2.0, 60.0  # when what may pass by itself is looked at again, each time later; then at sweeps
_NO_LEDGER = "no ledger"  # what was told last of it
_LOOKED_AT_AGAIN = (Outcome.PENDING, Outcome.FAILED)
# open: to be looked at again at the next sweep; old: stuck for too long to be news; done: nothing more to do
Attended = Literal["open", "old", "done"]


class Healer:
    """Attends to sessions, one at a time, in the thread of the daemon. What is due later goes into `schedule`.

    Only stores are written to whose lock is among `locks`.
    """

    def __init__(
        self,
        context: Context,
        locks: StoreLocks,
        schedule: Schedule,
        log_once: LogOnce,
        callbacks: Callbacks | None = None,
    ) -> None:
        self._context = context
        self._config = config = context.config
        self._ledger = context.ledger
        self._locks = locks
        self._schedule = schedule
        self._log_once = log_once
        self._hooks = Commands(config.hooks)
        both = (callbacks or Callbacks()).then(self._hooks.callbacks)
        self._triage = Triage(context, lambda store, why: log_once.say((store, "live"), why))
        self._recovery = Recovery(context, callbacks=both, held=self.held_there)
        self._lifecycle = Lifecycle(self._recovery, self._ended, schedule.at)
        self._resumer = Resumer(context)
        self._notifier = Notifier(enabled=config.notify.desktop and not config.notify.quiet)
        self._teller = Teller(context, self._notifier, self._recovery.on_complete, self._press)
        self._ending = False
        self._started = time.time()
        self._looked_ahead: dict[tuple[str, str], str] = {}  # sessions by what they were like then
        self._open: set[tuple[str, str]] = set()
        self._waited: dict[tuple[str, str], float] = {}  # open sessions: for how long before the last look
        self._rests_until: dict[str, float] = {}  # stores that something was in the way of: time.monotonic()

    @property
    def told(self) -> int:
        """How many recoveries came to an end, healed or not."""
        return self._teller.told

    def held(self, store: Store) -> str | None:
        """Tell why nothing may be written to a store now, not even to finish what a crash cut off; None when it may."""
        if not self._locks.mine(store):
            return "this recoveryd does not watch it any more"
        return why_held(self._config, self._context.state_dir, time.time())

    def held_there(self, store: Store, session: str) -> str | None:
        """Tell why nothing may be written to a session now: its store is held, or its user wants it left alone."""
        alone = left_alone(self._context, store, session)
        ignored = f"its session is ignored (`{command_line('ignore')}` lists what is)"
        return self.held(store) or (ignored if alone else None)

    def open(self, store: Store) -> list[str]:
        """List the sessions that the next sweep looks at again."""
        return [session for store_id, session in self._open if store_id == store.id]

    def later(self, store: Store, session: str, seconds: float = SETTLE_S) -> None:
        """Attend to a session once nobody has touched it for a moment."""
        self._schedule.at(seconds, (store.id, session), lambda: self.attend(store, session))

    def attend(self, store: Store, session: str) -> Attended:
        """Look at a session now, and repair it if it is to be repaired. Raises nothing."""
        attended: Attended = "open"
        try:
            attended = self._look(store, session)
        except RecoverydError as error:
            text = f"session {session}: {error.message} {error.hint}".strip()
            self._log_once.say((store.id, session), text, error.message)
            if isinstance(error, LedgerError):
                self._tell_no_ledger(error)
            self._soon(store, session)
        except Exception:
            logger.exception("session {}: a fault of recoveryd; the session is left alone", session)
        if attended != "open":
            self._waited.pop((store.id, session), None)
        (self._open.add if attended == "open" else self._open.discard)((store.id, session))
        return attended

    def _tell_no_ledger(self, error: LedgerError) -> None:
        """Tell once by a notice that nothing can be kept, so nothing repaired: the log is mostly on the same disk."""
        if self._log_once.new(_NO_LEDGER, error.message):
            self._notifier.send(Toast("Sessions are not healed", f"{error.message} {error.hint}".strip()))

    def _soon(self, store: Store, session: str) -> None:
        """Look again soon at what was in the way and may pass without a write: another program's lock, say."""
        wait = 2 * self._waited.get((store.id, session), _SOON_S / 2)
        if wait < _LATEST_S:
            self._waited[store.id, session] = wait
            self._schedule.at(wait, (store.id, session), partial(self._again, store, session))

    def _again(self, store: Store, session: str) -> None:
        """Look at a session again once others had as much time as its store took last: each look may wait for a
        lock.
        """
        began, rests = time.monotonic(), self._rests_until.get(store.id, 0.0)
        if began < rests:
            self._schedule.at(rests - began, (store.id, session), partial(self._again, store, session))
            return
        self.attend(store, session)
        self._rests_until[store.id] = 2 * time.monotonic() - began

    def take_up(self, store: Store) -> None:
        """Read back the repairs of a process that ended before it could do so."""
        self._lifecycle.take_up(store)

    def finish(self, renewed: Context | None = None, *, leave: bool = False) -> None:
        """Read back and tell the repairs of the last moment, and end the hooks, before the daemon ends.

        `renewed`: it goes on by another configuration, which says whether these sessions are told to go on. `leave`:
        they are left to the process that comes next.
        """
        self._ending = renewed is None or bool(renewed.config.idle)
        self._resumer = Resumer(renewed or self._context)
        for recovery in () if leave else self._lifecycle.waiting():
            self._log_once.safely("confirm", partial(self._lifecycle.end, recovery))
        self._hooks.close()
        self._teller.close()

    def close(self) -> None:
        """Show no further notice."""
        self._notifier.close()

    def _look(self, store: Store, session: str) -> Attended:
        if not self._locks.mine(store):
            return "open"
        verdict = self._triage.judge(store, session)
        if verdict.next is Next.AGAIN:
            if verdict.wait:
                self.later(store, session, verdict.wait)
            return "open"
        if verdict.next is Next.TOO_OLD:
            return "old"
        found = verdict.diagnosis
        if found is None or found.refused is None or verdict.next is Next.NOTHING:
            if verdict.reason:
                logger.debug("session {}: {}", session, verdict.reason)
            return self._look_ahead(store, session) if found is None and self._config.heal_ahead else "done"
        if self._held_back(store, session):
            return "open"
        if verdict.next is Next.RECOVER:
            for recovery in self._lifecycle.due():  # a thousand may fail at once: none waits for the end
                self._log_once.safely("confirm", partial(self._lifecycle.confirm, recovery))
            return self._recover(Case.begin(store, found.failure, found.refused), verdict.handled)
        self._give_up(Case.begin(store, found.failure, found.refused), verdict)
        return "done"

    def _look_ahead(self, store: Store, session: str) -> Attended:
        """Repair what the next prompt would be refused for, once nobody wrote to the session for a while."""
        key, stamp = (store.id, session), store.stamp(session)
        if (
            stamp.newest_mtime_ns / 1e9 < self._started
            or self._looked_ahead.get(key) == stamp.digest
            or not ahead.may_foresee(store.look(session))
        ):
            return "done"
        if wait := self._triage.quiet.wait(key, stamp, self._config.heal_ahead_seconds):
            self.later(store, session, wait)
            return "done"
        if self._held_back(store, session):
            return "open"
        attended = self._repair_ahead(store, session)
        if attended == "done":  # else it is made up for
            keep_newest(self._looked_ahead, key, stamp.digest)
        return attended

    def _repair_ahead(self, store: Store, session: str) -> Attended:
        case = ahead.foresee(self._context, store, session)
        if case is None or ahead.foreseen_before(self._context, case):
            return "done"
        _, planned = self._recovery.propose(case)
        if isinstance(planned, Refusal):
            logger.debug("session {}: nothing is repaired ahead: {}", session, planned.reason)
            return "done"
        return self._recover(case, None)

    def _give_up(self, case: Case, verdict: Verdict) -> None:
        """Record and tell, for the last time, that a session had all its recoveries."""
        began, title = root_session(case.store, case.session)
        client = self._context.clients.of(case.store)
        advice = client.advice(case.store, case.failure, case.kind) if kind_info(case.kind).cleared_by_prompt else ""
        step = advice or next_step(case.kind, client, case.store, case.session)
        detail = f"{verdict.reason} It is left alone until a prompt is answered: {step}."
        judged = Judged(verdict.state, VERSION, verdict.answered, began)
        self._ledger.record(
            Record(case.recovery, case.failure, title, case.kind, detail, judged=judged, client=case.store.client),
            Outcome.GAVE_UP,
        )
        self._teller.tell(case.became(Outcome.GAVE_UP, detail).updated(title=title))

    def _held_back(self, store: Store, session: str) -> bool:
        """Whether the user wants this session, or all of them for now, left alone; the next sweep asks again."""
        pause = paused(self._context.state_dir, time.time())
        if pause is not None:
            ends = command_line("unpause")
            then = f"for `{ends}`" if pause.until is None else f"until then, or for `{ends}`"
            self._log_once.say("pause", f"paused{pause.ending}: sessions are stuck and wait {then}")
            return True
        self._log_once.forget("pause")
        return left_alone(self._context, store, session)

    def _recover(self, case: Case, known: Handled | None) -> Attended:
        if self._config.idle:
            self._foretell(case)
            return "open"  # a dry run does not count
        failure, ledger = case.failure, self._ledger
        key = failure.store, failure.session, failure.message

        def still() -> bool:
            return ledger.handled(*key) == known and undone_repair(case.store, ledger, failure) is None

        case = self._lifecycle.begin(case, still)
        if case.outcome is Outcome.PENDING and kind_info(case.kind).stopped:
            self.later(case.store, case.session)
        elif case.event.again_s:
            self.later(case.store, case.session, case.event.again_s)
        elif case.outcome is Outcome.PENDING and not case.event.until_written:
            self._soon(case.store, case.session)
        return "open" if _stays_open(case.event) else "done"

    def _foretell(self, case: Case) -> None:
        """Log once what a repair would do, edit by edit."""
        failure, kind, about = case.failure, case.kind, (case.store.id, case.failure.message)
        if not self._log_once.new(about, self._config.idle):
            return
        try:
            _, planned = self._recovery.propose(case)
        except RecoverydError:
            self._log_once.forget(about)  # nothing was told yet
            raise
        if isinstance(planned, Refusal) and planned.again_s:
            self._log_once.forget(about)
            logger.warning("session {}: {}; it is asked again", failure.session, planned.reason)
            self.later(case.store, case.session, planned.again_s)
            return
        if isinstance(planned, Refusal):
            logger.warning("session {}: {}: would be left alone: {}", failure.session, kind, planned.reason)
            return
        logger.warning("session {}: {}: {}", failure.session, kind, planned.would)
        for line in deeds_by_place(planned.places, planned.actions, kind, done=False):
            logger.warning("session {}: would be done in {}", failure.session, line)
        logger.warning("session {}: nothing is written: {}", failure.session, self._config.idle)

    def _ended(self, case: Case) -> None:
        """Tell how a recovery ended. A failed one may succeed later: it is told once and looked at again."""
        event = case.event
        about = (event.store, event.message)
        self._log_once.forget(_NO_LEDGER)
        if _stays_open(event):
            self._open.add((event.store, event.session))
        if event.outcome is Outcome.PENDING:
            self._log_once.say(about, f"session {event.session}: {event.detail}")
        elif event.outcome.taken_back:  # mostly by the user, who knows
            known = self._ledger.find(event.id)
            by_user = known is not None and known.outcome.taken_back
            logger.info("{}: {}", log_prefix(event), "by its user" if by_user else event.detail)
        elif event.outcome is not Outcome.FAILED:
            self._teller.tell(case if self._ending or event.ahead else self._resumer.go_on(case))
        else:
            logged = self._log_once.knows(event.detail)  # at the look
            if self._log_once.new(about, event.detail):
                self._teller.tell(case, logged=logged)
        self._schedule.at(REST_S, "rest", release_memory)  # once no other recovery follows

    def _press(self, title: str, case: Case) -> None:
        """Hand what a button asks for to the daemon's thread. Called in the thread of a notice."""
        self._schedule.call(partial(self._undo if title == "Undo" else self._continue, case))

    def _undo(self, case: Case) -> None:
        answer = by_hand.undo_by_hand(self._context, case)
        self._answer(answer)
        if answer.event.outcome is Outcome.UNDONE:
            self._teller.undone(case.store, answer.event)

    def _continue(self, case: Case) -> None:
        self._answer(by_hand.go_on_by_hand(self._context, self._resumer, case))

    def _answer(self, answer: Answer) -> None:
        self._teller.answer(answer.event, answer.heading, answer.says)


def _stays_open(event: Event) -> bool:
    """Whether another look may end otherwise though nobody wrote meanwhile."""
    return event.outcome in _LOOKED_AT_AGAIN and not event.until_written
