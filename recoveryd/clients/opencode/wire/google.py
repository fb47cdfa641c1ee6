"""What `@ai-sdk/google` sends for a stored session: the contents of Gemini's API.

The blocks are written as Anthropic's: a `functionCall` is a tool_use, a thought is thinking; a `thoughtSignature` is
`signature` on whatever has one. Contents of one role do not merge. Held to the bodies that the real client sent
(tests/e2e/test_families.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recoveryd.clients.opencode.wire.form import OLD
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import Entry, SdkWire, block
from recoveryd.core import Block, Json, Turn


@dataclass(frozen=True)
class GoogleGenerate(SdkWire):
    """The `Wire` of OpenCode to Gemini."""

    protocol: ClassVar[str] = "google.generate"

    def in_results(self, mime: str) -> bool:
        del mime
        return "gemini-3" in self.model.lower() and "gemini-2" not in self.model.lower()

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        found = []
        for piece in pieces:
            if piece.kind == "call":
                found.append(_signed(piece, {"type": "tool_use", **piece.body}))
            elif piece.kind in ("text", "reasoning") and piece.body["text"]:
                found.append(_signed(piece, _said(piece)))
        return found or ([] if self.form is OLD else None)

    def results(self, pieces: Sequence[Piece]) -> list[Block]:
        return [self._result(piece) for piece in pieces if not piece.executed]

    def _result(self, piece: Piece) -> Block:
        content = piece.body["content"]
        shown: str | list[Json] = content if isinstance(content, str) else [_shown(item) for item in content]
        return block(piece, {"type": "tool_result", "tool_use_id": piece.body["id"], "content": shown})

    def file(self, piece: Piece) -> Block:
        return block(piece, _shown(piece.body))

    def merge(self, entries: Sequence[Entry]) -> tuple[Turn, ...]:
        return tuple(Turn(entry.role, entry.blocks, (entry.origin,)) for entry in entries)


def _said(piece: Piece) -> dict[str, Any]:
    words = piece.body["text"]
    return {"type": "text", "text": words} if piece.kind == "text" else {"type": "thinking", "thinking": words}


def _signed(piece: Piece, body: dict[str, Any]) -> Block:
    signature = piece.marks_of("google").get("thoughtSignature")
    return block(piece, body if signature is None else {**body, "signature": str(signature)})


def _shown(item: Json) -> Json:
    if item["type"] == "text":
        return item
    return {"type": "image" if item["mime"].startswith("image/") else "document", "source": item["source"]}
