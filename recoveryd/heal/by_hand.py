"""Do what a person asks for by a button or a key: take a recovery back, or tell its session to go on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from recoveryd.core import Event, Outcome, RecoverydError
from recoveryd.diagnose import Case, Context
from recoveryd.heal.resumer import Resumer
from recoveryd.heal.undo import take_back
from recoveryd.tell import NOT_AGAIN


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a button or a key: a heading, a sentence, the recovery as it is now."""

    heading: str
    says: str
    event: Event


def undo_by_hand(context: Context, case: Case) -> Answer:
    """Undo a recovery for who pressed a button or a key; tell in words what came of it. Raises no RecoverydError."""
    event = case.event
    try:
        take_back(case.store, context.ledger, context.lock_dir, event.id)
    except RecoverydError as error:
        return Answer("Not undone", f"{error.message} {error.hint}".strip(), _as_it_is(context, event))
    return Answer("Undone", f"the session {NOT_AGAIN}.", replace(event, outcome=Outcome.UNDONE))


def go_on_by_hand(context: Context, resumer: Resumer, case: Case) -> Answer:
    """Tell a session to go on for who pressed a button or a key; tell in words what came of it."""
    event = case.event
    now = _as_it_is(context, event)
    if now.outcome is Outcome.UNDONE:
        return Answer("Does not go on", "its repair was undone, so it would be refused.", now)
    went = resumer.go_on(case, asked=True).event
    if went.resumed:
        return Answer("Goes on", "the session was told to go on.", event)
    goes_on = "" if _is_gone(case) else f" {context.clients.of(case.store).go_on(case.store, case.session)}."
    return Answer("Does not go on", f"{went.not_resumed}.{goes_on}", event)


def _is_gone(case: Case) -> bool:
    """Whether the session was deleted; not where that can't be told."""
    with suppress(RecoverydError):
        return not case.store.has(case.session)
    return False


def _as_it_is(context: Context, event: Event) -> Event:
    """Return an event as undone where another way undid it; else, or where that can't be told, as it was."""
    with suppress(RecoverydError):
        known = context.ledger.find(event.id)
        if known is not None and known.outcome is Outcome.UNDONE:
            return replace(event, outcome=Outcome.UNDONE)
    return event
