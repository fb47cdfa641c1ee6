"""Read an error as OpenCode records it: its own name for it, and what the AI SDK tells of the request and the
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from recoveryd.core import Cause, Failure, Json, Kind, RecordedError, Session, parsed, texts_of

# Its names that say why, whatever else stands there; None: not because of the history.
_BY_NAME: Mapping[str, Kind | None] = {
    "MessageAbortedError": None,
    "ProviderAuthError": None,
    "MessageOutputLengthError": None,
    "StructuredOutputError": None,
    "ContextOverflowError": Kind.CONTEXT_OVERFLOW,  # of every answer 413, also of one about too large images
}
# Its names for what is no fault of the history, and which its words need not tell.
_CAUSES: Mapping[str, Cause] = {"ContentFilterError": Cause.FILTER}
# How the words begin that it puts before a provider's, or says itself, where it asks without an SDK (1.18.34).
_OWN_RUNTIME = re.compile(r"(?:RequestExecutor|ProviderShared)\.\w+: ")
# What the user or the model wrote, and the transport: never the provider's own words.
_BESIDES = frozenset({"requestbodyvalues", "requestbody", "responseheaders", "headers", "url", "stack"})


def read(error: object) -> RecordedError:
    """Read an error of the form `{"name": "APIError", "data": {"message", "responseBody", "statusCode", ...}}`.

    Any other JSON value is read too, as far as it holds text, and a text that somebody copied. Never raises.
    """
    name = _telling_name((parsed(error) or error) if isinstance(error, str) else error)
    record: Json = error if isinstance(error, Mapping) else {}
    data = record.get("data")
    data = data if isinstance(data, Mapping) else {}
    status, called = data.get("statusCode", _of_stream(data)), record.get("name")
    return RecordedError(
        texts=texts_of(error, _BESIDES),
        name=called if isinstance(called, str) else "",
        kind=_BY_NAME.get(name),
        cause=_CAUSES.get(name),
        blameless=name in _BY_NAME and _BY_NAME[name] is None,
        status=status if isinstance(status, int) else None,
        url=request_address(record),
        answered=bool(status or data.get("responseBody")),
    )


def by_own_runtime(error: RecordedError) -> bool:
    """Whether OpenCode asked the provider without an SDK, as it does where the environment tells it to."""
    return any(_OWN_RUNTIME.match(text) for text in error.texts)


def _of_stream(data: Json) -> int | None:
    """Return the status that an error within a stream names, as OpenRouter's do: `{"code": 502, "message": ...}`."""
    for key in ("responseBody", "message"):
        said = data.get(key)
        body = parsed(said) if isinstance(said, str) else None
        inner = body.get("error", body) if isinstance(body, Mapping) else None
        code = inner.get("code") if isinstance(inner, Mapping) else None
        if isinstance(code, int) and code in range(400, 600):
            return code
    return None


def request_address(error: Json) -> str:
    """Return the address of the request that OpenCode's record of an error answers; "" when it does not tell."""
    data = error.get("data")
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    url = metadata.get("url") if isinstance(metadata, Mapping) else None
    return url if isinstance(url, str) else ""


def _telling_name(error: object) -> str:
    """Return the name of an error, if it is one that says why; it may stand a level deeper, under `error`."""
    inner = error.get("error") if isinstance(error, Mapping) else None
    for value in (error, inner):
        if isinstance(value, Mapping) and isinstance(value.get("name"), str) and value["name"] in (*_BY_NAME, *_CAUSES):
            return str(value["name"])
    return ""


def refusals(session: Session, failure: Failure) -> Iterator[RecordedError]:
    """List the errors that OpenCode recorded of the model that is asked now, newest first."""
    for message in reversed(session.messages):
        asked = (message.data.get("providerID"), message.data.get("modelID"))
        if message.error is not None and asked == (failure.provider, failure.model):
            yield read(message.error)
