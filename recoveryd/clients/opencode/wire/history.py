"""Which stored messages go into a request: not what is reverted, not what a compaction replaced, no failed turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from recoveryd.clients.javascript import truthy
from recoveryd.clients.opencode import error_record
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import PAGE, Message, Part, RecordedError, Session


def history(session: Session, form: Form) -> Sequence[Message]:
    """List the messages that OpenCode reads for the next request of `session`, in the order in which they go.

    `left_out` tells which of them it then does not send.
    """
    kept = _not_reverted(session if form.ties_by_id else replace(session, messages=_ties_turned(session)), form)
    return _with_tail(kept) if form.keeps_compaction_tail else _since_compaction(kept)


def _ties_turned(session: Session) -> tuple[Message, ...]:
    """Order messages as 1.2 does, which sorts rows by time alone, downwards, and turns that round: of one millisecond
    the row that was inserted last goes first, where no index has it otherwise. A command of the user's own (`!cmd`)
    writes two at once now and then.
    """
    together = groupby(session.messages, lambda message: message.at or message.id)
    return tuple(
        message
        for _, of_one_time in together
        for message in sorted(of_one_time, key=lambda message: message.row, reverse=True)
    )


def read_along(session: Session, form: Form) -> Sequence[Message]:
    """List all messages whose parts OpenCode reads for the next request: one that is no JSON among them stops it."""
    if session.revert or form.reads_all:  # to take it back, all are read, also what is not sent
        return session.messages
    kept = len(_since_compaction(session.messages))
    if form.reads_pages:  # before the prompt is stored, for its model, and with it
        kept = max(_paged(kept), _paged(kept + 1) - 1)
    return session.messages[max(0, len(session.messages) - kept) :]


def _paged(messages: int) -> int:
    return -(-messages // PAGE) * PAGE


def _not_reverted(session: Session, form: Form) -> list[Message]:
    """Leave out what `session.revert` points at, with all behind it: it goes at the next prompt."""
    messages = list(session.messages)
    revert = session.revert or {}
    at = next((i for i, m in enumerate(messages) if m.id == revert.get("messageID")), None)
    if at is None:
        return messages
    kept = messages[:at]
    if form.reverts_parts and revert.get("partID"):
        parts = messages[at].parts
        cut = next((i for i, part in enumerate(parts) if part.id == revert["partID"]), len(parts))
        kept.append(replace(messages[at], parts=parts[:cut]))
    return kept


def _since_compaction(messages: Sequence[Message]) -> Sequence[Message]:
    answered: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.id in answered and _compaction(message) is not None:
            return messages[index:]
        if _summary(message):
            answered.add(str(message.data.get("parentID")))
    return messages


def _with_tail(messages: Sequence[Message]) -> Sequence[Message]:
    """Keep the tail as 1.18 does it: the summary first, then the tail that the compaction kept, then what came
    after.
    """
    kept: list[Message] = []
    answered: set[str] = set()
    tail: Any = None
    for message in reversed(messages):
        kept.append(message)
        if tail is not None:
            if message.id == tail:
                break
            continue
        part = _compaction(message) if message.role == "user" and message.id in answered else None
        if part is not None:
            tail = (part.data or {}).get("tail_start_id")
            if not tail or message.id == tail:
                break
        elif _summary(message) and not truthy(message.data.get("error")):
            answered.add(str(message.data.get("parentID")))
    return _tail_behind_summary(kept[::-1])


def _tail_behind_summary(kept: Sequence[Message]) -> Sequence[Message]:
    at = next((i for i in range(len(kept) - 1, -1, -1) if kept[i].role == "user" and _names_tail(kept[i])), None)
    if at is None:
        return kept
    part = next(p for p in kept[at].parts if p.type == "compaction" and "tail_start_id" in (p.data or {}))
    start = next((i for i, m in enumerate(kept) if m.id == (part.data or {}).get("tail_start_id")), len(kept))
    summary = next(
        (
            i
            for i, m in enumerate(kept)
            if i > at and m.role == "assistant" and m.data.get("summary") and m.data.get("parentID") == kept[at].id
        ),
        None,
    )
    if start >= at or summary is None:
        return kept
    return [*kept[at : summary + 1], *kept[start:at], *kept[summary + 1 :]]


def _compaction(message: Message) -> Part | None:
    return next((part for part in message.parts if part.type == "compaction"), None)


def _names_tail(message: Message) -> bool:
    return any(part.type == "compaction" and "tail_start_id" in (part.data or {}) for part in message.parts)


def _summary(message: Message) -> bool:
    return message.role == "assistant" and truthy(message.data.get("summary")) and truthy(message.data.get("finish"))


def left_out(message: Message) -> bool:
    """Whether OpenCode leaves a message of the history out of the request: a failed turn, but for an aborted one that
    had got somewhere.
    """
    error = message.data.get("error")
    if message.role != "assistant":
        return message.role != "user"
    if not truthy(error):
        return False
    aborted = isinstance(error, Mapping) and error.get("name") == "MessageAbortedError"
    return not (aborted and any(part.type not in ("step-start", "reasoning") for part in message.parts))


def failed_on(session: Session, provider: str, model: str, mime: str) -> bool:
    """Whether the client failed on files of this type itself since the newest answer or refusal of a model: it stores
    that at once. Else they could be sent, as such or in words. A summary tells nothing: it is asked for without files.
    """
    for message in sorted(session.messages, key=lambda message: message.by_time, reverse=True):
        asked = message.data.get("providerID"), message.data.get("modelID")
        if message.role != "assistant" or asked != (provider, model) or truthy(message.data.get("summary")):
            continue
        error = error_record.read(message.error) if message.error is not None else None
        if error is not None and _of_client(error):
            if any(mime in text for text in error.texts):
                return True
        elif (error is not None and not error.blameless) or _by_model(message):
            return False
    return False


def _by_model(message: Message) -> bool:
    """Whether a model was asked for an answer: it is not the client's own for a command, nor one of a repair."""
    return any(part.type in ("step-finish", "reasoning") for part in message.parts)


def _of_client(error: RecordedError) -> bool:
    """Whether no request was made, because the SDK can't send a file: "'file part media type application/pdf'
    functionality not supported", "Unsupported image mime type: image/bmp".
    """
    by_itself = not error.answered and error.name != "APIError" and not error.blameless
    return by_itself and any("support" in text.lower() for text in error.texts)
