"""What an item must have so that Codex takes it for one (measured on 0.169.0), and what it sends of it. Pure.

A line of its own without it is passed over. In a compaction's history one such item has the whole line passed over, and
all that was compacted is sent again. What words a field may hold is not asked: later versions have others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recoveryd.core import Json, from_base64, media_type

# Never sent, but the first of them to a provider that is named "OpenAI" (0.169.0): it says nothing of the conversation.
_OWN = frozenset({"internal_chat_message_metadata_passthrough", "metadata", "recoveryd"})
_OMITTED = "image content omitted because it could not be processed"
_LOW = "image content omitted because detail 'low' is not supported; use 'high', 'original', or 'auto'"
_HEADER = 64  # characters of base64 by which an image is told
CONFIGURATION = "configuration_update"  # how much the model is to think from there on
TOOLS = "additional_tools"
AGENT_SAYS = "agent_message"  # to the agent whose thread it is: its task, or what came of one it gave
OF_THE_CLIENT = frozenset({CONFIGURATION, TOOLS})  # items that neither a person nor the model made
_UNKNOWN: Json = {"type": "other"}  # so an item of a compaction is sent whose type it does not know


def sent_item(data: Json | None, *, in_history: bool) -> Json | None:
    """Return what Codex sends of a stored item; None where it passes over it. `in_history`: it is of a compaction."""
    if data is None or not is_read(data, in_history=in_history):
        return None
    if data["type"] not in _COMPLETE:
        return _UNKNOWN
    body = {key: value for key, value in data.items() if key not in _OWN}
    if body["type"] == "compaction_summary":
        body["type"] = "compaction"
    thought = body.get("content") if body["type"] == "reasoning" else None
    if isinstance(thought, list) and all(one["type"] != "reasoning_text" for one in thought):
        del body["content"]
    for field in ("content", "output"):
        parts = body.get(field)
        if isinstance(parts, list):
            body[field] = [_sent_part(one) for one in parts]
    return body


def is_read(data: object, *, in_history: bool) -> bool:
    """Whether Codex takes a JSON value for an item: of a compaction one of any type, and messages of all roles."""
    kind = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(kind, str):
        return False
    fields = _COMPLETE.get(kind)
    if fields is None:
        return in_history
    form = all(check(data.get(field)) for field, check in {**_ANY, **fields}.items())
    return form and (in_history or data.get("role") != "system")


def history_is_read(payload: Json) -> bool | None:
    """Tell whether Codex goes by the history of a compaction: not where it has another number of notes on its items.

    None where an item has another form than is known: 0.169.0 does not, and a later one, which wrote it, may.
    """
    history, notes = payload.get("replacement_history"), payload.get("replacement_history_metadata")
    if isinstance(history, list) and isinstance(notes, list) and len(notes) != len(history):
        return False
    return True if isinstance(history, list) and all(is_read(one, in_history=True) for one in history) else None


def _sent_part(one: object) -> object:
    """Return what is sent of a part: words in the place of an image or a sound that the client can't use, and an image
    under the type that its bytes tell.
    """
    if not isinstance(one, Mapping):
        return one
    if one.get("type") == "input_audio":
        heard = str(one.get("audio_url")).startswith("data:audio/")
        return one if heard else _words("audio content omitted because it could not be processed")
    url = one.get("image_url") if one.get("type") == "input_image" else None
    if not isinstance(url, str):
        return one
    if url.startswith(("http://", "https://")):
        return _words("image content omitted because remote image URLs are not supported")
    if not url.startswith("data:"):
        return one
    shown = image_url(url.partition(",")[2])
    if shown is None:
        return _words(_OMITTED)
    return _words(_LOW) if one.get("detail") == "low" else {**one, "image_url": shown}


def image_url(data: str) -> str | None:
    """Make the address by which Codex sends an image, given in base64; None where it can't be used."""
    kind = media_type(from_base64(data[:_HEADER]) or b"")
    return f"data:{kind};base64,{data}" if str(kind).startswith("image/") else None


def _words(text: str) -> Json:
    return {"type": "input_text", "text": text}


def _is(kind: type, *, needed: bool = False) -> Callable[[object], bool]:
    """Make the check of a field that has a value of this type, or none where it is not `needed`."""
    return lambda value: isinstance(value, kind) or (value is None and not needed)


def _all_of(*types: str) -> Callable[[object], bool]:
    """Make the check of a list of parts of these types, each with what it must have."""
    return lambda value: (
        isinstance(value, list)
        and all(isinstance(one, Mapping) and str(one.get("type")) in types and _filled(one) for one in value)
    )


def _filled(one: Mapping[str, Any]) -> bool:
    if one["type"] == "input_image":
        return isinstance(one.get("image_url", one.get("file_id")), str)
    return isinstance(one.get(_HELD.get(one["type"], "text")), str)


_HELD: Mapping[str, str] = {"input_audio": "audio_url", "encrypted_content": "encrypted_content"}
_TEXT, _OPTIONAL = _is(str, needed=True), _is(str)
_SPOKEN = _all_of("input_text", "output_text", "input_image", "input_audio")
_GIVEN_BACK = _all_of("input_text", "input_image", "input_audio", "encrypted_content")
_THOUGHT = _all_of("reasoning_text", "text")

Fields = Mapping[str, Callable[[object], bool]]
_ANY: Fields = {"id": _OPTIONAL, "internal_chat_message_metadata_passthrough": _is(Mapping)}
_OUTPUT: Fields = {"call_id": _TEXT, "output": lambda value: isinstance(value, str) or _GIVEN_BACK(value)}
_COMPLETE: Mapping[str, Fields] = {
    "message": {
        "role": _TEXT,
        "content": _SPOKEN,
        "status": _OPTIONAL,
        "phase": _OPTIONAL,
    },
    "reasoning": {
        "summary": _all_of("summary_text"),
        "content": lambda value: value is None or _THOUGHT(value),
        "encrypted_content": _OPTIONAL,
    },
    "function_call": {"name": _TEXT, "arguments": _TEXT, "call_id": _TEXT, "namespace": _OPTIONAL},
    "function_call_output": {**_OUTPUT, "call_id": _OPTIONAL},
    "custom_tool_call": {"name": _TEXT, "input": _TEXT, "call_id": _TEXT, "status": _OPTIONAL},
    "custom_tool_call_output": {**_OUTPUT, "name": _OPTIONAL},
    "local_shell_call": {
        "action": lambda value: isinstance(value, Mapping) and value.get("type") == "exec",
        "call_id": _OPTIONAL,
        "status": _TEXT,
    },
    "tool_search_call": {"call_id": _OPTIONAL, "execution": _TEXT, "status": _OPTIONAL},
    "tool_search_output": {
        "tools": _is(list, needed=True),
        "call_id": _OPTIONAL,
        "execution": _TEXT,
        "status": _TEXT,
    },
    TOOLS: {"role": _TEXT, "tools": _is(list, needed=True)},
    CONFIGURATION: {"reasoning": lambda value: isinstance(value, Mapping) and isinstance(value.get("effort"), str)},
    "web_search_call": {
        "status": _OPTIONAL,
        "action": lambda value: value is None or (isinstance(value, Mapping) and isinstance(value.get("type"), str)),
    },
    "image_generation_call": {"result": _TEXT, "status": _TEXT},
    "compaction": {"encrypted_content": _TEXT},
    "compaction_summary": {"encrypted_content": _TEXT},
    "context_compaction": {"encrypted_content": _OPTIONAL},
    "agent_message": {"author": _TEXT, "recipient": _TEXT, "content": _all_of("input_text", "encrypted_content")},
}
