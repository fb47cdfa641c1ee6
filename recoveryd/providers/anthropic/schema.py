"""What no schema of Anthropic's takes of a single block: types and fields that it does not know, values of no use.

From its public reference of the Messages API (the beta one). What clients send of their own accord passes; what stays
of another provider's answers in a transcript does not (anthropics/claude-code 77512, 4378).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from recoveryd.core import Json

Fault = tuple[str, str]  # the way to it in the block ("" is all of it; "content.1.text"), and a reason

# The fields of each type, those that have to be there with a "!".
_FIELDS: Mapping[str, str] = {
    "text": "text! citations",
    "image": "source!",
    "document": "source! title context citations",
    "search_result": "source! title! content! citations",
    "thinking": "thinking! signature",
    "redacted_thinking": "data!",
    "tool_use": "id name input caller",
    "tool_result": "tool_use_id content is_error",
    "server_tool_use": "id name input caller",
    "mcp_tool_use": "id name input server_name!",
    "mcp_tool_result": "tool_use_id content is_error",
    "tool_reference": "tool_name!",
    "container_upload": "file_id!",
    "compaction": "content encrypted_content",
}
_SERVER_RESULT = "tool_use_id content! caller"
# Known to the provider; what they hold is not looked at.
_UNCHECKED = frozenset({"fallback", "mcp_tool_listing", "mid_conv_system", "tool_addition", "tool_removal"})
_ANYWHERE = frozenset({"type", "cache_control"})
_NESTED = {
    "tool_result": frozenset({"text", "image", "document", "search_result", "tool_reference"}),
    "mcp_tool_result": frozenset({"text"}),
}
_SOURCES: Mapping[str, str] = {
    "base64": "data! media_type!",
    "url": "url!",
    "file": "file_id!",
    "text": "data! media_type!",
    "content": "content!",
}
_TEXTS = frozenset({"text", "thinking", "signature", "data", "media_type", "url", "file_id", "tool_name"})
_CITATIONS: Mapping[str, str] = {
    "char_location": "cited_text document_index document_title start_char_index end_char_index",
    "page_location": "cited_text document_index document_title start_page_number end_page_number",
    "content_block_location": "cited_text document_index document_title start_block_index end_block_index",
    "web_search_result_location": "cited_text encrypted_index title url",
    "search_result_location": "cited_text search_result_index source start_block_index end_block_index title",
}


def schema_faults(body: Json) -> Iterator[Fault]:
    """List all of a block that no schema of Anthropic's takes. Ids, names and inputs of calls are `block_rules`'s."""
    return _block(body, "")


def _block(body: Json, way: str) -> Iterator[Fault]:
    kind = str(body.get("type"))
    if kind in _UNCHECKED:
        return
    fields = _FIELDS.get(kind) or (_SERVER_RESULT if kind.endswith("_tool_result") else None)
    if fields is None:
        yield way, f"the provider knows no block of the type {kind!r}"
        return
    known, needed = _read(fields)
    missing = sorted(needed - body.keys())
    if missing:
        yield way, f"a block of the type {kind!r} has no {missing[0]!r}"
        return
    for name in body.keys() - known - _ANYWHERE:
        yield _deeper(way, name), f"the provider takes no field {name!r} in a block of the type {kind!r}"
    for name in sorted(body.keys() & known & _CHECKS.keys()):
        yield from _CHECKS[name](kind, name, body[name], way)


@cache
def _read(fields: str) -> tuple[frozenset[str], frozenset[str]]:
    names = fields.split()
    return frozenset(name.rstrip("!") for name in names), frozenset(name[:-1] for name in names if name[-1] == "!")


def _words(kind: str, name: str, value: Any, way: str) -> Iterator[Fault]:
    """What is no text takes the block with it; a signature only itself: thinking without one, clients know."""
    if not isinstance(value, str):
        yield (_deeper(way, name) if name == "signature" else way), f"{name!r} of a {kind} block is no text"


def _citations(kind: str, name: str, value: Any, way: str) -> Iterator[Fault]:
    """Of a document they are a setting."""
    if kind == "text" and value is not None and not (isinstance(value, list) and all(map(_cited, value))):
        yield _deeper(way, name), "its citations are none that the provider knows"


def _cited(value: Any) -> bool:
    fields = _CITATIONS.get(str(value.get("type"))) if isinstance(value, Mapping) else None
    return fields is not None and not set(fields.split()) - value.keys()


def _truth(kind: str, name: str, value: Any, way: str) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield _deeper(way, name), f"{name!r} of a {kind} block is neither true nor false"


def _content(kind: str, name: str, value: Any, way: str) -> Iterator[Fault]:
    kinds = _NESTED.get(kind)
    if kinds is None or isinstance(value, str):
        return
    if not isinstance(value, list):
        yield _deeper(way, name), f"the content of a {kind} block is neither a text nor a list"
        return
    for index, item in enumerate(value):
        inner = _deeper(way, f"{name}.{index}")
        if not isinstance(item, Mapping) or item.get("type") not in kinds:
            told = item.get("type") if isinstance(item, Mapping) else item
            yield inner, f"a {kind} block can't hold {told!r}"
        else:
            yield from _block(item, inner)


def _source(kind: str, name: str, value: Any, way: str) -> Iterator[Fault]:
    if kind == "search_result":
        return
    fields = _SOURCES.get(str(value.get("type"))) if isinstance(value, Mapping) else None
    if fields is None:
        yield way, f"the source of a {kind} is none that the provider knows"
        return
    known, needed = _read(fields)
    if needed - value.keys() or any(not isinstance(value[field], str) for field in needed & _TEXTS):
        yield way, f"the source of a {kind} is not whole"
        return
    for extra in value.keys() - known - {"type"}:
        yield _deeper(way, f"{name}.{extra}"), f"the provider takes no field {extra!r} in the source of a {kind}"


def _deeper(way: str, name: str) -> str:
    return f"{way}.{name}" if way else name


_CHECKS: Mapping[str, Callable[[str, str, Any, str], Iterator[Fault]]] = {
    "text": _words,
    "thinking": _words,
    "signature": _words,
    "data": _words,
    "citations": _citations,
    "is_error": _truth,
    "content": _content,
    "source": _source,
}
