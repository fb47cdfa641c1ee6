"""How each family streams an answer of one text."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

from tests.e2e.replies import Reply, events, text
from tests.families import gemini


def chat(words: str, model: str) -> tuple[str, bytes]:
    """Chat completions, as server-sent events: the content type and the body."""
    start = {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1, "model": model}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, {"content": words}]
    chunks: list[dict[str, Any]] = [
        {**start, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({**start, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode()


def converse(words: str, model: str) -> tuple[str, bytes]:
    """Amazon Bedrock's event stream, which is binary."""
    del model
    usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    events: list[tuple[str, dict[str, Any]]] = [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": words}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
    ]
    return "application/vnd.amazon.eventstream", b"".join(frame(kind, payload) for kind, payload in events)


def frame(kind: str, payload: dict[str, Any]) -> bytes:
    """One event of Bedrock's stream."""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(_header(name, value) for name, value in named.items())
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack(">I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()


def responses(words: str, model: str) -> tuple[str, bytes]:
    """OpenAI's Responses API, as server-sent events."""
    part = {"type": "output_text", "text": words, "annotations": []}
    item = {"id": "msg_x", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    where = {"output_index": 0, "item_id": "msg_x", "content_index": 0}
    said = {"type": "response.output_text.delta", **where, "delta": words}
    return responses_of([item], model, said)


def responses_of(items: list[dict[str, Any]], model: str = "m", *said: dict[str, Any]) -> tuple[str, bytes]:
    """The same with these items, each complete at once; `said`: events before the last one is done."""
    answer = {"id": "resp_x", "object": "response", "created_at": 1, "model": model, "status": "completed"}
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**answer, "status": "in_progress"}}]
    for place, item in enumerate(items):
        begun = {**item, "content": []} if item["type"] == "message" else item
        events.append({"type": "response.output_item.added", "output_index": place, "item": begun})
        events += said if item is items[-1] else ()
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": {**answer, "output": items, "usage": usage}})
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return "text/event-stream", "".join(lines).encode()


def messages(words: str, model: str) -> tuple[str, bytes]:
    """Anthropic's Messages API, as server-sent events."""
    return "text/event-stream", b"".join(events(Reply([text(words)]), model))


STREAMS: dict[str, Callable[[str, str], tuple[str, bytes]]] = {
    "anthropic": messages,
    "bedrock": converse,
    "vertex-claude": messages,
    "openrouter": chat,
    "openrouter-kimi": chat,
    "openrouter-kimi-default": chat,
    "copilot": chat,
    "openai": responses,
    "kimi": chat,
    "kimi-custom": chat,
    "glm": chat,
    "deepseek": chat,
    "deepseek-reasoner": chat,
    "qwen": chat,
    "litellm": chat,
    "gpt": chat,
    "mistral": chat,
    "xai": chat,
    "ministral": chat,
    "gemma": chat,
    "azure": responses,
    "gemini": gemini.stream,
    "gemini-2": gemini.stream,
    "vertex": gemini.stream,
}
