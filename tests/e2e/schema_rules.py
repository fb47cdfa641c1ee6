"""What the provider's schema takes as a message: types of blocks, their fields, and what those may hold.

The public API reference of the Messages API (the beta one, which Claude Code asks), and the words of its validator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Fault = str | None
Check = Callable[[str, Any], Fault]

_CALL = re.compile(r"^[a-zA-Z0-9_-]+$")
_SERVER = re.compile(r"^srvtoolu_[a-zA-Z0-9_]+$")
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,200}$")
_SERVER_TOOLS = (
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
)
_SERVER_RESULTS = (
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
)
_CITATIONS = (
    "char_location",
    "page_location",
    "content_block_location",
    "web_search_result_location",
    "search_result_location",
)
ROLES = ("user", "assistant", "system")


def _text(where: str, value: Any) -> Fault:
    return None if isinstance(value, str) else f"{where}: Input should be a valid string"


def _object(where: str, value: Any) -> Fault:
    return None if isinstance(value, dict) else f"{where}: Input should be a valid dictionary"


def _truth(where: str, value: Any) -> Fault:
    return None if isinstance(value, bool) else f"{where}: Input should be a valid boolean"


def _anything(where: str, value: Any) -> Fault:
    del where, value
    return None


def _like(pattern: re.Pattern[str]) -> Check:
    def check(where: str, value: Any) -> Fault:
        if not isinstance(value, str):
            return f"{where}: Input should be a valid string"
        return None if pattern.match(value) else f"{where}: String should match pattern '{pattern.pattern}'"

    return check


def _one_of(names: tuple[str, ...]) -> Check:
    def check(where: str, value: Any) -> Fault:
        listed = ", ".join(f"'{name}'" for name in names[:-1])
        return None if value in names else f"{where}: Input should be {listed} or '{names[-1]}'"

    return check


def _citations(where: str, value: Any) -> Fault:
    if value is None:
        return None
    if not isinstance(value, list):
        return f"{where}: Input should be a valid array"
    return next((fault for n, item in enumerate(value) if (fault := _citation(f"{where}.{n}", item))), None)


def _citation(where: str, value: Any) -> Fault:
    wrong = _tagged(where, value, _CITATIONS)
    missing = None if wrong or "cited_text" in value else f"{where}.{value['type']}.cited_text: Field required"
    return wrong or missing


def _source(*kinds: str) -> Check:
    fields: Mapping[str, dict[str, Check]] = {
        "base64": {"media_type": _text, "data": _text},
        "url": {"url": _text},
        "file": {"file_id": _text},
        "text": {"media_type": _text, "data": _text},
        "content": {"content": _anything},
    }

    def check(where: str, value: Any) -> Fault:
        wrong = _tagged(where, value, kinds)
        return wrong or _fields(f"{where}.{value['type']}", value, fields[value["type"]], {})

    return check


def _content(*kinds: str) -> Check:
    def check(where: str, value: Any) -> Fault:
        if isinstance(value, str):
            return None
        if not isinstance(value, list):
            return f"{where}: Input should be a valid array"
        return next((fault for n, item in enumerate(value) if (fault := _block(f"{where}.{n}", item, kinds))), None)

    return check


def _tagged(where: str, value: Any, kinds: tuple[str, ...]) -> Fault:
    if not isinstance(value, dict):
        return f"{where}: Input should be an object"
    if "type" not in value:
        return f"{where}.type: Field required"
    if value["type"] in kinds:
        return None
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    return f"{where}: Input tag '{value['type']}' found using 'type' does not match any of the expected tags: {listed}"


# For each type of block the fields that it must have, and those that it may have.
_BLOCKS: Mapping[str, tuple[dict[str, Check], dict[str, Check]]] = {
    "text": ({"text": _text}, {"citations": _citations}),
    "image": ({"source": _source("base64", "url", "file")}, {}),
    "document": (
        {"source": _source("base64", "text", "content", "url", "file")},
        {"title": _anything, "context": _anything, "citations": _anything},
    ),
    "search_result": ({"source": _text, "title": _text, "content": _content("text")}, {"citations": _anything}),
    "thinking": ({"thinking": _text, "signature": _text}, {}),
    "redacted_thinking": ({"data": _text}, {}),
    "tool_use": ({"id": _like(_CALL), "name": _like(_NAME), "input": _object}, {"caller": _object}),
    "tool_result": (
        {"tool_use_id": _like(_CALL)},
        {
            "content": lambda where, value: _content("text", "image", "search_result", "document", "tool_reference")(
                where, value
            ),
            "is_error": _truth,
        },
    ),
    "tool_reference": ({"tool_name": _text}, {}),
    "server_tool_use": (
        {"id": _like(_SERVER), "name": _one_of(_SERVER_TOOLS), "input": _object},
        {"caller": _object},
    ),
    **{kind: ({"tool_use_id": _like(_SERVER), "content": _anything}, {"caller": _object}) for kind in _SERVER_RESULTS},
    "mcp_tool_use": ({"id": _like(_CALL), "name": _text, "server_name": _text, "input": _object}, {}),
    "mcp_tool_result": ({"tool_use_id": _like(_CALL)}, {"content": _content("text"), "is_error": _truth}),
    "container_upload": ({"file_id": _text}, {}),
    "compaction": ({"content": _anything}, {"encrypted_content": _anything}),
}
_OUTER = tuple(sorted(set(_BLOCKS) - {"tool_reference"}))


def _block(where: str, value: Any, kinds: tuple[str, ...]) -> Fault:
    wrong = _tagged(where, value, kinds)
    if wrong is not None:
        return wrong
    required, optional = _BLOCKS[value["type"]]
    return _fields(f"{where}.{value['type']}", value, required, optional)


def _fields(where: str, value: dict[str, Any], required: dict[str, Check], optional: dict[str, Check]) -> Fault:
    known = {**required, **optional}
    for name in required:
        if name not in value:
            return f"{where}.{name}: Field required"
    for name, held in value.items():
        if name in ("type", "cache_control"):
            continue
        if name not in known:
            return f"{where}.{name}: Extra inputs are not permitted"
        fault = known[name](f"{where}.{name}", held)
        if fault is not None:
            return fault
    return None


def schema(messages: Any) -> Fault:
    """The first thing in `messages` (as sent, nothing merged) that the schema does not take."""
    if not isinstance(messages, list):
        return "messages: Input should be a valid array"
    return next(_faults(messages), None)


def _faults(messages: list[Any]) -> Iterator[str]:
    for at, message in enumerate(messages):
        where = f"messages.{at}"
        if not isinstance(message, dict):
            yield f"{where}: Input should be an object"
            continue
        if message.get("role") not in ROLES:
            yield f"{where}.role: Input should be 'user' or 'assistant'"
        extra = set(message) - {"role", "content", "output_config"}
        if extra:
            yield f"{where}.{min(extra)}: Extra inputs are not permitted"
        if "content" not in message:
            yield f"{where}.content: Field required"
        elif fault := _content(*_OUTER)(f"{where}.content", message["content"]):
            yield fault


def server_pairs(messages: list[dict[str, Any]]) -> Fault:
    """A server's tool call without its result in the same message, or the other way round."""
    for at, message in enumerate(messages):
        called: dict[str, str] = {}
        for n, block in enumerate(message["content"]):
            if block["type"] == "server_tool_use":
                called[block["id"]] = block["name"]
            elif block["type"] in _SERVER_RESULTS and called.pop(block["tool_use_id"], None) is None:
                return (
                    f"messages.{at}.content.{n}: unexpected `tool_use_id` found in `{block['type']}` blocks: "
                    f"{block['tool_use_id']}. Each `{block['type']}` block must have a corresponding "
                    "`server_tool_use` block before it."
                )
        for name, tool in called.items():
            if at < len(messages) - 1:
                return (
                    f"messages.{at}: `{tool}` tool use with id `{name}` was found without a corresponding "
                    f"`{tool}_tool_result` block"
                )
    return None
