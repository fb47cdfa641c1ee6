"""What the fake provider answers, and how an answer becomes a stream of server-sent events."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.signing import Block, sign_once

_numbers = itertools.count(1)


def new_id(prefix: str) -> str:
    """Make an id that has no digits: 1.18 takes a 500 or 429 anywhere in an error's text for a status of HTTP, and
    then sends what was refused again and again for more than a minute before it records the error."""
    return prefix + f"{next(_numbers):06d}".translate(_LETTERS)


_LETTERS = str.maketrans("0123456789", "abcdefghij")


def text(words: str) -> Block:
    """A text block of a reply."""
    return {"type": "text", "text": words}


def thinking(words: str, signature: str | None = None) -> Block:
    """A thinking block of a reply, signed by the provider unless a signature is given."""
    return {"type": "thinking", "thinking": words, "signature": sign_once(words) if signature is None else signature}


def tool_use(name: str, arguments: dict[str, Any], call_id: str | None = None) -> Block:
    """A tool call of a reply; the client runs it and comes back with the result."""
    return {"type": "tool_use", "id": call_id or new_id("toolu_"), "name": name, "input": arguments}


@dataclass
class Reply:
    """One scripted answer. With `hold` set, the stream stands still after the blocks until the event is set."""

    blocks: list[Block]
    hold: threading.Event | None = None
    usage: dict[str, int] = field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})


def events(reply: Reply, model: str) -> Iterator[bytes]:
    """The reply as the events of a stream, one at a time, in the order of the real provider."""
    start: dict[str, Any] = {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": reply.usage,
    }
    yield _event("message_start", message=start)
    for index, block in enumerate(reply.blocks):
        yield _event("content_block_start", index=index, content_block=_opening(block))
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    if reply.hold is not None:
        reply.hold.wait(60)
    reason = "tool_use" if any(block["type"] == "tool_use" for block in reply.blocks) else "end_turn"
    yield _event(
        "message_delta",
        delta={"stop_reason": reason, "stop_sequence": None},
        usage={"output_tokens": reply.usage["output_tokens"]},
    )
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _opening(block: Block) -> Block:
    empty: dict[str, Block] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return {**block, **empty.get(block["type"], {})}


def _deltas(block: Block) -> list[dict[str, Any]]:
    if block["type"] == "text":
        return [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "tool_use":
        return [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    if block["type"] == "thinking":
        words = [{"type": "thinking_delta", "thinking": block["thinking"]}] if block["thinking"] else []
        return [*words, {"type": "signature_delta", "signature": block["signature"]}]
    return []
