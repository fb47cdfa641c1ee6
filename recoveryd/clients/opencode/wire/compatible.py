"""What `@ai-sdk/openai-compatible` sends for a stored session, but for its reasoning: each message a turn of its own.

Whether reasoning goes back, and under which name, hangs on what the client knows of the model; nothing is judged by it
here. Held to the bodies that the real client sent (tests/e2e/test_families.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recoveryd.clients.opencode.wire.chat import ChatWire
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import SentMessage, block, merge_neighbours, unmerged
from recoveryd.core import Block, Turn


@dataclass(frozen=True)
class OpenaiCompatible(ChatWire):
    """The `Wire` of OpenCode to a provider that speaks OpenAI's chat completions."""

    protocol: ClassVar[str] = "openai.chat"

    def thinking(self, pieces: Sequence[Piece]) -> list[Block]:
        del pieces
        return []

    def file(self, piece: Piece) -> Block:
        mime = piece.body["mime"]
        if self.form.spreads_files and (mime == "application/pdf" or mime.startswith("text/")):
            return block(piece, {"type": "document", "source": piece.body["source"]})
        return super().file(piece)

    def merge(self, entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
        return unmerged(entries)


@dataclass(frozen=True)
class LitellmAnthropic(OpenaiCompatible):
    """The `Wire` of OpenCode to Claude behind LiteLLM, which joins neighbours of one role."""

    protocol: ClassVar[str] = "litellm.anthropic"

    def merge(self, entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
        return merge_neighbours(entries)


@dataclass(frozen=True)
class XaiChat(OpenaiCompatible):
    """The `Wire` of OpenCode to xAI (`@ai-sdk/xai`): of files it sends pictures alone, and no reasoning."""

    protocol: ClassVar[str] = "xai.chat"

    def in_results(self, mime: str) -> bool:
        return self.form.spreads_files and mime.startswith("image/")

    def file(self, piece: Piece) -> Block:
        return ChatWire.file(self, piece)
