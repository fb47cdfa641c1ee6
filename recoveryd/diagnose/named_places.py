"""Tell what a failure names by a place: the part that stood there then, another one by now, or nothing stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from recoveryd.clients import Client, Store, is_store_of
from recoveryd.core import (
    Block,
    Claims,
    Diagnosis,
    Edit,
    Entry,
    Failure,
    Json,
    Kind,
    Outcome,
    RecoverydError,
    Session,
    edited,
    explained_by,
)
from recoveryd.ledger import Ledger, Upkeep
from recoveryd.providers import NO_RULES, Provider, named_block, rules_for


def place_moved(client: Client, store: Store, ledger: Ledger, found: Diagnosis) -> bool:
    """Whether a failure tells what it means by its place alone, and another part may stand there now: something was
    repaired since for another failure, or put back. Where it is not known what stood there: yes.
    """
    failure, refused = found.failure, found.refused
    if refused is None or refused.position is None or refused.ids:
        return False
    since = [one for one in Upkeep(ledger).written(failure.session, failure.time) if one.message != failure.message]
    if not since:
        return False
    now = store.load(failure.session)
    wires = client.wires(store, failure)
    rules = rules_for(failure, wires)
    then = _as_it_was(store, ledger, now, since, failure)
    if then is None or rules is NO_RULES:
        return True
    asked = (wires[0].stored(replace(one.until(failure.message), revert=None)) for one in (then, now))
    stood, stands = (named_block(rules, refused, one) for one in asked)
    return _meant(rules, stood) != _meant(rules, stands)


def as_meant(client: Client, store: Store, found: Diagnosis) -> Diagnosis:
    """Return a failure as what it is of. Where thinking is to begin an answer behind all that is stored, the client put
    that one there, as OpenCode does at an agent's limit of steps: the request ended with it, and a new prompt goes
    without.
    """
    if found.refused is None or not _ends_request(client, store, found):
        return found
    return replace(found, refused=replace(found.refused, kind=Kind.ASSISTANT_PREFILL))


def _ends_request(client: Client, store: Store, found: Diagnosis) -> bool:
    """Whether what is refused stands behind all that is stored, and nothing of that is to be refused alike: it is said
    with thinking on.
    """
    refused, session = found.refused, found.failure.session
    if refused is None or refused.kind is not Kind.THINKING_BLOCK_ORDER or refused.position is None:
        return False
    wires = client.wires(store, found.failure)
    rules = rules_for(found.failure, wires)
    if rules is NO_RULES:
        return False
    sent = replace(store.load(session).until(found.failure.message), revert=None)
    asked = [wire.stored(sent) for wire in wires]
    if any(one.padded or refused.position[0] < len(one.turns) for one in asked):
        return False
    thinks, explains = Claims(thinking=frozenset({True})), explained_by(refused.kind)
    return not any(violation.kind in explains for one in asked for violation in rules.check(one, thinks))


def _meant(rules: Provider, block: Block | None) -> tuple[str, str, str, list[Json]] | None:
    """Tell what a place is of: also which of a part's blocks, and its images, which an error may count within it. None
    where nothing stands: there an error may be taken to mean more than it did.
    """
    return None if block is None else (block.message_id, block.part_id, block.type, [*rules.sources(block.body)])


def _as_it_was(
    store: Store, ledger: Ledger, session: Session, since: Iterable[Entry], failure: Failure
) -> Session | None:
    """Take the repairs since a failure back in memory, newest first; None where it is not known how."""
    there = {message.id for message in session.messages}
    try:
        for repair in since:
            before = repair.time * 1000 < failure.time
            if repair.outcome is Outcome.UNDONE and not before and is_store_of(store, repair.store):
                continue  # it was put back
            if before or repair.outcome is not Outcome.HEALED or repair.overwritten:
                return None
            edits = _taken_back(store, ledger, repair)
            if edits is None:
                return None
            session = edited(session, (edit for edit in edits if edit.message_id in there))
    except RecoverydError:
        return None
    return session


def _taken_back(store: Store, ledger: Ledger, repair: Entry) -> list[Edit] | None:
    edits: list[Edit] = []
    for change in store.located(ledger.changes(repair.id)):
        part = store.content.part_at(change.key, change.before or change.after or b"")
        said = store.content.said(change.before) if change.before is not None else None
        if part is None or (change.before is not None and said is None):
            return None
        edits.append(Edit(*part, said, ""))
    return edits or None  # its originals are gone
