"""What an item must have so that Codex takes it for one (measured on 0.169.0), and what it sends of it. Pure.

A line of its own without it is passed over. In a compaction's history one such item has the whole line passed over: all
that was compacted is sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recoveryd.core import Json, from_base64, media_type

_CONTENT: Mapping[str, str] = {"input_text": "text", "output_text": "text", "input_image": ""}
_OWN = frozenset({"internal_chat_message_metadata_passthrough", "metadata", "recoveryd"})  # never sent
_OMITTED = "image content omitted because it could not be processed"
_HEADER = 64  # characters of base64 by which an image is told
_UNKNOWN: Json = {"type": "other"}  # so an item of a compaction is sent whose type it does not know


def sent_item(data: Json | None, *, in_history: bool = False) -> Json | None:
    """Return what Codex sends of a stored item; None where it passes over it. `in_history`: it is of a compaction."""
    if data is None or not is_read(data, in_history=in_history):
        return None
    if data["type"] not in _COMPLETE:
        return _UNKNOWN
    body = {key: value for key, value in data.items() if key not in _OWN}
    if body["type"] == "compaction_summary":
        body["type"] = "compaction"
    if body.get("content") == [] and body["type"] == "reasoning":
        del body["content"]
    for field in ("content", "output"):
        parts = body.get(field)
        if isinstance(parts, list) and any(map(_unusable, parts)):
            body[field] = [_words(one) if _unusable(one) else one for one in parts]
    return body


def is_read(data: object, *, in_history: bool) -> bool:
    """Whether Codex takes a JSON value for an item: of a compaction one of any type, and messages of all roles."""
    kind = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(kind, str):
        return False
    complete = _COMPLETE.get(kind)
    if complete is None:
        return in_history
    return complete(data) and (in_history or data.get("role") != "system")


def history_is_read(payload: Json) -> bool:
    """Whether Codex goes by the history of a compaction: it reads each item, and has as many notes on them."""
    history, notes = payload.get("replacement_history"), payload.get("replacement_history_metadata")
    if not isinstance(history, list) or not all(is_read(one, in_history=True) for one in history):
        return False
    return notes is None or (isinstance(notes, list) and len(notes) == len(history))


def _unusable(one: object) -> str | None:
    """Tell why the client sends words in the place of an image; None where it sends it, or it is none."""
    url = one.get("image_url") if isinstance(one, Mapping) and one.get("type") == "input_image" else None
    if not isinstance(url, str):
        return None
    if url.startswith(("http://", "https://")):
        return "image content omitted because remote image URLs are not supported"
    if not url.startswith("data:"):
        return None
    image = from_base64(url.partition(",")[2][:_HEADER]) or b""
    return None if str(media_type(image)).startswith("image/") else _OMITTED


def _words(one: object) -> Json:
    return {"type": "input_text", "text": _unusable(one)}


def _content(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, Mapping) and str(one.get("type")) in _CONTENT and _filled(one) for one in value
    )


def _filled(one: Mapping[str, Any]) -> bool:
    if one["type"] == "input_image":
        return isinstance(one.get("image_url", one.get("file_id")), str)
    return isinstance(one.get("text"), str)


def _output(data: Json) -> bool:
    return isinstance(data.get("call_id"), str) and (
        isinstance(data.get("output"), str) or _content(data.get("output"))
    )


def _texts(*keys: str) -> Callable[[Json], bool]:
    return lambda data: all(isinstance(data.get(key), str) for key in keys)


_COMPLETE: Mapping[str, Callable[[Json], bool]] = {
    "message": lambda data: isinstance(data.get("role"), str) and _content(data.get("content")),
    "reasoning": lambda data: isinstance(data.get("summary"), list),
    "function_call": _texts("name", "arguments", "call_id"),
    "function_call_output": _output,
    "custom_tool_call": _texts("name", "input", "call_id"),
    "custom_tool_call_output": _output,
    "local_shell_call": lambda data: isinstance(data.get("action"), Mapping),
    "tool_search_call": lambda data: "arguments" in data,
    "tool_search_output": lambda data: isinstance(data.get("tools"), list),
    "web_search_call": lambda _: True,
    "image_generation_call": _texts("result"),
    "compaction": _texts("encrypted_content"),
    "compaction_summary": _texts("encrypted_content"),
    "context_compaction": lambda _: True,
    "agent_message": lambda data: isinstance(data.get("author"), str) and isinstance(data.get("content"), list),
}
