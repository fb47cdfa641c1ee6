"""What `@ai-sdk/openai-compatible` sends for a stored session, but for its reasoning: each message a turn of its own.

Under which name reasoning goes back hangs on what the client knows of the model; nothing is judged by it here, but
every version sends it in any case, so a length is (seen on 1.1.53, 1.2.1, 1.18.34 and Kilo 7.7.9). Held to the bodies
that the real client sent (tests/e2e/test_families.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from recoveryd.clients.opencode.wire.chat import ChatWire
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import SentMessage, block, merge_neighbours, unmerged
from recoveryd.core import Block, Turn, Wire

# Models that take a call without the reasoning that led to it; Kimi and DeepSeek refuse one.
_TAKE_BARE_CALLS = re.compile(r"qwen|qwq|glm")


@dataclass(frozen=True)
class OpenaiCompatible(ChatWire):
    """The `Wire` of OpenCode to a provider that speaks OpenAI's chat completions.

    `weighs`: with the reasoning that goes back; what of it may not be taken out has no part.
    """

    protocol: ClassVar[str] = "openai.chat"
    weighs: bool = False

    def thinking(self, pieces: Sequence[Piece]) -> list[Block]:
        said = [piece for piece in pieces if piece.kind == "reasoning" and piece.body["text"]] if self.weighs else []
        # Either name tells what answers: the one that the provider gets may be no more than that of a deployment.
        bare = _TAKE_BARE_CALLS.search(f"{self.model} {self.called}".lower())
        stays = any(piece.kind == "call" for piece in pieces) and not bare
        blocks = [block(piece, {"type": "thinking", "thinking": piece.body["text"]}) for piece in said]
        return [replace(one, part_id="") for one in blocks] if stays else blocks

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


def weighed(wire: Wire) -> Wire:
    """Return the wire that shows all that is sent, by which a length is measured."""
    if isinstance(wire, OpenaiCompatible) and wire.protocol == "openai.chat":
        return replace(wire, weighs=True)
    return wire
