"""Sessions that are stuck without an error: what explains them, from what is stored alone.

A prompt without an answer, an answer that was never ended, or ids that will keep the next prompt from being answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from recoveryd.clients.base import Store
from recoveryd.clients.opencode import interrupted_turn, wrapped_ids
from recoveryd.clients.opencode import unsendable as crash
from recoveryd.clients.opencode.server import Client
from recoveryd.clients.opencode.unsendable import crashed, next_failure, stops
from recoveryd.clients.opencode.versions import goes_by_ids
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.clients.opencode.wrapped_ids import tells_old
from recoveryd.core.model import Failure, Kind, Message, Session
from recoveryd.core.silence import Silence
from recoveryd.core.text import moment
from recoveryd.core.violation import Claims, Violation
from recoveryd.providers.anthropic.provider import ANTHROPIC


def renumbered(session: Session, now_ms: int) -> Silence | None:
    """Of a session whose client goes by ids: that they started again. No turn of it may be running."""
    found = wrapped_ids.wrapped(session, now_ms)
    if found is None:
        return None
    last = (*found.old, *found.new)[-1]
    waiting = _unanswered((*found.old, *found.new))
    ignored = bool(waiting) and wrapped_ids.ignores_prompts(session)
    evidence = {**found.evidence, "unanswered": [message.id for message in waiting], "ignored": ignored}
    return Silence(_failure(session, waiting[-1] if waiting else last), Kind.WRAPPED_IDS, evidence, ignored)


def unsendable(session: Session, failure: Failure | None, forms: Sequence[Form]) -> Silence | None:
    """That the client can't build a request of it, under any of `forms`. `failure`: as it was recorded, if it was."""
    made = crashed(session, failure, forms)
    if made is None:
        return None
    return Silence(made, Kind.UNSENDABLE_PART, {"parts": stops(session, made, forms), "message": made.message})


def unreadable(session: Session, forms: Sequence[Form]) -> Silence | None:
    """That the client can't read what is stored, so that the next prompt may fail before a word of it is stored."""
    made = crash.unreadable(session, forms)
    if made is None:
        return None
    return Silence(made, Kind.UNSENDABLE_PART, {"parts": stops(session, made, forms), "message": made.message})


def cut_off(session: Session) -> Silence | None:
    """That its last turn was never ended."""
    message = interrupted_turn.open_turn(session)
    if message is None:
        return None
    return Silence(_failure(session, message), Kind.INTERRUPTED_TURN, interrupted_turn.evidence(message))


def unanswered(session: Session, forms: Sequence[Form]) -> Silence | None:
    """A prompt without an answer that nothing else explains: what a provider would refuse of it, or nothing."""
    order = sorted(session.messages, key=lambda message: message.by_time)
    waiting = _unanswered(order)
    if not waiting:
        return None
    known = next_failure(session)
    failure = replace(known or _failure(session, waiting[-1]), message=waiting[-1].id, time=waiting[-1].created)
    asked = {"unanswered": [message.id for message in waiting], "created": moment(waiting[-1].created)}
    for wire in wires_of(failure, forms) if known else ():  # else it is not known what goes to the provider
        refused = next(iter(ANTHROPIC.check(wire.build(session), Claims())), None)
        if refused is not None:
            return Silence(failure, refused.kind, {**asked, **_told(refused)})
    return Silence(failure, None, asked)


def _told(violation: Violation) -> dict[str, object]:
    part = violation.part_id or (violation.block.part_id if violation.block else "")
    return {"rule": str(violation.kind), "says": violation.reason, "part": part or None}


def _unanswered(order: Sequence[Message]) -> list[Message]:
    """The prompts at the end, of messages in the order of time. An answer that never got anything is none."""
    waiting: list[Message] = []
    for message in reversed(order):
        if message.role == "user":
            waiting.insert(0, message)
        elif message.parts or message.completed or message.error is not None:
            break
    return waiting


def _failure(session: Session, message: Message) -> Failure:
    model = message.data.get("model")
    names = model if isinstance(model, Mapping) else message.data
    return Failure(
        session.store,
        session.id,
        message.id,
        message.created,
        {},
        str(names.get("providerID", "")),
        str(names.get("modelID", "")),
    )


def ids_started_again(store: Store, session: str, client: Client, now: float) -> Silence | None:
    """Of a session in which no turn runs: that its client takes new prompts for old ones, or will. `now` in seconds.

    Only sessions that have an old id are read.
    """
    ms = int(now * 1000)
    if not tells_old(store.greatest_id(session), ms) or not goes_by_ids(store, client, session):
        return None
    return renumbered(store.load(session), ms)
