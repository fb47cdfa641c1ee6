"""How Codex records an error: the provider's answer as text, or a sentence of its own in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recoveryd.clients.codex import error_names
from recoveryd.core import Json, Kind, RecordedError, parsed, texts_of

_OVERFLOW = "context_window_exceeded"
# What it writes before an error where the history was to be compacted, by a provider that is named "OpenAI" (0.169.0),
# and before what a provider said in a stream that it had begun, or what became of that. Maybe folded by a terminal.
_OF_STREAM = re.compile(r"stream\s+disconnected\s+before\s+completion:")
_BEFORE = re.compile(rf"(?:Error\s+running\s+remote\s+compact\s+task:\s*)?({_OF_STREAM.pattern})?\s*")
_AGAIN = re.compile(r"Reconnecting\.\.\. \d+/\d+(?: \((.*)\))?", re.DOTALL)  # while it goes on trying
# What it writes of an answer that is not 400: "unexpected status 413 Payload Too Large: <body>, url: http://..."
_STATUS = re.compile(r"unexpected status (\d{3}) ?([A-Za-z' -]{0,60}?|<unknown status code>): ")
_BEHIND = ", url: "  # a body
_NOT_FOUND, _TOO_LARGE = "404", "413"
_OF_TOKENS = re.compile(r"\b(tokens?|context)\b", re.IGNORECASE)
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")  # in a name, as its app server spells it
_URL = re.compile(r", url: (\S{1,2000}?)(?:,|\s|$)")

# What it puts before an error that it shows: on its screen, and `codex exec`, which shows it twice.
_SHOWN = re.compile(r"^[ \t]{0,9}(?:■|ERROR:)", re.MULTILINE)
# Characters before that, of all lines and of one: what was tried before, a label of another program.
_LEAD, _LABEL = 300, 24
_INFO = ("codex_error_info", "codexErrorInfo")  # in a rollout; by its app server, and in the database of its threads
_WITHIN = ("error", "payload", "params", "turn")  # where an error stands in a line, an event or a notice of it
_EVENTS = ("error", "turn.failed")  # of `codex exec --json`, which tell no name


def read_copied(error: object) -> RecordedError | None:
    """Read an error out of what Codex says of it (a line of a rollout, an event, a notice) or shows, whole or as
    somebody copied it; None for anything else, also for words of a provider that Codex alone does not explain.
    """
    record = parsed(error) if isinstance(error, str) else error
    named = _named(record)
    if named is not None:
        return read(named)
    words = _of_event(record) if isinstance(record, Mapping) and record.get("type") in _EVENTS else error
    if not isinstance(words, str):
        return None
    shown = _SHOWN.split(words)[-1].strip()
    within = _OF_STREAM.search(shown[:_LEAD])
    lead = shown[: within.start()].splitlines() if within is not None else []
    if within is not None and "(" not in shown[: within.start()] and all(len(line) <= _LABEL for line in lead):
        shown = shown[within.start() :]
    found = read({"message": shown})
    own = found.kind or found.cause or found.status or _words({"message": shown})[1]
    return found if own else None


def _of_event(event: Json) -> object:
    told = event.get("error") if "error" in event else event
    return told.get("message") if isinstance(told, Mapping) else None


def _named(record: object, deep: int = 3) -> Json | None:
    """Find the error that has Codex's name for it."""
    if not isinstance(record, Mapping) or not deep:
        return None
    if any(key in record for key in _INFO):
        return record
    return next((found for key in _WITHIN if (found := _named(record.get(key), deep - 1)) is not None), None)


def read(error: object) -> RecordedError:
    """Read the `error` that Codex recorded of a turn: `{"message": <the answer's body>, "codex_error_info": <its name
    for it>}`.

    Any other JSON value is read as far as it holds text. Never raises.
    """
    record: Json = error if isinstance(error, Mapping) else {}
    info = next((record[key] for key in _INFO if key in record), None)
    name = info if isinstance(info, str) else next(iter(info), "") if isinstance(info, Mapping) else ""
    name = _CAPITAL.sub(r"_\1", str(name)).lower()
    message = record.get("message")
    text, of_stream = _words(record)
    found = _STATUS.match(text)
    status = int(found[1]) if found else _status_in(info)
    url = _URL.search(text[-2100:]) if found else None
    cause = error_names.cause_of(name, text, of_stream=of_stream)
    return RecordedError(
        texts=texts_of(_answer(text) if text and cause is None else message),
        name=name,
        kind=Kind.CONTEXT_OVERFLOW if name == _OVERFLOW else _by_body(parsed(text)),
        cause=cause,
        status=status,
        url=url[1] if url else "",
        answered=status is not None or cause is None,
        continued=_by_websocket(parsed(text)),
    )


def _words(record: Json) -> tuple[str, bool]:
    """Return the message of an error without what Codex puts before a provider's words, and whether those came in a
    stream.
    """
    message = record.get("message")
    text = message if isinstance(message, str) else ""
    again = _AGAIN.fullmatch(text)
    if again is not None:
        text = str(again[1] or record.get("additionalDetails") or text)
    before = _BEFORE.match(text)
    return (text[before.end() :], before[1] is not None) if before is not None else (text, False)


def _answer(text: str) -> object:
    """Return what a provider said, without the status and the address that Codex puts around it."""
    found = _STATUS.match(text)
    if found is None or found[1] == _NOT_FOUND:  # with that the sentences for it begin
        return text
    body = text[found.end() :]
    body = body[: body.rindex(_BEHIND)] if _BEHIND in body else body
    if found[1] == _TOO_LARGE and not _OF_TOKENS.search(body):  # of bytes, with that, too
        return text
    reason = found[2] if found[2][:1].isalpha() and found[1] != _TOO_LARGE else ""
    return [reason, body] if parsed(body) is not None else f"{reason}: {body}" if reason else body


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
    known = inner if isinstance(inner, Mapping) else {}
    found = next((known[key] for key in ("http_status_code", "httpStatusCode") if key in known), None)
    return found if isinstance(found, int) and 100 <= found < 600 else None
