"""Sessions that no provider refused: the client itself fails on a stored part, and records little or nothing of it.

How it shows: an assistant message without parts and an error of the AI SDK, or one that never ends, or a prompt that is
never answered. The error's words do not tell the cause, so what `wire` finds does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recoveryd.family import address, family
from recoveryd.model import Failure, Json, Session
from recoveryd.sent import Form
from recoveryd.wire import Request, build


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
    made = failure or next_failure(session)
    if made is None or family(made) is None:
        return None  # what another provider's client can't send is not known
    requests = [Request(made.provider, made.model, form=form) for form in forms]
    return made if all(build(session, request).unsendable for request in requests) else None


def next_failure(session: Session) -> Failure | None:
    """What a failure of the newest prompt would be; None where the client's way to its provider is not known."""
    newest = session.newest
    if newest is None:
        return None
    provider, model = _model(session)
    made = Failure(session.store, session.id, newest.id, newest.created, _witness(session), provider, model)
    return None if family(made) is None else made


def _model(session: Session) -> tuple[str, str]:
    """What the newest prompt asks for."""
    for message in reversed(session.messages):
        model = message.data.get("model") if message.role == "user" else None
        if isinstance(model, Mapping):
            return str(model.get("providerID", "")), str(model.get("modelID", ""))
    return "", ""


def _witness(session: Session) -> Json:
    """Where the session's requests went: the address in the newest error of its that has one."""
    for message in reversed(session.messages):
        url = address(message.error or {})
        if url:
            return {"data": {"metadata": {"url": url}}}
    return {}
