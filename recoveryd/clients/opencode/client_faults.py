"""Find the faults of the client's own: ids that started again, turns without an end, messages that are hidden. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recoveryd.clients.opencode import compactions, interrupted_turn, wrapped_ids
from recoveryd.clients.opencode.configured_sdks import as_asked
from recoveryd.clients.opencode.error_record import request_address
from recoveryd.clients.opencode.prompting import folder_of
from recoveryd.core import (
    Diagnosis,
    Failure,
    Json,
    Kind,
    Message,
    RecordedError,
    Refused,
    Session,
    waiting_prompts,
)


def ids_started_again(session: Session, now_ms: int, client: str) -> Diagnosis | None:
    """Find out, of OpenCode's own faults, whether ids started again in a session whose client goes by ids. No turn of
    it may be running.
    """
    found = wrapped_ids.wrapped(session, now_ms)
    if found is None:
        return None
    last = (*found.old, *found.new)[-1]
    waiting = waiting_prompts((*found.old, *found.new))
    ignored = bool(waiting) and wrapped_ids.ignores_prompts(session)
    evidence = {**found.evidence, "unanswered": [message.id for message in waiting], "ignored": ignored}
    failure = _failure(session, waiting[-1] if waiting else last, client)
    return Diagnosis(failure, Refused(Kind.WRAPPED_IDS), evidence, ignored)


def cut_off(session: Session, client: str) -> Diagnosis | None:
    """Find out, of OpenCode's own faults, whether the last turn was never ended."""
    message = interrupted_turn.open_turn(session)
    if message is None:
        return None
    failure = _failure(session, message, client)
    return Diagnosis(failure, Refused(Kind.INTERRUPTED_TURN), interrupted_turn.open_parts(message))


def hidden_by_compaction(session: Session, client: str) -> Diagnosis | None:
    """Find out, of OpenCode's own faults, whether a failed compaction keeps what stands before its tail from being
    sent.
    """
    failure, (failed, lost) = next_failure(session, client), compactions.hidden_messages(session)
    if failure is None or not lost:
        return None
    evidence = {"compaction": failed, "hidden_messages": len(lost), "first": lost[0], "last": lost[-1]}
    return Diagnosis(failure, Refused(Kind.CONTEXT_OVERFLOW), evidence)


def next_failure(session: Session, client: str) -> Failure | None:
    """Make the failure that a fault of OpenCode's own is told as: with no error, of the newest prompt, whoever it asks;
    None where there is no message.
    """
    newest = session.newest
    if newest is None:
        return None
    provider, model = _model(session)
    witness = _witness(session, provider, model)
    folder = _folder(session, newest)
    failure = Failure(session.store, session.id, newest.id, newest.created, witness, provider, model, folder=folder)
    return as_asked(failure, session.directory, client=client)


def _failure(session: Session, message: Message, client: str) -> Failure:
    model = message.data.get("model")
    names = model if isinstance(model, Mapping) else message.data
    provider, model = _text(names, "providerID"), _text(names, "modelID")
    failure = Failure(session.store, session.id, message.id, message.created, provider=provider, model=model)
    return as_asked(replace(failure, folder=_folder(session, message)), session.directory, client=client)


def _folder(session: Session, message: Message) -> str:
    """Return where the client works in a session: by this message, or by the newest answer, as no prompt says it."""
    answers = sorted(session.messages, key=lambda message: message.by_time, reverse=True)
    return next(filter(None, map(folder_of, (message, *answers))), "")


def _model(session: Session) -> tuple[str, str]:
    """Return provider and model that the newest prompt asks: it says so itself, or else its own answer does."""
    prompts = [message for message in session.messages if message.role == "user"]
    prompt = max(prompts, key=lambda message: message.by_time, default=None)
    if prompt is None:
        return "", ""
    model = prompt.data.get("model")
    if isinstance(model, Mapping):
        return _text(model, "providerID"), _text(model, "modelID")
    answers = (m.data for m in session.messages if m.role == "assistant" and m.data.get("parentID") == prompt.id)
    return next(((_text(data, "providerID"), _text(data, "modelID")) for data in answers), ("", ""))


def _witness(session: Session, provider: str, model: str) -> RecordedError:
    """Return the newest error of this model that has an address. Another model's tells nothing of where it is asked."""
    for message in reversed(session.messages):
        url = request_address(message.error or {})
        if url and (message.data.get("providerID"), message.data.get("modelID")) == (provider, model):
            return RecordedError(url=url)
    return RecordedError()


def _text(data: Json, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
