"""How Codex records an error: the provider's answer as text, or a sentence of its own in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recoveryd.clients.codex import error_names
from recoveryd.core import Json, Kind, RecordedError, parsed, texts_of

_OVERFLOW = "context_window_exceeded"
# What it writes before an error where the history was to be compacted, by a provider that is named "OpenAI" (0.169.0).
_COMPACTING = "Error running remote compact task: "
# And before what a provider said in a stream that it had begun, or what became of that.
_OF_STREAM = "stream disconnected before completion:"
# What it writes of an answer that is not 400: "unexpected status 413 Payload Too Large: <body>, url: http://..."
_STATUS = re.compile(r"unexpected status (\d{3})\b")
_URL = re.compile(r", url: (\S{1,2000}?)(?:,|\s|$)")

# What it puts before an error that it shows: on its screen, and `codex exec`.
_SHOWN = re.compile(r"^(?:■|ERROR:)\s*")


def read_copied(text: str) -> RecordedError | None:
    """Read what somebody copied: a record of Codex's, or words that say why in Codex alone; None for any other text."""
    record = parsed(text)
    if isinstance(record, Mapping) and "codex_error_info" in record:
        return read(record)
    shown = _SHOWN.sub("", text.strip())
    found = read({"message": shown})
    own = found.kind is not None or found.cause is not None or _words(shown)[1]
    return found if own else None


def read(error: object) -> RecordedError:
    """Read the `error` that Codex recorded of a turn: `{"message": <the answer's body>, "codex_error_info": <its name
    for it>}`.

    Any other JSON value is read as far as it holds text. Never raises.
    """
    record: Json = error if isinstance(error, Mapping) else {}
    info = record.get("codex_error_info")
    name = info if isinstance(info, str) else next(iter(info), "") if isinstance(info, Mapping) else ""
    message = record.get("message")
    text, of_stream = _words(message) if isinstance(message, str) else ("", False)
    found = _STATUS.match(text)
    status = int(found[1]) if found else _status_in(info)
    url = _URL.search(text[-2100:]) if found else None
    cause = error_names.cause_of(str(name), text, of_stream=of_stream)
    return RecordedError(
        texts=texts_of(text if text and cause is None else message),
        name=str(name),
        kind=Kind.CONTEXT_OVERFLOW if name == _OVERFLOW else _by_body(parsed(text)),
        cause=cause,
        status=status,
        url=url[1] if url else "",
        answered=status is not None or cause is None,
        continued=_by_websocket(parsed(text)),
    )


def _words(message: str) -> tuple[str, bool]:
    """Return a message without what Codex puts before a provider's words, and whether those came in a stream."""
    text = message.removeprefix(_COMPACTING)
    return text.removeprefix(_OF_STREAM).lstrip(), text.startswith(_OF_STREAM)


def _by_body(body: object) -> Kind | None:
    """Return the kind of a body that says no more: so ChatGPT's backend refuses an image."""
    return Kind.MEDIA_REJECTED if body == {"detail": "Bad Request"} else None


def _by_websocket(body: object) -> bool:
    """Whether an answer came over a WebSocket, where Codex asks ChatGPT: it is an event then, and tells the status
    (0.171.0). There a request has only the items that the ones before it on this connection had not.
    """
    return isinstance(body, Mapping) and body.get("type") == "error" and "status" in body


def _status_in(info: object) -> int | None:
    inner = next(iter(info.values()), None) if isinstance(info, Mapping) else None
    found = inner.get("http_status_code") if isinstance(inner, Mapping) else None
    return found if isinstance(found, int) and 100 <= found < 600 else None
