"""The body of each kind of stored part as it is sent to an Anthropic provider, and what makes a part unsendable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recoveryd.clients.opencode.wire.anthropic_media import CannotSend, attachment, file
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import HALF, Json, Part

# What JavaScript's trim() takes away, which is not what str.strip() does.
JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_ILLEGAL_ID = re.compile(r"[^a-zA-Z0-9_-]")
_CLEARED = "[Old tool result content cleared]"
_INTERRUPTED = "[Tool execution was interrupted]"


@dataclass(frozen=True, slots=True)
class Sent:
    """What becomes of one part: blocks, tool results behind the step, and whether it keeps its message in the request
    though it sends nothing (the message is then sent as `content: []`)."""

    content: Sequence[Json] = ()
    results: Sequence[Json] = ()
    silent: bool = False
    unfinished: bool = False  # the results are the client's words for a call that never ended


def user_part(part: Part, form: Form) -> Json | None:
    data = part.data or {}
    match part.type:
        case "text" if not data.get("ignored"):
            return _text(data, form)
        case "file" if data.get("mime") not in ("text/plain", "application/x-directory"):
            return file(data)
        case "compaction":
            return {"type": "text", "text": "What did we do so far?"}
        case "subtask":
            return {"type": "text", "text": "The following tool was executed by the user"}
    return None


def assistant_part(part: Part, foreign: bool, model: str, form: Form, blank: str) -> Sent:
    """`foreign`: another model wrote it, whose metadata is not sent; `blank` is what an empty text becomes."""
    data = part.data or {}
    metadata = None if foreign else data.get("metadata")
    if form.drops_provider_calls and isinstance(metadata, Mapping):
        metadata = {key: value for key, value in metadata.items() if key != "providerExecuted"}
    if part.type in ("text", "reasoning", "tool") and not _sound(metadata):
        raise CannotSend("metadata", "its metadata is not an object of objects")
    match part.type:
        case "text":
            body = _text(data, form)
            words = body["text"] or blank
            return Sent([{**body, "text": words}] if words else [])
        case "reasoning":
            return _reasoning(data, metadata, foreign, form)
        case "tool":
            return _tool(data, model, form)
    return Sent()


def signed(part: Part) -> bool:
    metadata = (part.data or {}).get("metadata")
    anthropic = metadata.get("anthropic") if isinstance(metadata, Mapping) else None
    return part.type == "reasoning" and isinstance(anthropic, Mapping) and anthropic.get("signature") is not None


def _sound(metadata: object) -> bool:
    """The SDK takes only objects of objects, and refuses the whole conversation for anything else."""
    if not isinstance(metadata, Mapping):
        return metadata is None
    return all(isinstance(value, Mapping) for value in metadata.values())


def _well_formed(text: str, form: Form) -> str:
    return HALF.sub("\ufffd", text) if form.mends_unicode else text


def _text(data: Json, form: Form) -> Json:
    if not isinstance(data.get("text"), str):
        raise CannotSend("text", "its text is missing")
    return {"type": "text", "text": _well_formed(data["text"], form)}


def _reasoning(data: Json, metadata: Any, foreign: bool, form: Form) -> Sent:
    """A thinking block, a redacted one, or nothing: reasoning that no provider signed is not sent."""
    if not isinstance(data.get("text"), str):
        raise CannotSend("text", "its text is missing")
    words = _well_formed(data["text"], form)
    if foreign and form.sends_foreign_thinking:
        return Sent([{"type": "text", "text": words}] if words.strip(JS_SPACE) else [])
    anthropic = metadata.get("anthropic") if isinstance(metadata, Mapping) else None
    marks: Json = anthropic if isinstance(anthropic, Mapping) else {}
    signature, redacted = marks.get("signature"), marks.get("redactedData")
    for value in (signature, redacted):
        if value is not None and not isinstance(value, str):
            raise CannotSend("signature", "its signature is not a text")
    if form.sends_redacted:
        filtered = not words.strip(JS_SPACE) and signature is None and redacted is None
    else:
        filtered = words == ""
    if filtered:
        return Sent()
    if signature is not None:
        return Sent([{"type": "thinking", "thinking": words, "signature": signature}])
    if redacted is not None:
        return Sent([{"type": "redacted_thinking", "data": redacted}])
    return Sent(silent=True)


def _tool(data: Json, model: str, form: Form) -> Sent:
    """The call and its result. A call whose status the client does not know is not sent."""
    state = data.get("state")
    if state is None:
        raise CannotSend("state", "the tool call has no state")
    status = state.get("status") if isinstance(state, Mapping) else None
    if not isinstance(state, Mapping) or status not in ("completed", "error", "pending", "running"):
        return Sent()
    call_id, name = data.get("callID"), _spelled(data)
    if not isinstance(call_id, str):
        raise CannotSend("name", "the tool call has no id")
    metadata = data.get("metadata")
    if form.drops_provider_calls and isinstance(metadata, Mapping) and metadata.get("providerExecuted"):
        return Sent(silent=True)
    if "claude" in model:  # the client mends ids for models of this name only
        call_id = _ILLEGAL_ID.sub("_", call_id)
    call: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": name}
    if "input" in state and (state["input"] is not None or status == "completed"):
        call["input"] = state["input"]
    result = {"type": "tool_result", "tool_use_id": call_id, **_result(state, status, form)}
    return Sent([call], [result], unfinished=status in ("pending", "running"))


def _spelled(data: Json) -> str:
    """The tool's name as JavaScript spells whatever stands there."""
    name = data.get("tool", "undefined")
    if isinstance(name, (dict, list)):
        return "[object Object]" if isinstance(name, dict) else ",".join(map(str, name))
    return name if isinstance(name, str) else json.dumps(name)


def _result(state: Json, status: str, form: Form) -> Json:
    if status == "completed":
        return {"content": _output(state, form)}
    metadata = state.get("metadata")
    if form.plain_interrupted and status == "error" and isinstance(metadata, Mapping):
        output = metadata.get("output")
        if metadata.get("interrupted") is True and isinstance(output, str):
            return {"content": _well_formed(output, form)}
    error = state.get("error") if status == "error" else _INTERRUPTED
    words = "unknown error" if error is None else error if isinstance(error, str) else _compact(error)
    return {"content": _well_formed(words, form), "is_error": True}


def _output(state: Json, form: Form) -> str | list[Json]:
    time = state.get("time")
    if not isinstance(time, Mapping):
        raise CannotSend("time", "the finished tool call has no time")
    if time.get("compacted"):
        return _CLEARED
    output, attachments = state.get("output"), state.get("attachments") or []
    if isinstance(output, (bool, int, float)) and not attachments:
        return _compact(output)
    if not isinstance(output, str) or not isinstance(attachments, list):
        raise CannotSend("output", "the finished tool call has no output")
    if not attachments:
        return _well_formed(output, form)
    text: Json = {"type": "text", "text": _well_formed(output, form)}
    shown = [] if form.omits_empty_output and not output else [text]
    return [*shown, *(block for item in attachments for block in attachment(item, form))]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
