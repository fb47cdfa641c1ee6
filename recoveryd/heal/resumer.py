"""Telling a session to go on, through the running client, and seeing in the store that it was told."""

from __future__ import annotations

import time
from dataclasses import replace

from loguru import logger

from recoveryd.clients import Asked, Look, Store
from recoveryd.core import Event, Failure, Outcome, RecoverydError
from recoveryd.diagnose import Context, left_alone
from recoveryd.heal.resume import Leave, Resume, Situation, decide
from recoveryd.ledger import Resumes
from recoveryd.providers import provider_of
from recoveryd.tell import marked

ARRIVES_S = 2.0  # the client writes a prompt within 0.1 s (measured), a loaded one in its own time
_POLL_S = 0.02


class Resumer:
    """Resumes sessions where the user asked for it (`auto_resume`). What failed before it was made stays as it is."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._config = context.config
        self._clients = context.clients
        self._resumes = Resumes(context.ledger.file, context.clock)
        self._started = context.clock()

    def go_on(self, store: Store, failure: Failure, event: Event, *, asked: bool = False) -> Event:
        """Prompt the session if that is to be done. The event says what became of it; raises no store's error.

        `asked` by a person: then only what stands in the way counts, and is said.
        """
        if event.kind is None or not (self._config.auto_resume or asked):
            return event
        try:
            return self._go_on(store, failure, event, asked=asked)
        except RecoverydError as error:
            return self._not_resumed(event, error.message.rstrip("."))

    def _go_on(self, store: Store, failure: Failure, event: Event, *, asked: bool) -> Event:
        assert event.kind is not None
        session, look, now = store.load(failure.session), store.look(failure.session), self._context.clock()
        if not asked and not self._may(store, failure, event):
            return event
        resumes, answered = self._resumes.of(store.id, failure.session), look.last_answer
        limit = self._config.max_retries
        client, newest = self._clients.of(store), session.newest
        case = Situation(
            recovery=event.id,
            outcome=event.outcome,
            kind=event.kind,
            failure=failure,
            session=session,
            resumes=resumes,
            last_answer=answered,
            now=now,
            started=self._started,
            max_retries=limit,
            prompt=client.last_prompt(session),
            stopped=newest is not None and client.stopped(newest),
            asked=asked,
        )
        verdict = decide(case)
        if isinstance(verdict, Leave):
            return self._left(event, verdict.reason, asked=asked)
        return self._prompt(store, failure, event, session.directory, verdict, look, asked=asked)

    def _may(self, store: Store, failure: Failure, event: Event) -> bool:
        """Whether it may go on by itself; what was not repaired may be so because it is to be left alone."""
        known = event.kind in self._config.kinds and provider_of(failure) is not None
        may = event.outcome is Outcome.HEALED or known
        return may and not left_alone(self._context, store, failure.session)

    def _prompt(
        self,
        store: Store,
        failure: Failure,
        event: Event,
        directory: str,
        how: Resume,
        before: Look,
        *,
        asked: bool,
    ) -> Event:
        def sending() -> None:
            self._resumes.add(event.id, store.id, failure.session, thinking_off=how.thinking_off)

        server, text = self._clients.of(store).server, self._config.resume_text
        became, problem = server.prompt(failure, directory, how.how, text, event.id, sending)
        if became in (Asked.NOBODY, Asked.BUSY):
            return self._left(event, problem, asked=asked)
        if became is not Asked.REFUSED and self._arrived(store, failure, event, before):
            off = " without thinking" if how.thinking_off else ""
            logger.info("{}: resumed{}", marked(event), off)
            return replace(event, resumed=True)
        return self._not_resumed(event, problem or "the client took the prompt, but did not store it")

    def _left(self, event: Event, reason: str, *, asked: bool) -> Event:
        """Nobody is told what was left alone, but who asked."""
        logger.info("{}: not resumed: {}", marked(event), reason)
        return replace(event, not_resumed=reason) if asked else event

    def _arrived(self, store: Store, failure: Failure, event: Event, before: Look) -> bool:
        """Whether the prompt is in the store: the client's word is not enough."""
        deadline, client = time.monotonic() + ARRIVES_S, self._clients.of(store)
        while time.monotonic() < deadline:
            if store.look(failure.session) != before and any(
                client.resumed_by(message) == event.id for message in store.load(failure.session).messages
            ):
                return True
            time.sleep(_POLL_S)
        return False

    def _not_resumed(self, event: Event, problem: str) -> Event:
        logger.warning("{}: could not be resumed: {}", marked(event), problem)
        return replace(event, not_resumed=problem)
