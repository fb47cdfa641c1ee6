"""What a person asks for of a recovery that is done, by a button or a key: take it back, or let the session go on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from recoveryd.clients import Store
from recoveryd.core import Event, Failure, Outcome, RecoverydError
from recoveryd.diagnose import Context
from recoveryd.heal.resumer import Resumer
from recoveryd.heal.undo import take_back


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it: a heading, a sentence, and the recovery as it is now."""

    heading: str
    says: str
    event: Event


def undo(context: Context, store: Store, event: Event) -> Answer:
    """Take the recovery back. Raises nothing of the store's or the ledger's."""
    try:
        take_back(store, context.ledger, context.lock_dir, event.id)
    except RecoverydError as error:
        return Answer("Not undone", f"{error.message} {error.hint}".strip(), event)
    says = "the session is as it was before, and is not repaired again."
    return Answer("Undone", says, replace(event, outcome=Outcome.UNDONE))


def go_on(context: Context, store: Store, resumer: Resumer, failure: Failure, event: Event) -> Answer:
    """Tell the session to go on, if its client listens and nothing stands in the way. `failure` is what was healed."""
    known = context.ledger.find(event.id)
    if known is not None and known.outcome is Outcome.UNDONE:
        undone = replace(event, outcome=known.outcome)
        return Answer("Does not go on", "its repair was undone, so it would be refused.", undone)
    went = resumer.go_on(store, failure, event, asked=True)
    if went.resumed:
        return Answer("Goes on", "the session was told to go on.", event)
    return Answer("Does not go on", f"{went.not_resumed}. Type your prompt in the client.", event)
