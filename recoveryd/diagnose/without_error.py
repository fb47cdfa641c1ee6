"""Find what a session is stuck on where no provider's error tells: by building the next request ourselves.

It shows as an answer without parts and an error of the client's own, as an answer that never ends, or as a prompt that
is never answered. The error text does not name the cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from recoveryd.clients import CanShorten, Client, Store
from recoveryd.core import (
    Diagnosis,
    Failure,
    Kind,
    Message,
    Refused,
    Request,
    Session,
    Violation,
    Wire,
    explained_by,
    kind_info,
    moment,
    waiting_prompts,
)
from recoveryd.providers import NO_RULES, Provider, check_either_way, named_block, rules_for


def diagnose_unsendable(client: Client, store: Store, session: Session, failure: Failure | None) -> Diagnosis | None:
    """Diagnose, without an error, the parts with which the client can't build the next request. `failure`: as recorded,
    if it was.
    """
    newest = session.newest
    if newest is None:
        return None
    if failure is None and newest.role == "assistant" and (newest.completed or newest.parts):
        return None  # it got somewhere: a turn that runs, or one that was interrupted
    made = failure or client.next_failure(session)
    if made is None:
        return None
    return _unsendable_part(made, _in_the_way(session, client.wires(store, made)))


def diagnose_unreadable(client: Client, store: Store, session: Session) -> Diagnosis | None:
    """Diagnose, without an error, the parts that the client can't read, so that the next prompt may fail before a word
    of it is stored.
    """
    made = client.next_failure(session)
    if made is None:
        return None
    wires = client.wires(store, made)
    if not _in_the_way(session, wires, unread=True):
        return None
    return _unsendable_part(made, _in_the_way(session, wires))


def diagnose_hidden(client: Client, store: Store, session: str) -> Diagnosis | None:
    """Diagnose, without an error, by what its client finds: messages that a failed compaction hides."""
    return client.hidden(store, session) if isinstance(client, CanShorten) else None


def diagnose_unanswered(client: Client, store: Store, session: Session) -> Diagnosis | None:
    """Diagnose a prompt without an answer, and what a provider would refuse of it, if anything. For where nothing else
    explains it.
    """
    waiting = waiting_prompts(sorted(session.messages, key=lambda message: message.by_time))
    known = client.next_failure(session)
    if not waiting or known is None:
        return None
    failure, evidence = _asked(known, waiting)
    wires = client.wires(store, failure)
    provider = rules_for(known, wires)
    if provider is NO_RULES:
        return Diagnosis(failure, None, evidence)  # it is not known what the provider takes
    answered, found = _answered(client, session), []
    for request in (wire.build(session) for wire in wires):
        before = replace(request, turns=request.turns[: max(0, _turn_of(request, answered))], unsendable=())
        ways = (_left_either_way(client, provider, one) for one in (request, before))
        for way, then in zip(*ways, strict=True):
            taken = {violation.kind for violation in then}  # they are at fault only if an error says so
            found.append([violation for violation in way if violation.kind not in taken])
    if not all(found):
        return Diagnosis(failure, None, evidence)
    return Diagnosis(failure, Refused(found[0][0].kind), {**evidence, **_told(found[0][0])})


def diagnose_stopped(client: Client, store: Store, session: Session) -> Diagnosis | None:
    """Diagnose a prompt that its user stopped before anything of an answer came, if it is sure to be refused: a client
    that asks again after a refusal shows it meanwhile, and stores it only at the end.
    """
    order = sorted(session.messages, key=lambda message: message.by_time)
    waiting = waiting_prompts([message for message in order if message.parts or not client.stopped(message)])
    known = client.next_failure(session)
    if known is None or not waiting or waiting_prompts(order):
        return None
    failure, evidence = _asked(known, waiting)
    found = surely_refused(client, store, session, failure)
    if found is None:
        return None
    return Diagnosis(failure, Refused(found.kind), {**evidence, **_told(found)})


def surely_refused(client: Client, store: Store, session: Session, failure: Failure) -> Violation | None:
    """Find what the next prompt is refused for under every way in which the client may send it, of what is known from
    the stored session alone. `failure`: as of `next_failure`.

    None where there is a way that is accepted, where the rules are not known, or where the client goes by what it has
    in memory: it would not read what is stored. And where somebody else may answer than the provider itself, by other
    rules, or with a proxy on the way that mends it: the client is led there, or what is wrong was sent before and
    answered.
    """
    if client.reads_once or session.revert is not None or not client.asks_its_maker(session, failure):
        return None
    wires = client.wires(store, failure)
    rules = rules_for(failure, wires)
    if rules is NO_RULES:
        return None
    first, answered = None, _answered(client, session)
    for request in (wire.build(session) for wire in wires):
        taken = _turn_of(request, answered)
        for found in _left_either_way(client, rules, request):
            told = next((violation for violation in found if kind_info(violation.kind).foreseen), None)
            if told is None or request.unsendable or any(violation.turn < taken for violation in found):
                return None
            first = first or told
    return first


def _asked(known: Failure, waiting: Sequence[Message]) -> tuple[Failure, dict[str, object]]:
    """Make the failure that the newest of the prompts that wait would have, and what is known of them."""
    newest = waiting[-1]
    evidence: dict[str, object] = {
        "unanswered": [message.id for message in waiting],
        "created": moment(newest.created),
    }
    return replace(known, message=newest.id, time=newest.created), evidence


def _left_either_way(client: Client, rules: Provider, request: Request) -> Iterator[list[Violation]]:
    """List what is refused of a request with thinking on, and then off, but for what the client mends itself."""
    for way in check_either_way(rules, request):
        yield [violation for violation in way if not client.heals(violation.kind, violation.block)]


def _answered(client: Client, session: Session) -> str:
    """Return the id of the newest answer of a model: whatever was sent before it was taken. "" where there is none.

    Of any model: a note that is put there (`noReply`) may name one that its user does not ask, as its agent's settings
    have it, and by the rules of that one a sound session would be edited.
    """
    answers = (m for m in session.messages if m.role == "assistant" and m.completed and m.parts and m.error is None)
    newest = max((m for m in answers if not client.by_shell(m)), key=lambda message: message.by_time, default=None)
    return newest.id if newest is not None else ""


def _turn_of(request: Request, answer: str) -> int:
    """Return the index of the turn before which all was sent when the model gave this answer; of one that came by
    several requests, the newest of them. -1 where nothing of it is sent.
    """
    holding = [index for index, turn in enumerate(request.turns) if answer in (origin for origin, _ in turn.origins)]
    said = [index for index in holding if request.turns[index].role == "assistant"] or holding
    begins = (index for index in reversed(said) if index - 1 not in said)
    return next(begins, -1) if answer else -1  # the next prompt has no id yet


def still_refused(
    client: Client, store: Store, session: Session, recorded: Diagnosis, *, places: bool
) -> Diagnosis | None:
    """Diagnose what would be refused again, where its user took the refused turn back, or the session is a copy.

    None where nothing is known to, or the fault may be gone: what the error says of others (images, thinking) then
    tells nothing of those that are left. `places`: those that it names hold for what is left.
    """
    failure, refused = recorded.failure, recorded.refused
    wires = client.wires(store, failure)
    rules = rules_for(failure, wires)
    if refused is None or rules is NO_RULES:
        return None
    asked = wires[0].stored(replace(session.until(failure.message), revert=None))
    left = wires[0].build(session)
    named = named_block(rules, refused, asked)
    explains = explained_by(refused.kind)
    blamed = [v for v in rules.check(asked, rules.claims(refused, asked, named)) if v.kind in explains]
    sent = {message for turn in left.turns for message, _ in turn.origins}
    # What was refused; else its place alone tells, where it is left.
    known = session.message(failure.message) is not None or named is not None
    if places and known and blamed and all(sent.issuperset(_messages(asked, violation)) for violation in blamed):
        return recorded
    bare = Refused(refused.kind, longest_name=refused.longest_name, longest_id=refused.longest_id)
    told = rules.claims(bare, left, None)
    if told.accuses:  # what may be sound
        return None
    if any(explains.isdisjoint(v.kind for v in found) for found in check_either_way(rules, left, told)):
        return None
    return replace(recorded, refused=bare)


def _messages(request: Request, violation: Violation) -> list[str]:
    """List the stored messages that a violation is of."""
    if violation.block is not None:
        return [violation.block.message_id]
    return [message for message, _ in request.turns[violation.turn].origins] if violation.turn >= 0 else [""]


def _unsendable_part(failure: Failure, parts: Mapping[str, str]) -> Diagnosis | None:
    if not parts:
        return None
    says = "; ".join(dict.fromkeys(parts.values()))
    evidence = {"parts": list(parts), "says": says, "message": failure.message}
    return Diagnosis(failure, Refused(Kind.UNSENDABLE_PART), evidence)


def _in_the_way(session: Session, wires: Sequence[Wire], *, unread: bool = False) -> dict[str, str]:
    """Return the parts that keep the client from building a request, each with the reason; none where one of its ways
    works.

    `unread`: those alone that it can't read.
    """
    found = [
        {part.part_id: part.reason for part in wire.build(session).unsendable if not unread or part.fault == "not_json"}
        for wire in wires
    ]
    return {part: why for parts in found for part, why in parts.items()} if all(found) else {}


def _told(violation: Violation) -> dict[str, object]:
    part = violation.part_id or (violation.block.part_id if violation.block else "")
    return {"rule": str(violation.kind), "says": violation.reason, "part": part or None}
