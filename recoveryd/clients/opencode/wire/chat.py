"""What SDKs of the chat-completions form make of a conversation whose model is Claude, as Anthropic gets it.

An answer's texts are one text, in front of its calls; results are messages of their own, which Anthropic gets as the
next user message. What an SDK sends without any content stays a message of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recoveryd.clients.javascript import javascript_json
from recoveryd.clients.opencode.wire.media import CannotSend
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import SdkWire, block
from recoveryd.core import Block, Json


@dataclass(frozen=True)
class ChatWire(SdkWire):
    """What the wires of OpenCode by chat completions have in common."""

    @abstractmethod
    def thinking(self, pieces: Sequence[Piece]) -> list[Block]:
        """Make the reasoning that goes back with an answer."""

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        calls = [block(piece, {"type": "tool_use", **piece.body}) for piece in pieces if piece.kind == "call"]
        return [*self.thinking(pieces), *joined(pieces), *calls]

    def results(self, pieces: Sequence[Piece]) -> list[Block]:
        return [self._result(piece) for piece in pieces if not piece.executed]

    def _result(self, piece: Piece) -> Block:
        return block(piece, {"type": "tool_result", "tool_use_id": piece.body["id"], "content": self.output(piece)})

    def output(self, piece: Piece) -> str | list[Json]:
        """Make a result's content: a list (of files that this SDK sends as words) goes as JSON."""
        content = piece.body["content"]
        return content if isinstance(content, str) else javascript_json([self._listed(item) for item in content])

    def _listed(self, item: Json) -> Json:
        if item["type"] == "text":
            return item
        mime, data = item["mime"], item["source"]["data"]
        if self.form.spreads_files:
            kind = "image-data" if mime.startswith("image/") else "file-data"
            return {"type": kind, "data": data, "mediaType": mime}
        return {"type": "media", "mediaType": mime, "data": data}

    def file(self, piece: Piece) -> Block:
        mime = piece.body["mime"]
        if mime.startswith("image/"):
            return block(piece, {"type": "image", "source": _typed(piece.body["source"], mime)})
        raise CannotSend("file", f"the client cannot send this provider a file of type {mime}")


def joined(pieces: Sequence[Piece], kinds: Collection[str] = ("text",)) -> list[Block]:
    """Join the texts of an answer to the one that chat completions send, under the part that says most of it."""
    texts = [piece for piece in pieces if piece.kind in kinds and piece.body["text"]]
    if not texts:
        return []
    body = {"type": "text", "text": "".join(piece.body["text"] for piece in texts)}
    most = block(max(texts, key=lambda piece: len(piece.body["text"].strip())), body)
    return [most if len(texts) == 1 else replace(most, carriers=tuple(_record(piece) for piece in texts))]


def _record(piece: Piece) -> tuple[str, str]:
    return piece.part.message_id, piece.part.id


def _typed(source: Json, mime: str) -> dict[str, Any]:
    return {**source, "media_type": "image/jpeg" if mime == "image/*" else mime} if "data" in source else dict(source)
