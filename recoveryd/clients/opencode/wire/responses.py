"""What `@ai-sdk/openai` and `@ai-sdk/azure` send: the input items of OpenAI's Responses API, nothing kept there.

A flat request, as `core.request` says: each item is a turn of one block, but for a prompt of several parts, whose block
for each part holds what stands before it as None. Ids of items are never sent. Held to the bodies that the real client
sent (tests/e2e/test_families.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from recoveryd.clients.javascript import javascript_json
from recoveryd.clients.opencode.wire.media import CannotSend
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import SdkWire, SentMessage, block
from recoveryd.core import Block, Json, Request, Session, Turn

_SYSTEM = Block({"type": "message", "role": "developer", "content": ""}, "", "")


@dataclass(frozen=True)
class OpenaiResponses(SdkWire):
    """The `Wire` of OpenCode to OpenAI."""

    protocol: ClassVar[str] = "openai.responses"

    def build(self, session: Session) -> Request:
        return replace(super().build(session), flat=True)

    def stored(self, session: Session) -> Request:
        return replace(super().stored(session), flat=True)

    def in_results(self, mime: str) -> bool:
        del mime
        return True

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        sent = [one for piece in pieces for one in self._answered(piece)]
        return sent if self.form.spreads_files else _as_one_item(sent)

    def prompt(self, pieces: Sequence[Piece]) -> list[Block] | None:
        parts = [_asked(piece, place) for place, piece in enumerate(pieces)]
        return [
            block(piece, {"type": "message", "role": "user", "content": [*[None] * place, part]})
            for place, (piece, part) in enumerate(zip(pieces, parts, strict=True))
        ] or [Block({"type": "message", "role": "user", "content": []}, "", "")]

    def _answered(self, piece: Piece) -> list[Block]:
        match piece.kind:
            case "text":
                said = [{"type": "output_text", "text": piece.body["text"]}]
                return [block(piece, {"type": "message", "role": "assistant", "content": said})]
            case "call" if not piece.executed:
                call: dict[str, Any] = {"type": "function_call", "call_id": piece.body["id"]}
                given = {"arguments": javascript_json(piece.body["input"])} if "input" in piece.body else {}
                return [block(piece, {**call, "name": piece.body["name"], **given})]
            case "reasoning":
                return self._reasoning(piece)
        return []

    def _reasoning(self, piece: Piece) -> list[Block]:
        """Make an item with what is encrypted; before 1.14 also one without, as long as it names an item."""
        marks, words = piece.marks_of("openai") or piece.marks_of("azure"), piece.body["text"]
        sealed, item = marks.get("reasoningEncryptedContent"), marks.get("itemId")
        if (sealed if self.form.spreads_files else item) is None:
            return []
        body: dict[str, Any] = (
            {"type": "reasoning"} if sealed is None else {"type": "reasoning", "encrypted_content": sealed}
        )
        body["summary"] = [{"type": "summary_text", "text": words}] if words else []
        return [block(piece, body if self.form.spreads_files else {**body, "id": item})]

    def file(self, piece: Piece) -> Block:
        return block(piece, _asked(piece, 0))

    def results(self, pieces: Sequence[Piece]) -> list[Block]:
        return [_given_back(piece) for piece in pieces if not piece.executed]

    def merge(self, entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
        turns = [Turn("developer", (_SYSTEM,), (("", ""),))] if self.form.system_is_item else []
        for entry in entries:
            if entry.role == "user" and entry.blocks and entry.blocks[0].type in ("message", "text"):
                turns.append(Turn("user", tuple(map(_as_item, entry.blocks)), (entry.origin,)))
                continue
            for item in entry.blocks:
                role = "tool" if item.type.endswith("_output") else "assistant"
                turns.append(Turn(role, (item,), (entry.origin,)))
        return tuple(turns)


@dataclass(frozen=True)
class AzureResponses(OpenaiResponses):
    """The `Wire` of OpenCode to OpenAI's models on Azure: files stand beside the results of tools."""

    protocol: ClassVar[str] = "azure.responses"

    def in_results(self, mime: str) -> bool:
        del mime
        return False


def _as_item(asked: Block) -> Block:
    """Make the prompt to come a text like any other."""
    if asked.type == "message":
        return asked
    body = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": asked.body["text"]}]}
    return replace(asked, body=body)


def _as_one_item(sent: Sequence[Block]) -> list[Block]:
    """Join reasoning that names one item to that item, where its first stands; ids themselves are not sent."""
    found: list[Block] = []
    places: dict[object, int] = {}
    for one in sent:
        item = one.body.get("id")
        if item is None or item not in places:
            places.setdefault(item, len(found))
            found.append(one)
            continue
        first = found[places[item]]
        body = {**first.body, **one.body, "summary": [*first.body["summary"], *one.body["summary"]]}
        carriers = (*(first.carriers or ((first.message_id, first.part_id),)), (one.message_id, one.part_id))
        found[places[item]] = replace(first, body=body, carriers=carriers)
    return [replace(one, body={key: value for key, value in one.body.items() if key != "id"}) for one in found]


def _given_back(piece: Piece) -> Block:
    content = piece.body["content"]
    output = content if isinstance(content, str) else [_part(item, "data") for item in content]
    return block(piece, {"type": "function_call_output", "call_id": piece.body["id"], "output": output})


def _asked(piece: Piece, place: int) -> Json:
    if piece.kind == "text":
        return {"type": "input_text", "text": piece.body["text"]}
    mime = piece.body["mime"]
    if not mime.startswith("image/") and mime != "application/pdf":
        raise CannotSend("file", f"the client cannot send OpenAI a file of type {mime}")
    return _part(piece.body, piece.body.get("filename") or f"part-{place}.pdf")


def _part(item: Json, name: str) -> Json:
    if item["type"] == "text":
        return {"type": "input_text", "text": item["text"]}
    mime, source = item["mime"], item["source"]
    url = source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"
    if mime.startswith("image/"):
        return {"type": "input_image", "image_url": url}
    return {"type": "input_file", "filename": name, "file_data": url}
