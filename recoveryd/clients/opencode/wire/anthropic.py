"""What `@ai-sdk/anthropic` sends for a stored session: the messages of Anthropic's own API.

Held to the bodies that the real client sent (tests/e2e/test_wire.py).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recoveryd.clients.opencode.wire.media import CannotSend
from recoveryd.clients.opencode.wire.prompt import JS_SPACE, Piece
from recoveryd.clients.opencode.wire.sdk import PROMPT, SdkWire, block, text_block
from recoveryd.core import Block, Json

__all__ = ["PROMPT", "AnthropicByVertex", "AnthropicMessages"]


@dataclass(frozen=True)
class AnthropicMessages(SdkWire):
    """The `Wire` of OpenCode to an Anthropic provider.

    `leaves_out_empty`: the client leaves out empty texts and thinking, and messages of nothing else.
    """

    protocol: ClassVar[str] = "anthropic.messages"
    leaves_out_empty: ClassVar[bool] = True

    def in_results(self, mime: str) -> bool:
        del mime
        return True

    def answer(self, pieces: Sequence[Piece]) -> list[Block] | None:
        kept = [piece for piece in pieces if not self._filtered(piece)]
        blocks = [sent for piece in kept for sent in self._sent(piece)]
        if not kept and self.leaves_out_empty:
            return None
        return _text_first(blocks) if self.form.moves_text else blocks

    def prompt(self, pieces: Sequence[Piece]) -> list[Block] | None:
        blocks = super().prompt([piece for piece in pieces if piece.body.get("text") != ""])
        return blocks or (None if self.leaves_out_empty else [])

    def _filtered(self, piece: Piece) -> bool:
        """Leave out what the client drops before the SDK sees it; a message of nothing else is dropped with it."""
        if not self.leaves_out_empty:
            return False
        if piece.kind == "text":
            return not piece.body["text"]
        if piece.kind != "reasoning":
            return False
        if not self.form.sends_redacted:
            return not piece.body["text"]
        marks = piece.marks_of("anthropic")
        unsigned = marks.get("signature") is None and marks.get("redactedData") is None
        return not piece.body["text"].strip(JS_SPACE) and unsigned

    def _sent(self, piece: Piece) -> list[Block]:
        match piece.kind:
            case "text":
                return [text_block(piece)]
            case "call" if not piece.executed:
                return [block(piece, {"type": "tool_use", **piece.body})]
            case "reasoning":
                return _thinking(piece)
        return []

    def results(self, pieces: Sequence[Piece]) -> list[Block]:
        return [self._result(piece) for piece in pieces]

    def _result(self, piece: Piece) -> Block:
        content = piece.body["content"]
        if isinstance(content, list):
            content = [shown for item in content for shown in self._shown(item)]
        body: dict[str, Any] = {"type": "tool_result", "tool_use_id": piece.body["id"], "content": content}
        return block(piece, {**body, **({"is_error": True} if piece.body["is_error"] else {})})

    def _shown(self, item: Json) -> list[Json]:
        if item["type"] == "text":
            return [item]
        mime = item["mime"]
        if mime.startswith("image/") or mime == "application/pdf":
            return [{"type": "image" if mime.startswith("image/") else "document", "source": item["source"]}]
        if not self.form.drops_odd_files:
            raise CannotSend("attachment", f"the client cannot send an attachment of type {mime}")
        return []

    def file(self, piece: Piece) -> Block:
        media, source, name = piece.body["mime"], piece.body["source"], piece.body["filename"]
        if media.startswith("image/"):
            return block(piece, {"type": "image", "source": source})
        if media not in ("application/pdf", "text/plain"):
            raise CannotSend("file", f"the client cannot send a file of type {media}")
        if media == "text/plain" and source["type"] == "base64":
            source = {"type": "text", "media_type": media, "data": _plain(source["data"])}
        return block(piece, {"type": "document", "source": source, **({"title": name} if name is not None else {})})


@dataclass(frozen=True)
class AnthropicByVertex(AnthropicMessages):
    """The `Wire` of OpenCode to Claude by the SDK of Vertex, for which it leaves nothing out (1.1.53, 1.2.1, 1.18.34,
    Kilo 7.7.9).
    """

    leaves_out_empty: ClassVar[bool] = False


def _thinking(piece: Piece) -> list[Block]:
    """Make a thinking block, a redacted one, or nothing: reasoning that no provider signed is not sent."""
    marks = piece.marks_of("anthropic")
    signature, redacted = marks.get("signature"), marks.get("redactedData")
    for value in (signature, redacted):
        if value is not None and not isinstance(value, str):
            raise CannotSend("signature", "its signature is not a text")
    if signature is not None:
        return [block(piece, {"type": "thinking", "thinking": piece.body["text"], "signature": signature})]
    return [block(piece, {"type": "redacted_thinking", "data": redacted})] if redacted is not None else []


def _text_first(content: Sequence[Block]) -> list[Block]:
    """Move text in front of the calls that stand before it, up to the last thinking."""
    out: list[Block] = []
    calls: list[Block] = []
    for one in content:
        if one.type == "tool_use":
            calls.append(one)
            continue
        if one.is_thinking:
            out += calls
            calls = []
        out.append(one)
    return out + calls


def _plain(encoded: str) -> str:
    """Decode base64 as the client does, which needs no padding and skips other characters."""
    letters = re.sub(r"[^A-Za-z0-9+/]", "", encoded)
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    return base64.b64decode(letters + "=" * (-len(letters) % 4)).decode("utf-8", "replace")
