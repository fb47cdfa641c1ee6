"""Prompt a session to go on, through the running client, and see in the store that the prompt arrived."""

from __future__ import annotations

import time
from dataclasses import replace

from loguru import logger

from recoveryd.clients import Asked, SessionStatus
from recoveryd.core import ActiveError, Outcome, RecoverydError
from recoveryd.diagnose import Case, Context, left_alone
from recoveryd.heal.resume_policy import Leave, Resume, Situation, decide_resume
from recoveryd.ledger import Resumes
from recoveryd.providers import provider_of
from recoveryd.tell import log_prefix

ARRIVES_S = 2.0  # the client writes a prompt within 0.1 s (measured), a loaded one in its own time
_POLL_S = 0.02


class Resumer:
    """Prompts sessions to go on where the user wants it (`auto_resume`). What failed before its start is left alone."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._config = context.config
        self._clients = context.clients
        self._resumes = Resumes(context.ledger.file, context.clock)

    def go_on(self, case: Case, *, asked: bool = False) -> Case:
        """Prompt the session to go on, if that is to be done; the event says what came of it. Raises no store's error.

        `asked` by a person: then only what makes it impossible counts, and is told.
        """
        if not (self._config.auto_resume or asked):
            return case
        try:
            return self._go_on(case, asked=asked)
        except RecoverydError as error:
            return self._not_resumed(case, error.message.rstrip("."))

    def _go_on(self, case: Case, *, asked: bool) -> Case:
        store, failure = case.store, case.failure
        session, look, now = store.load(case.session), store.look(case.session), self._context.clock()
        if not asked and not self._may(case):
            return case
        client, newest = self._clients.of(store), session.newest
        situation = Situation(
            recovery=case.recovery,
            outcome=case.outcome,
            kind=case.kind,
            failure=failure,
            session=session,
            resumes=self._resumes.of(store.id, case.session),
            last_answer=look.last_answer,
            now=now,
            started=self._context.started,
            max_retries=self._config.max_retries,
            prompt=client.last_prompt(session),
            stopped=newest is not None and client.stopped(newest),
            asked=asked,
        )
        verdict = decide_resume(situation)
        if isinstance(verdict, Leave):
            return self._left(case, verdict.reason, asked=asked)
        if look.failure is not None and look.failure.message == failure.message:
            case = replace(case, failure=look.failure)  # that of a case from the ledger does not say in which folder
        return self._prompt(case, session.directory, verdict, look, asked=asked)

    def _may(self, case: Case) -> bool:
        """Whether a session may go on by itself: one that was not repaired perhaps is to be left alone."""
        known = case.kind in self._config.kinds and provider_of(case.failure) is not None
        may = case.outcome is Outcome.HEALED or known
        return may and not left_alone(self._context, case.store, case.session)

    def _prompt(self, case: Case, directory: str, how: Resume, before: SessionStatus, *, asked: bool) -> Case:
        def sending() -> None:
            if case.store.look(case.session) != before:  # a client at work takes seconds, in which its user may go on
                raise ActiveError("the session went on meanwhile")
            self._resumes.add(case.recovery, case.store.id, case.session, thinking_off=how.thinking_off)

        server, text = self._clients.of(case.store).server, self._config.resume_text
        try:
            became, problem = server.prompt(case.failure, directory, how.how, text, case.recovery, sending)
        except ActiveError as error:
            return self._left(case, error.message, asked=asked)
        if became in (Asked.NOBODY, Asked.BUSY):
            return self._left(case, problem, asked=asked)
        if became is not Asked.REFUSED and self._arrived(case, before):
            off = " without thinking" if how.thinking_off else ""
            logger.info("{}: resumed{}", log_prefix(case.event), off)
            return case.updated(resumed=True)
        return self._not_resumed(case, problem or "the client took the prompt, but did not store it")

    def _left(self, case: Case, reason: str, *, asked: bool) -> Case:
        """Log why a session was not prompted; only who `asked` is told."""
        logger.info("{}: not resumed: {}", log_prefix(case.event), reason)
        return case.updated(not_resumed=reason) if asked else case

    def _arrived(self, case: Case, before: SessionStatus) -> bool:
        """Whether the prompt is in the store: the client's word is not enough."""
        store, client = case.store, self._clients.of(case.store)
        deadline = time.monotonic() + ARRIVES_S
        while time.monotonic() < deadline:
            if store.look(case.session) != before and any(
                client.resumed_by(message) == case.recovery for message in store.load(case.session).messages
            ):
                return True
            time.sleep(_POLL_S)
        return False

    def _not_resumed(self, case: Case, problem: str) -> Case:
        logger.warning("{}: could not be resumed: {}", log_prefix(case.event), problem)
        return case.updated(not_resumed=problem)
