"""What `@ai-sdk/google` and `@ai-sdk/google-vertex` send for a stored session: the contents of Gemini's API.

The blocks are written as Anthropic's: a `functionCall` is a tool_use, a thought is thinking; a `thoughtSignature` is
`signature` on whatever has one. Contents of one role do not merge. Held to the bodies that the real client sent
(tests/e2e/test_families.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from recoveryd.clients.javascript import javascript_json
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import SdkWire, SentMessage, block
from recoveryd.core import Block, Json, Turn

_RETURNED = "Tool executed successfully and returned this {} as a response"
UNSIGNED = "skip_thought_signature_validator"  # as the API's documentation has it


@dataclass(frozen=True)
class GoogleGenerate(SdkWire):
    """The `Wire` of OpenCode to Gemini."""

    protocol: ClassVar[str] = "google.generate"
    marked: ClassVar[Sequence[str]] = ("google", "vertex")  # where what the SDK stored is looked for

    def in_results(self, mime: str) -> bool:
        del mime
        return self.is_3

    @property
    def is_3(self) -> bool:
        """Whether a response may hold files, by the model's name."""
        return "gemini-3" in self.called.lower() and "gemini-2" not in self.called.lower()

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        found = []
        for piece in pieces:
            if piece.kind == "call":
                found.append(self.signed(piece, {"type": "tool_use", **piece.body}))
            elif piece.kind in ("text", "reasoning") and piece.body["text"]:
                found.append(self.signed(piece, _said(piece)))
        return found or self.nothing

    @property
    def nothing(self) -> list[Block] | None:
        """What is sent for an answer of which nothing is left."""
        return None if self.form.spreads_files else []

    def signed(self, piece: Piece, body: dict[str, Any]) -> Block:
        """Return a block with the signature that the SDK finds beside its piece."""
        names = self.marked if self.form.spreads_files else ("google",)
        marks = next((marks for sdk in names if (marks := piece.marks_of(sdk))), {})
        signature = marks.get("thoughtSignature")
        return block(piece, body if signature is None else {**body, "signature": str(signature)})

    def results(self, pieces: Sequence[Piece]) -> list[Block]:
        return [sent for piece in pieces if not piece.executed for sent in self._given_back(piece)]

    def _given_back(self, piece: Piece) -> list[Block]:
        """Make one response; where it can't hold files, those stand behind it as parts of their own."""
        content = piece.body["content"]
        if isinstance(content, str):
            return [_response(piece, content)]
        if self.form.spreads_files and self.is_3:
            return [_response(piece, [_shown(item) for item in content])]
        return [block(piece, one) for item in content for one in self.beside(piece, item)]

    def beside(self, piece: Piece, item: Json) -> list[Json]:
        """Make what a text or a file of a result becomes where no response holds files."""
        if item["type"] == "text":
            return [_response(piece, item["text"]).body]
        if self.form.spreads_files and not item["mime"].startswith("image/"):
            named = {"type": "file-data", "data": item["source"]["data"], "mediaType": item["mime"]}
            return [{"type": "text", "text": javascript_json(named)}]
        return [_shown(item), {"type": "text", "text": _RETURNED.format("image")}]

    def file(self, piece: Piece) -> Block:
        return block(piece, _shown(piece.body))

    def merge(self, entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
        return tuple(Turn(entry.role, entry.blocks, (entry.origin,)) for entry in entries)


@dataclass(frozen=True)
class VertexGenerate(GoogleGenerate):
    """The `Wire` of OpenCode to Gemini on Vertex: another version of the same SDK."""

    protocol: ClassVar[str] = "google.vertex"
    marked: ClassVar[Sequence[str]] = ("vertex", "google")

    def in_results(self, mime: str) -> bool:
        del mime
        return False

    @property
    def nothing(self) -> list[Block] | None:
        return []

    def beside(self, piece: Piece, item: Json) -> list[Json]:
        if item["type"] == "text" or not self.form.spreads_files or item["mime"].startswith("image/"):
            return super().beside(piece, item)
        return [_shown(item), {"type": "text", "text": _RETURNED.format("file")}]

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        """To Gemini 3, calls without a signature go with a mark in its place, but behind one that has one."""
        sent = super().answer(pieces)
        if sent is None or not self.form.spreads_files or not self.is_3:
            return sent
        found, signed = [], False
        for one in sent:
            if one.type == "tool_use" and "signature" not in one.body and not signed:
                one = replace(one, body={**one.body, "signature": UNSIGNED})
            elif one.type == "tool_use":
                signed = True
            found.append(one)
        return found


def _said(piece: Piece) -> dict[str, Any]:
    words = piece.body["text"]
    return {"type": "text", "text": words} if piece.kind == "text" else {"type": "thinking", "thinking": words}


def _response(piece: Piece, content: str | list[Json]) -> Block:
    return block(piece, {"type": "tool_result", "tool_use_id": piece.body["id"], "content": content})


def _shown(item: Json) -> Json:
    if item["type"] == "text":
        return item
    return {"type": "image" if item["mime"].startswith("image/") else "document", "source": item["source"]}
