"""What `@openrouter/ai-sdk-provider` sends for a stored session, as Anthropic gets it from OpenRouter.

Reasoning goes back as `reasoning_details`: a `reasoning.text` with its signature is thinking, a `reasoning.encrypted`
is redacted. Held to the bodies that the real client sent (tests/e2e/test_doors.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recoveryd.clients.javascript import javascript_json
from recoveryd.clients.opencode.wire.chat import ChatWire
from recoveryd.clients.opencode.wire.prompt import Piece
from recoveryd.clients.opencode.wire.sdk import SentMessage, block, unmerged
from recoveryd.core import Block, Json, Turn

_CLAUDE = re.compile("claude|anthropic")
_SIGNED_ONLY = ("anthropic-claude-v1", "google-gemini-v1")


@dataclass(frozen=True)
class OpenRouterChat(ChatWire):
    """The `Wire` of OpenCode to OpenRouter."""

    protocol: ClassVar[str] = "openrouter.chat"

    def thinking(self, pieces: Sequence[Piece]) -> list[Block]:
        kinds = ("call", "reasoning")
        carriers = [piece for kind in kinds for piece in pieces if piece.kind == kind and _details(piece)]
        # Those of the first call, else of the first reasoning; before, those of all in their order.
        sent = carriers[:1] if self.form.spreads_files else [piece for piece in pieces if piece in carriers]
        own = next((piece for piece in carriers if piece.kind == "reasoning"), None)
        also = tuple((piece.part.message_id, piece.part.id) for piece in carriers)
        return [
            Block(body, where.part.message_id, where.part.id, carriers=also)
            for piece in sent
            for detail in _details(piece)
            if (body := self._thought(detail)) is not None
            for where in (own or piece,)
        ]

    def _thought(self, detail: Json) -> Json | None:
        match detail.get("type"):
            case "reasoning.text":
                signature = detail.get("signature")
                if not signature and self.form.spreads_files and detail.get("format", _SIGNED_ONLY[0]) in _SIGNED_ONLY:
                    return None
                return {"type": "thinking", "thinking": detail.get("text") or "", "signature": signature or ""}
            case "reasoning.encrypted":
                return {"type": "redacted_thinking", "data": detail.get("data")}
        return None

    def output(self, piece: Piece) -> str | list[Json]:
        content = piece.body["content"]
        if self.form.spreads_files:
            return content if isinstance(content, str) else list(content)
        return javascript_json(content) if piece.body["is_error"] else super().output(piece)

    def merge(self, entries: Sequence[SentMessage]) -> tuple[Turn, ...]:
        """Join the turns as Claude gets them; a detail that is equal to an earlier one of the conversation is sent
        once. Models of others get each message by itself.
        """
        sent = list(_once(entries)) if self.form.spreads_files else entries
        return super().merge(sent) if _CLAUDE.search(self.called.lower()) else unmerged(sent)

    def file(self, piece: Piece) -> Block:
        mime = piece.body["mime"]
        if mime.startswith("image/"):
            return super().file(piece)
        return block(piece, {"type": "document", "source": piece.body["source"]})


def _details(piece: Piece) -> list[Json]:
    found = piece.marks_of("openrouter").get("reasoning_details")
    return [detail for detail in found if isinstance(detail, Mapping)] if isinstance(found, list) else []


def _once(entries: Sequence[SentMessage]) -> Iterator[SentMessage]:
    seen: set[Any] = set()
    for entry in entries:
        kept = []
        for one in entry.blocks:
            if one.is_thinking:
                key = one.body.get("thinking") or one.body.get("signature") or one.body.get("data")
                if not key or key in seen:
                    continue
                seen.add(key)
            kept.append(one)
        yield SentMessage(entry.role, tuple(kept), entry.origin)
