"""Writes what a repair wants over the blocks of a transcript: the `Editor` of Claude Code. Pure.

A block is replaced by another one in its place. What would need a new line is left to the client: it mends the order of
messages, and pairs of calls and results, by itself; an open turn that is refused for its thinking it does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recoveryd.clients.claude_code.edited_lines import MARK
from recoveryd.clients.line_editor import LineEditor
from recoveryd.core import Block, CallLimits, Edit, Edits, Json, Part, clean, json_of, repeated

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_SERVER_ILLEGAL = re.compile(r"[^a-zA-Z0-9_]")
_MISSING = object()
_NAMELESS = "unknown_tool"
_LONGEST = 2000  # characters of a block of no words that are kept as words; the ledger has all of it


@dataclass(frozen=True, slots=True)
class ClaudeCodeEditor(LineEditor):
    """Edits of one transcript."""

    def mend_call(self, block: Block, limits: CallLimits) -> Edits:
        part = self._part(block.part_id)
        data = part.data or {}
        results = self._results(part)
        fields = self._call_fields(part, results, limits)
        new = fields.get("id", data.get("id"))
        edits = [self._with(part, fields, "mend_call")] if fields else []
        beside = results if "id" in fields else ()
        edits += [self._with(result, {"tool_use_id": new}, "mend_call", companion=True) for result in beside]
        return tuple(edits)

    def replace_text(self, block: Block, words: str) -> Edits:
        part = self._part(block.part_id)
        data = part.data or {}
        if part.type == "text":
            return (self._with(part, {"text": words}, "placeholder"),)
        content = data.get("content")
        if part.type != "tool_result" or not isinstance(content, list):
            return ()
        items = [{**item, "text": words} if _is_blank(item) else item for item in content]
        return (self._with(part, {"content": items}, "placeholder"),)

    def take_out_media(self, block: Block, fault: Callable[[Json], str | None], reason: str) -> Edits:
        part = self._part(block.part_id)
        if part.type in ("image", "document", "container_upload"):
            return (self._replaced(part, {"type": "text", "text": _note(part.data or {}, reason)}, "take_out_media"),)
        content = (part.data or {}).get("content")
        items = content if isinstance(content, list) else []
        faults = [fault(item["source"]) if _is_media(item) else None for item in items]
        noted = [
            {"type": "text", "text": _note(item, why)} if why else item for item, why in zip(items, faults, strict=True)
        ]
        gone = sum(why is not None for why in faults)
        return (repeated(self._with(part, {"content": noted}, "take_out_media"), gone),) if gone else ()

    def set_aside(self, blocks: Iterable[Block], action: str) -> Edits:
        """Set aside blank words and thinking; all else that somebody said, or a tool gave back, stays."""
        may_go = (b for b in blocks if b.part_id and (b.is_thinking or (_is_blank(b.body) and not self._plain(b))))
        return tuple(Edit(block.message_id, block.part_id, None, action) for block in may_go)

    def without_field(self, block: Block, field: str, action: str) -> Edits:
        """Take a field out of a block; `field` may lead deeper ("content.1.text"). What stands in a list becomes words
        in its place, but for a tool that is named ("content.tool_references.Bash").
        """
        part = self._part(block.part_id)
        data = _without(part.data or {}, field.split("."))
        return () if data == part.data else (self._replaced(part, data, action),)

    def as_message(self, block: Block, action: str) -> Edits:
        """Put a text in the place of a block, with what can be read of it."""
        part = self._part(block.part_id)
        return (self._replaced(part, _as_text(part.data), action),)

    def mend_unsendable(self, part_id: str, fault: str, reason: str, cancelled: str) -> Edits:
        del part_id, fault, reason, cancelled
        return ()

    def _call_fields(self, part: Part, results: Sequence[Part], limits: CallLimits) -> dict[str, Any]:
        """Return what has to change for a call to be legal."""
        data = part.data or {}
        fields: dict[str, Any] = {}
        new = self._legal_id(part, limits)
        if new != data.get("id"):
            fields["id"] = new
        name = _server_name(data, results) if part.type == "server_tool_use" else _legal_name(data.get("name"), limits)
        if part.type != "mcp_tool_use" and name != data.get("name"):
            fields["name"] = name
        if not isinstance(data.get("input"), Mapping):
            fields["input"] = _as_object(data.get("input"))
        return fields

    def _legal_id(self, part: Part, limits: CallLimits) -> str:
        """Make a call's own id legal; one that no other call of the session has."""
        old = (part.data or {}).get("id")
        server = part.type == "server_tool_use"
        illegal = _SERVER_ILLEGAL if server else limits.illegal_in_id
        prefix = "srvtoolu_" if server else "toolu_"
        legal = illegal.sub("_", old) if isinstance(old, str) else ""
        if server and legal and not legal.startswith(prefix):
            legal = prefix + legal
        theirs = [(p.data or {}).get("id") for p in self._parts() if p.type in _CALLS and p.id != part.id]
        if legal and (legal == old or legal not in theirs):
            return legal
        return prefix + illegal.sub("", part.id)

    def _results(self, call: Part) -> list[Part]:
        """List what came back from a call. A result is of the call whose line it names, else of the nearest answer
        before it that calls by its id: of the first call there that has none yet.
        """
        wanted = (call.data or {}).get("id", _MISSING)
        own = call.type == "tool_use"
        calls = list[tuple[str, Part]]()  # by that id so far, each with its answer
        given = dict[str, list[Part]]()  # what came back from them
        for message in self.session.messages:
            for part in message.parts:
                data = part.data or {}
                if part.type == call.type and data.get("id", _MISSING) == wanted:
                    calls.append((str(message.data.get("api_id") or message.id), part))
                    given[part.id] = []
                elif calls and _is_result(part, own=own) and data.get("tool_use_id", _MISSING) == wanted:
                    named = [p for _, p in calls if p.message_id == message.data.get("call_line")]
                    near = named or [p for answer, p in calls if answer == calls[-1][0]]
                    taker = next((p for p in near if not given[p.id]), near[-1])
                    given[taker.id].append(part)
        return given[call.id]

    def _plain(self, block: Block) -> bool:
        """Whether its line says a text instead of a list: then there is nothing else in it."""
        message = self.session.message(block.message_id)
        return message is not None and message.data.get("form") == "text"

    def _with(self, part: Part, fields: Json, action: str, *, companion: bool = False) -> Edit:
        return self._replaced(part, {**(part.data or {}), **fields}, action, companion=companion)

    def _replaced(self, part: Part, data: Json, action: str, *, companion: bool = False) -> Edit:
        """Mark an edited block with the recovery; the mark is written beside the message in its line."""
        marked = {**data, MARK: {"recovery": self.marks.recovery}}
        return Edit(part.message_id, part.id, marked, action, companion)


def _is_result(part: Part, *, own: bool) -> bool:
    """Whether it came back from a tool: of the client (`own`), or of the provider."""
    return part.type.endswith("tool_result") and (part.type == "tool_result") is own


def _legal_name(name: object, limits: CallLimits) -> str:
    if not isinstance(name, str) or not name:
        return _NAMELESS
    return limits.legal_name(name)


def _server_name(data: Json, results: Sequence[Part]) -> str:
    """Return the tool that a result is of; there are no others than the provider's own."""
    name = data.get("name")
    kinds = [part.type.removesuffix("_tool_result") for part in results]
    told = next(("tool_search_tool_regex" if kind == "tool_search" else kind for kind in kinds), "")
    if isinstance(name, str) and (not told or name.startswith(told.removesuffix("_regex"))):
        return name
    return told or _NAMELESS


def _as_object(value: object) -> Json:
    """Make an object of an input that is none: the object that a text spells, else the value under a key."""
    if value is None or value == "":
        return {}
    spelled = json_of(value) if isinstance(value, str) else None
    if isinstance(spelled, dict):
        return spelled
    return {"value": value}


def _without(value: Any, way: Sequence[str]) -> Any:
    """Return `value` without what `way` leads to."""
    first, *rest = way
    if isinstance(value, list) and not first.isdigit():
        return [item for item in value if not (isinstance(item, Mapping) and item.get("tool_name") == first)]
    if isinstance(value, list):
        index = int(first)
        new = _without(value[index], rest) if rest else _as_text(value[index])
        return [new if at == index else item for at, item in enumerate(value)]
    if not isinstance(value, Mapping) or first not in value:
        return value
    if rest:
        return {**value, first: _without(value[first], rest)}
    return {name: item for name, item in value.items() if name != first}


def _as_text(value: Any) -> Json:
    """Make what stands in the place of a block that no provider takes: its own words, else all of it as JSON."""
    if isinstance(value, str):
        words = value
    elif isinstance(value, Mapping):
        words = next((said for said in _said(value) if said.strip()), "")
    else:
        words = ""
    return {"type": "text", "text": words if words.strip() else clean(json.dumps(value, ensure_ascii=False), _LONGEST)}


def _said(value: Json) -> Iterator[str]:
    for name in ("text", "thinking", "summary", "content", "resource"):
        said = value.get(name)
        if isinstance(said, str):
            yield said
        elif isinstance(said, Mapping):
            yield from _said(said)
        elif isinstance(said, list):
            texts = [text for item in said if isinstance(item, Mapping) for text in _said(item)]
            yield "\n".join(texts)


def _is_blank(item: object) -> bool:
    if not isinstance(item, Mapping) or item.get("type") != "text":
        return False
    return isinstance(item.get("text"), str) and not item["text"].strip()


def _is_media(item: object) -> bool:
    return (
        isinstance(item, Mapping)
        and item.get("type") in ("image", "document")
        and isinstance(item.get("source"), Mapping)
    )


def _note(item: Json, reason: str) -> str:
    """ "[The image http://… was taken out: it can't be downloaded]" """
    source = item.get("source")
    source = source if isinstance(source, Mapping) else {}
    names = (item.get("title"), item.get("file_id"), source.get("url"), source.get("file_id"))
    name = next((f" {clean(str(name), 200)}" for name in names if name), "")
    noun = "image" if item.get("type") == "image" else "document"
    return f"[The {noun}{name} was taken out: {reason}]"
