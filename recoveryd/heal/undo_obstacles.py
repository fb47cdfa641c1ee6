"""What stands in the way of an undo."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from recoveryd.clients import Clients, Config, Store, stored_images, untouched
from recoveryd.core import (
    CUT_OFF,
    Change,
    Entry,
    FormError,
    RefusedError,
    StoreError,
    command_line,
    first_of,
    kind_info,
)
from recoveryd.ledger import Ledger

_OLDER = ", or an older copy was put back"  # of its session or store, by hand: from here that looks alike


def below(ledger: Ledger, entry: Entry, newer: Sequence[Entry]) -> RefusedError:
    """Say that newer recoveries stand on one, and what to do: of one that lost its originals there is no way back."""
    says = f"{entry.id} lies below a newer recovery of its session."
    gone = next((one.id for one in newer if not ledger.changes(one.id)), None)
    if gone is None:
        return RefusedError(says, f"First: {command_line('undo', newer[0].id)}", recoveries=[newer[0].id])
    says += f" The originals of {gone} are no longer in the ledger, so neither can be undone."
    export = command_line("ledger", "export", entry.id)
    return RefusedError(says, f"What {entry.id} changed, as it was before: {export}", recoveries=[gone])


def keys_of_lost(store: Store, entry: Entry, changes: Sequence[Change]) -> Collection[str]:
    """List the keys of the records that have nothing left to belong to."""
    if not store.has(entry.session):
        return {change.key for change in changes}
    with suppress(StoreError):  # of a session that can't be read as a whole nothing is known to be deleted
        return store.content.homeless(changes, {message.id for message in store.load(entry.session).messages})
    return ()


def obstacle_of(store: Store, entry: Entry, changes: Sequence[Change]) -> str | None:
    """Tell why a recovery is undone by force alone: something would be lost. None where nothing would be."""
    if not store.has(entry.session):
        return f"The session of {entry.id} is not stored any more: its client deleted it{_OLDER}."
    found = stored_images(store, changes)
    ours = ("after", "before") if entry.outcome in CUT_OFF else ("after",)
    changed = [change.key for change, now in zip(changes, found, strict=True) if now not in ours]
    # Where a repair only added, what was added is gone: that tells less.
    if changed and untouched(store, changes) and any(store.read_all([c.key for c in changes if c.before is not None])):
        return f"What {entry.id} changed is stored as it was before already: an older copy was put back, say."
    if changed:
        those = first_of(changed, 1)
        if any(now is not None for now in store.read_all(changed)):
            return f"{those} changed since {entry.id}."
        gone = "is not stored any more: its client deleted it"
        gone = gone if len(changed) == 1 else "are not stored any more: their client deleted them"
        return f"Of what {entry.id} changed, {those} {gone}{_OLDER}."
    # What was set aside of a deleted message is as it was left: not there.
    if entry.outcome not in CUT_OFF and keys_of_lost(store, entry, changes):
        return f"A message that {entry.id} changed is not stored any more: its client deleted it{_OLDER}."
    if store.look(entry.session).running and not own_turn(store, entry):
        return "A turn of this session is running, or was cut off."
    try:
        said = answered(store, entry)
    except FormError:
        form = "in a form that is not repaired (turns of it were taken back, say)"
        return f"The session went on since {entry.id} {form}: what is put back may be refused for good."
    return f"The session went on since {entry.id}: the model answered{said}." if said else None


def own_turn(store: Store, entry: Entry) -> bool:
    """Whether the turn that is not ended is the one that the recovery was about."""
    if not kind_info(entry.kind).open_turn:
        return False
    try:
        messages = store.load(entry.session).messages
    except FormError:  # what was repaired had another one
        return False
    turns = [m for m in messages if m.role == "assistant" and not m.completed]
    newest = max(turns, key=lambda message: message.by_time, default=None)
    return newest is not None and newest.id == entry.message


def answered(store: Store, entry: Entry) -> str:
    """Tell in words where the model answered behind what had failed, be it with a tool call alone; "" where it did not.
    A command of the user's is no answer, nor is one that was stopped before a word of it.

    By the client's clock alone, which made all of them; only where that message is gone by ours, and then it may have
    answered in another file of a thread, which has nothing of what was repaired.
    """
    session = store.load(entry.session)
    ended = [m for m in session.messages if m.role == "assistant" and m.error is None and m.completed]
    client = Clients(Config()).of(store)
    answers = [m for m in ended if not client.by_shell(m) and (m.parts or not client.stopped(m))]
    failed = session.message(entry.message)
    if failed is None:
        gone = ", and what had failed is not in it any more"
        return gone if any(m.completed > entry.time * 1000 for m in answers) else ""
    return ", on the repaired history" if any(m.by_time > failed.by_time for m in answers) else ""
