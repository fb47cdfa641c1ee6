"""Writes what a repair wants over the lines of a rollout: the `Editor` of Codex's threads. Pure.

No line can be put between two others, so what asks for that gets no edit. What does not fit into its line gets none
either: another way is tried, or the thread is left alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recoveryd.clients.codex import rollout_lines
from recoveryd.clients.codex.item_forms import CONFIGURATION, TOOLS, image_url, is_read
from recoveryd.clients.codex.thread import in_history, place
from recoveryd.clients.codex.wire import takes_tools_as_item
from recoveryd.clients.line_editor import LineEditor
from recoveryd.core import Block, CallLimits, Edit, Edits, Json, Part, repeated

_NOTES = ("[image removed: {why}]", "[image removed]", "[no image]", "[image]", "[]", "")
_LONGEST_ID = 40
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
_SPARE = ("id", "internal_chat_message_metadata_passthrough")  # of an item: no request needs them


@dataclass(frozen=True, slots=True)
class CodexEditor(LineEditor):
    """Edits of one thread."""

    def mend_call(self, block: Block, limits: CallLimits) -> Edits:
        part = self._part(block.part_id)
        data = part.data or {}
        old, fields = data.get("call_id"), _legal_fields(data, limits)
        edits = []
        if isinstance(old, str) and (new := self._legal_id(old, limits)) != old:
            fields["call_id"] = new
            edits = [self._mended(other, {"call_id": new}, companion=True) for other in self._beside(part, old)]
        own = self._mended(part, fields) if fields else None
        found = [own, *edits]
        return () if own is None or None in found else tuple(edit for edit in found if edit is not None)

    def replace_text(self, block: Block, words: str) -> Edits:
        """Put a text in the place of another; the client sends an empty text as none."""
        del block, words
        return ()

    def take_out_media(self, block: Block, fault: Callable[[Json], str | None], reason: str) -> Edits:
        del reason
        part = self._part(block.part_id)
        if part.type == "image_generation_call":
            return (Edit(part.message_id, part.id, None, "set_aside_picture"),)
        field = "content" if part.type == "message" else "output"
        content = (part.data or {}).get(field)
        items = content if isinstance(content, list) else []
        faults = [fault(one) if _is_image(one) else None for one in items]
        gone = len(faults) - faults.count(None)
        notes = (self._with(part, {field: _noted(items, faults, note)}, "take_out_media") for note in _NOTES)
        edit = next((edit for edit in notes if edit is not None), None) if gone else None
        return (repeated(edit, gone),) if edit is not None else ()

    def set_aside(self, blocks: Iterable[Block], action: str) -> Edits:
        """Take items out; not one that the client makes anew with the next prompt."""
        anew = {CONFIGURATION, TOOLS} if takes_tools_as_item(self.session) else {CONFIGURATION}
        stored = [block for block in blocks if block.part_id and block.type not in anew]
        return tuple(Edit(block.message_id, block.part_id, None, action) for block in stored)

    def without_field(self, block: Block, field: str, action: str) -> Edits:
        """Empty a field; not one without which the client would pass over the item."""
        part = self._part(block.part_id)
        data = part.data or {}
        emptied = {**data, field: None}
        if data.get(field) is None or not is_read(emptied, in_history=in_history(part.id)):
            return ()
        without = {key: value for key, value in data.items() if key != field}
        body = next((body for body in (emptied, without) if _fits(part, body)), None)
        return (Edit(part.message_id, part.id, body, action),) if body is not None else ()

    def as_message(self, block: Block, action: str) -> Edits:
        part = self._part(block.part_id)
        data = part.data or {}
        told = _told(data)
        role = _role(data, told)
        wanted = "output_text" if role == "assistant" else "input_text"
        content = [one if _is_media(one) and role != "assistant" else _said(one, wanted) for one in told]
        kept = [one for one in content if one is not None]
        if not kept:
            return ()
        of_tool = role == "user" and data.get("type") != "message"
        source = [{"type": wanted, "text": f"{data.get('type')}:"}] if of_tool else []  # or it reads as a person's
        bodies = ({"type": "message", "role": role, "content": said} for said in ([*source, *kept], kept))
        body = next((body for body in bodies if _fits(part, body)), None)
        return (Edit(part.message_id, part.id, body, action),) if body is not None else ()

    def mend_unsendable(self, part_id: str, fault: str, reason: str, cancelled: str) -> Edits:
        del fault, reason, cancelled
        part = self._part(part_id)
        return (Edit(part.message_id, part.id, {**(part.data or {}), "fault": None}, "mend_part"),)

    def _beside(self, part: Part, call_id: str) -> list[Part]:
        """List the other items of a call: its output, and what stands for either of them twice."""
        return [
            other for other in self._parts() if other.id != part.id and (other.data or {}).get("call_id") == call_id
        ]

    def _mended(self, part: Part, fields: Json, *, companion: bool = False) -> Edit | None:
        """Return a side of a call with some fields changed; where they need room, without what no request needs."""
        without = [{**fields, **dict.fromkeys(_SPARE[:many])} for many in range(len(_SPARE) + 1)]
        made = (self._with(part, changed, "mend_call", companion=companion) for changed in without)
        return next((edit for edit in made if edit is not None), None)

    def _with(self, part: Part, fields: Json, action: str, *, companion: bool = False) -> Edit | None:
        """Return `part` with some fields changed; None where that does not fit."""
        body = {**(part.data or {}), **fields}
        return Edit(part.message_id, part.id, body, action, companion) if _fits(part, body) else None

    def _legal_id(self, old: str, limits: CallLimits) -> str:
        """Make a legal id, the same for both sides of a call, and for each repair of it."""
        legal = old and not limits.illegal_in_id.search(old)
        if legal and (limits.longest_id is None or len(old) <= limits.longest_id):
            return old
        made = "call_" + hashlib.sha256(old.encode("utf-8", "surrogatepass")).hexdigest()
        return made[: max(12, min(_LONGEST_ID, len(old)))] if old else made[:12]


def _role(data: Json, told: Sequence[object]) -> str:
    """Tell who says what an item says: as it has it, where that is a role; what a tool said goes to the model's
    side, but with images or sounds, which no answer can hold, to the other.
    """
    if data.get("type") != "message":
        return "user" if any(_is_media(one) for one in told) else "assistant"
    role = data.get("role")
    return str(role) if role in ("user", "assistant", "developer") else "user"


def _told(data: Json) -> Sequence[object]:
    """Return what an item says to whoever reads it: of a call what was called, and with what; of a search for tools
    which it found; of an image that the model made what was asked for, and the image.
    """
    if data.get("type") in _CALLS:
        given = next((data[key] for key in ("input", "arguments", "action") if data.get(key)), "")
        words = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=dict)
        return [{"text": f"{data.get('name') or data['type']}: {words}"}]
    if data.get("type") == "tool_search_output":  # the tools themselves are the client's, which offers them anew
        return [{"text": f"tools: {', '.join(map(_named, _mappings(data.get('tools')))) or 'none'}"}]
    if data.get("type") == "image_generation_call":
        made = image_url(str(data.get("result")))
        image = [{"type": "input_image", "image_url": made}] if made is not None else []
        return [{"text": data.get("revised_prompt")}, *image]
    told = data.get("content", data.get("output"))
    return told if isinstance(told, list) else [{"text": told}]


def _named(tool: Json) -> str:
    """Return the name of a tool; of a namespace with those of its tools."""
    of_it = ", ".join(str(one.get("name")) for one in _mappings(tool.get("tools")))
    return f"{tool.get('name')} ({of_it})" if of_it else str(tool.get("name"))


def _mappings(value: object) -> list[Json]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _said(one: object, kind: str) -> Json | None:
    text = one.get("text") if isinstance(one, Mapping) else None
    return {"type": kind, "text": text} if isinstance(text, str) and text.strip() else None


def _legal_fields(data: Json, limits: CallLimits) -> dict[str, Any]:
    """Return the names and the input of a call as they may be, where they are not."""
    fields: dict[str, Any] = {}
    for key in ("name", "namespace"):
        name = data.get(key)
        if isinstance(name, str) and (legal := (limits.legal_name(name) or "tool")) != name:
            fields[key] = legal
    for key in ("arguments", "input"):
        given = data.get(key)
        if isinstance(given, str) and limits.longest_input is not None and len(given) > limits.longest_input:
            note = f"[{len(given):,} characters taken out]"
            fields[key] = json.dumps({"note": note}) if key == "arguments" else note
    return fields


def _is_image(one: object) -> bool:
    return isinstance(one, Mapping) and one.get("type") == "input_image"


def _is_media(one: object) -> bool:
    return _is_image(one) or (isinstance(one, Mapping) and one.get("type") == "input_audio")


def _noted(content: Sequence[object], faults: Sequence[str | None], note: str) -> list[object]:
    return [
        one if why is None else {"type": "input_text", "text": note.format(why=why)}
        for one, why in zip(content, faults, strict=True)
    ]


def _fits(part: Part, body: Json) -> bool:
    """Whether a line with this in the place of the part is no longer than the stored one. One of several in a line has
    the room that it had alone.
    """
    line = rollout_lines.parse(part.raw or b"")
    if line is None:
        return part.raw is None
    _, index = place(part.id)
    if index is None:
        return rollout_lines.in_length_of(part.raw or b"", {**line, "payload": body}) is not None
    stored = rollout_lines.payload(line)["replacement_history"][index]
    return len(rollout_lines.dump(body)) <= len(rollout_lines.dump(stored))
