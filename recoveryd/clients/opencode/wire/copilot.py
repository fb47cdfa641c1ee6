"""What `@ai-sdk/github-copilot` sends for a stored session with a chat model, as Anthropic gets it from Copilot.

Reasoning goes back as one text and one opaque value a message, which the client keeps beside reasoning, calls and texts
alike. Held to the bodies that the real client sent (tests/e2e/test_doors.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recoveryd.clients.opencode.wire.chat import ChatWire
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.core import Block


@dataclass(frozen=True)
class CopilotChat(ChatWire):
    """The `Wire` of OpenCode to a chat model of GitHub Copilot."""

    protocol: ClassVar[str] = "copilot.chat"

    def thinking(self, pieces: Sequence[Piece]) -> list[Block]:
        carriers = [piece for piece in pieces if _opaque(piece)]
        if not carriers:
            return []
        words = [piece for piece in pieces if piece.kind == "reasoning" and piece.body["text"]]
        own = next((piece for piece in carriers if piece.kind == "reasoning"), carriers[0])
        text = words[-1].body["text"] if words else ""
        body = {"type": "thinking", "thinking": text, "signature": _opaque(carriers[0])}
        also = tuple((piece.part.message_id, piece.part.id) for piece in carriers)
        return [Block(body, own.part.message_id, own.part.id, carriers=also)]


def _opaque(piece: Piece) -> object:
    return piece.marks_of("copilot").get("reasoningOpaque")
