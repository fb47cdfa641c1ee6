"""What `@ai-sdk/amazon-bedrock` sends for a stored session: Amazon Bedrock's Converse API.

The blocks are written as Anthropic's: a `toolUse` is a tool_use, a `reasoningText` is thinking, the name of a document
its title. Held to the bodies that the real client sent (tests/e2e/test_doors.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recoveryd.clients.opencode.wire.media import CannotSend
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import SdkWire, SentMessage, block, merge_neighbours, text_block
from recoveryd.core import Block, Json, Turn

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_OFFICE = "application/vnd.openxmlformats-officedocument"
_DOCUMENTS = frozenset(
    {"application/pdf", "text/csv", "text/html", "text/plain", "text/markdown", "application/msword"}
)
_DOCUMENTS |= {f"{_OFFICE}.wordprocessingml.document", f"{_OFFICE}.spreadsheetml.sheet", "application/vnd.ms-excel"}
_WITH_IMAGES = ("anthropic.", "nova", "llama4", "llama-4")  # models whose results may hold images


@dataclass(frozen=True)
class BedrockConverse(SdkWire):
    """The `Wire` of OpenCode to Amazon Bedrock."""

    protocol: ClassVar[str] = "bedrock.converse"

    def in_results(self, mime: str) -> bool:
        if not self.form.mends_calls:
            return True
        return mime.startswith("image/") and any(name in self.called.lower() for name in _WITH_IMAGES)

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        if self.form.mends_calls:
            pieces = [piece for piece in pieces if piece.kind != "reasoning" or _marked(piece)]
            pieces = [piece for piece in pieces if piece.kind != "text" or piece.body["text"]]
        thinks = self.form.mends_calls and any(_thinking(piece) for piece in pieces)
        blocks = [sent for piece in pieces for sent in self._sent(piece, thinks=thinks)]
        return blocks or (None if self.form.mends_calls else [])

    def _sent(self, piece: Piece, *, thinks: bool) -> list[Block]:
        match piece.kind:
            case "text" if piece.body["text"].strip() or thinks:
                return [text_block(piece)]
            case "reasoning":
                return _thinking(piece)
            case "call":
                return [block(piece, {"type": "tool_use", **self._call(piece.body)})]
        return []

    def _call(self, call: Json) -> Json:
        if not self.form.mends_calls:
            return call
        given = call.get("input")
        mended = given if isinstance(given, dict) else {"rawInvalidInput": given} if "input" in call else {}
        return {**call, "name": _ILLEGAL.sub("", call["name"]) or "_", "input": mended}

    def results(self, pieces: Sequence[Piece]) -> list[Block]:
        return [self._result(piece) for piece in pieces]

    def _result(self, piece: Piece) -> Block:
        content = piece.body["content"]
        shown: str | list[Json] = content if isinstance(content, str) else list(map(self._shown, content))
        if isinstance(shown, list) and [item["type"] for item in shown] == ["text"]:
            shown = str(shown[0]["text"])  # both are sent as a list of one text
        return block(piece, {"type": "tool_result", "tool_use_id": piece.body["id"], "content": shown})

    def _shown(self, item: Json) -> Json:
        if item["type"] == "text":
            return item
        if not item["mime"].startswith("image/") and not self.form.mends_calls:
            raise CannotSend("attachment", f"the client cannot send an attachment of type {item['mime']}")
        return _file(item, "attachment")

    def file(self, piece: Piece) -> Block:
        return block(piece, {**_file(piece.body, "file"), **self._title(piece.body)})

    def _title(self, file: Json) -> Json:
        """Name a document: by its file, since 1.18 up to the first dot. One without a file's name is given a number."""
        name = file.get("filename")
        if file["mime"].startswith("image/") or not isinstance(name, str) or not name:
            return {}
        return {"title": name.split(".")[0] if self.form.mends_calls else name}

    def merge(self, entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
        """Join the turns; an answer of which nothing is left is not sent, so that its neighbours are one; before, it
        was sent empty.
        """
        return merge_neighbours([entry for entry in entries if entry.blocks or not self.form.mends_calls])


def _file(item: Json, fault: str) -> Json:
    mime = item["mime"]
    picture = mime.startswith("image/")
    if mime not in (_IMAGES if picture else _DOCUMENTS):
        raise CannotSend(fault, f"the client cannot send Bedrock a file of type {mime}")
    return {"type": "image" if picture else "document", "source": item["source"]}


def _marked(piece: Piece) -> bool:
    marks = piece.marks_of("bedrock")
    return any(marks.get(key) is not None for key in ("signature", "redactedContent", "redactedData"))


def _thinking(piece: Piece) -> list[Block]:
    if piece.kind != "reasoning":
        return []
    marks = piece.marks_of("bedrock")
    for key in ("signature", "redactedData", "redactedContent"):
        if marks.get(key) is not None and not isinstance(marks[key], str):
            raise CannotSend("signature", "its signature is not a text")
    if marks.get("signature") is not None:
        return [block(piece, {"type": "thinking", "thinking": piece.body["text"], "signature": marks["signature"]})]
    redacted = marks.get("redactedContent") or marks.get("redactedData")
    return [block(piece, {"type": "redacted_thinking", "data": redacted})] if redacted is not None else []
