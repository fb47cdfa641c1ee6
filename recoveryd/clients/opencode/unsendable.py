"""Sessions that no provider refused: the client itself fails on a stored part, and records little or nothing of it.

How it shows: an assistant message without parts and an error of the AI SDK, or one that never ends, or a prompt that is
never answered. The error's words do not tell the cause, so what `wire` finds does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recoveryd.clients.opencode.error_record import address
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core.model import Failure, Json, Session
from recoveryd.core.request import Wire
from recoveryd.providers.find import family


def provider_spoke(failure: Failure) -> bool:
    """Whether an error is a provider's answer: then it is no crash of the client, whatever it says."""
    data = failure.error.get("data")
    return isinstance(data, Mapping) and any(data.get(key) for key in ("statusCode", "responseBody"))


def crashed(session: Session, failure: Failure | None, forms: Sequence[Form]) -> Failure | None:
    """The failure of a session whose next request the client can't build; None when it can, under any of `forms`."""
    newest = session.newest
    if newest is None:
        return None
    if failure is None and newest.role == "assistant" and (newest.completed or newest.parts):
        return None  # it got somewhere: a turn that runs, or one that was interrupted
    made = failure or asked(session)
    return made if made is not None and stops(session, made, forms) else None


def unreadable(session: Session, forms: Sequence[Form]) -> Failure | None:
    """The failure of the next prompt, whatever came of the last one, where the client can't read what is stored."""
    made = asked(session)
    return made if made is not None and all(_broken(session, wire) for wire in wires_of(made, forms)) else None


def stops(session: Session, failure: Failure, forms: Sequence[Form]) -> list[str]:
    """The parts for which the client can't build the request under any of `forms`; none when it can under one.

    What a client makes of another provider's requests is not known, but that it reads what is stored first.
    """
    find = _unsendable if family(failure) else _broken
    found = [find(session, wire) for wire in wires_of(failure, forms)]
    return list(dict.fromkeys(part for parts in found for part in parts)) if all(found) else []


def _unsendable(session: Session, wire: Wire) -> list[str]:
    return [part.part_id for part in wire.build(session).unsendable]


def _broken(session: Session, wire: Wire) -> list[str]:
    return [part.part_id for part in wire.build(session).unsendable if part.fault == "not_json"]


def next_failure(session: Session) -> Failure | None:
    """What a failure of the newest prompt would be; None where the client's way to its provider is not known."""
    made = asked(session)
    return None if made is None or family(made) is None else made


def asked(session: Session) -> Failure | None:
    """The failure of the newest prompt, as a value, whoever it asks; None where there is no message."""
    newest = session.newest
    if newest is None:
        return None
    provider, model = _model(session)
    return Failure(
        session.store, session.id, newest.id, newest.created, _witness(session, provider, model), provider, model
    )


def _model(session: Session) -> tuple[str, str]:
    """Provider and model that the newest prompt asks: it says so itself, or else its own answer does."""
    prompts = [message for message in session.messages if message.role == "user"]
    prompt = max(prompts, key=lambda message: message.by_time, default=None)
    if prompt is None:
        return "", ""
    model = prompt.data.get("model")
    if isinstance(model, Mapping):
        return _text(model, "providerID"), _text(model, "modelID")
    answers = (m.data for m in session.messages if m.role == "assistant" and m.data.get("parentID") == prompt.id)
    return next(((_text(data, "providerID"), _text(data, "modelID")) for data in answers), ("", ""))


def _witness(session: Session, provider: str, model: str) -> Json:
    """Where this model was asked: the address in its newest error that has one. Another model's tells nothing of it."""
    for message in reversed(session.messages):
        url = address(message.error or {})
        if url and (message.data.get("providerID"), message.data.get("modelID")) == (provider, model):
            return {"data": {"metadata": {"url": url}}}
    return {}


def _text(data: Json, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
