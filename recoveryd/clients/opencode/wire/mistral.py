"""What `@ai-sdk/mistral` sends for a stored session: reasoning goes as text, each message a turn of its own.

Reasoning that the SDK had stored as Mistral's goes back as a piece of its own; nothing is judged by that here. Held to
the bodies that the real client sent (tests/e2e/test_families.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recoveryd.clients.opencode.wire.chat import ChatWire, joined
from recoveryd.clients.opencode.wire.compatible import OpenaiCompatible
from recoveryd.clients.opencode.wire.media import CannotSend
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import block
from recoveryd.core import Block


@dataclass(frozen=True)
class MistralChat(OpenaiCompatible):
    """The `Wire` of OpenCode to Mistral's own API."""

    protocol: ClassVar[str] = "mistral.chat"

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        if any(piece.kind == "result" for piece in pieces):
            raise CannotSend("executed", "the client cannot send Mistral a call that the provider executed")
        calls = [block(piece, {"type": "tool_use", **piece.body}) for piece in pieces if piece.kind == "call"]
        return [*joined(pieces, ("text", "reasoning")), *calls]

    def file(self, piece: Piece) -> Block:
        if piece.body["mime"] == "application/pdf":
            return block(piece, {"type": "document", "source": piece.body["source"]})
        return ChatWire.file(self, piece)
