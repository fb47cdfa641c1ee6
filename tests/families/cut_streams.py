"""How each family streams an answer, a step at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.e2e.codex.sealed import seal
from tests.e2e.replies import new_id
from tests.e2e.signing import sign_once
from tests.families.cut_chat import Chat, Copilot, Mistral, OpenRouter, WholeCalls
from tests.families.cut_steps import CALL, HALF, REST, THOUGHT, WORDS, Event, Speech
from tests.families.streams import frame


def _event(event: Event) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


class Messages(Speech):
    """Anthropic's Messages API."""

    def begun(self) -> bytes:
        usage = {"input_tokens": 10, "output_tokens": 1}
        start = {"id": new_id("msg_"), "type": "message", "role": "assistant", "model": self.model, "content": []}
        started = {**start, "stop_reason": None, "stop_sequence": None, "usage": usage}
        return _event({"type": "message_start", "message": started})

    def thinking_begun(self) -> bytes:
        return self._open({"type": "thinking", "thinking": "", "signature": ""})

    def thinking(self) -> bytes:
        return self._delta({"type": "thinking_delta", "thinking": THOUGHT})

    def thinking_ended(self) -> bytes:
        return self._stop()

    def thinking_signed(self) -> bytes:
        return self._delta({"type": "signature_delta", "signature": sign_once(THOUGHT)}) + self._stop()

    def text_begun(self) -> bytes:
        return self._open({"type": "text", "text": ""})

    def said(self, words: str) -> bytes:
        return self._delta({"type": "text_delta", "text": words})

    def text_ended(self) -> bytes:
        return self._stop()

    def call_begun(self) -> bytes:
        return self._open({"type": "tool_use", "id": new_id("toolu_"), "name": CALL, "input": {}})

    def call_half(self) -> bytes:
        return self._delta({"type": "input_json_delta", "partial_json": HALF})

    def call_done(self) -> bytes:
        return self._delta({"type": "input_json_delta", "partial_json": REST}) + self._stop()

    def finished(self, reason: str) -> bytes:
        why = {"stop": "end_turn", "calls": "tool_use"}[reason]
        delta = {"stop_reason": why, "stop_sequence": None}
        return _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})

    def ended(self) -> bytes:
        return _event({"type": "message_stop"})

    def failed(self, words: str) -> bytes:
        return _event({"type": "error", "error": {"type": "api_error", "message": words}})

    def _open(self, block: Event) -> bytes:
        self._at += 1
        return _event({"type": "content_block_start", "index": self._at, "content_block": block})

    def _delta(self, delta: Event) -> bytes:
        return _event({"type": "content_block_delta", "index": self._at, "delta": delta})

    def _stop(self) -> bytes:
        return _event({"type": "content_block_stop", "index": self._at})


class Converse(Speech):
    """Amazon Bedrock's event stream."""

    content_type = "application/vnd.amazon.eventstream"

    def begun(self) -> bytes:
        return frame("messageStart", {"role": "assistant"})

    def thinking_begun(self) -> bytes:
        self._at += 1
        return self._delta({"reasoningContent": {"text": ""}})

    def thinking(self) -> bytes:
        return self._delta({"reasoningContent": {"text": THOUGHT}})

    def thinking_ended(self) -> bytes:
        return self._stop()

    def thinking_signed(self) -> bytes:
        return self._delta({"reasoningContent": {"signature": sign_once(THOUGHT)}}) + self._stop()

    def text_begun(self) -> bytes:
        self._at += 1
        return self._delta({"text": ""})

    def said(self, words: str) -> bytes:
        return self._delta({"text": words})

    def text_ended(self) -> bytes:
        return self._stop()

    def call_begun(self) -> bytes:
        self._at += 1
        start = {"toolUse": {"toolUseId": new_id("tooluse_"), "name": CALL}}
        return frame("contentBlockStart", {"contentBlockIndex": self._at, "start": start})

    def call_half(self) -> bytes:
        return self._delta({"toolUse": {"input": HALF}})

    def call_done(self) -> bytes:
        return self._delta({"toolUse": {"input": REST}}) + self._stop()

    def finished(self, reason: str) -> bytes:
        return frame("messageStop", {"stopReason": {"stop": "end_turn", "calls": "tool_use"}[reason]})

    def ended(self) -> bytes:
        usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
        return frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})

    def failed(self, words: str) -> bytes:
        return frame("internalServerException", {"message": words})

    def _delta(self, delta: Event) -> bytes:
        return frame("contentBlockDelta", {"contentBlockIndex": self._at, "delta": delta})

    def _stop(self) -> bytes:
        return frame("contentBlockStop", {"contentBlockIndex": self._at})


class Responses(Speech):
    """OpenAI's Responses API."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._item: Event = {}
        self._done: list[Event] = []

    def begun(self) -> bytes:
        return _event({"type": "response.created", "response": {**self._answer(), "status": "in_progress"}})

    def thinking_begun(self) -> bytes:
        return self._open({"type": "reasoning", "id": new_id("rs_"), "summary": [], "encrypted_content": seal()})

    def thinking(self) -> bytes:
        where = {"output_index": self._at, "item_id": self._item["id"], "summary_index": 0}
        part = {"type": "summary_text", "text": ""}
        begun = _event({"type": "response.reasoning_summary_part.added", **where, "part": part})
        return begun + _event({"type": "response.reasoning_summary_text.delta", **where, "delta": THOUGHT})

    def thinking_signed(self) -> bytes:
        where = {"output_index": self._at, "item_id": self._item["id"], "summary_index": 0}
        part = {"type": "summary_text", "text": THOUGHT}
        ended = _event({"type": "response.reasoning_summary_part.done", **where, "part": part})
        return ended + self._close(summary=[part], encrypted_content=seal())

    def text_begun(self) -> bytes:
        return self._open(
            {"type": "message", "id": new_id("msg_"), "role": "assistant", "status": "in_progress", "content": []}
        )

    def said(self, words: str) -> bytes:
        where = {"output_index": self._at, "item_id": self._item["id"], "content_index": 0}
        return _event({"type": "response.output_text.delta", **where, "delta": words})

    def text_ended(self) -> bytes:
        part = {"type": "output_text", "text": WORDS, "annotations": []}
        return self._close(status="completed", content=[part])

    def call_begun(self) -> bytes:
        named = {"type": "function_call", "id": new_id("fc_"), "call_id": new_id("call_"), "name": CALL}
        return self._open({**named, "status": "in_progress", "arguments": ""})

    def call_half(self) -> bytes:
        return self._arguments(HALF)

    def call_done(self) -> bytes:
        return self._arguments(REST) + self._close(status="completed", arguments=HALF + REST)

    def finished(self, reason: str) -> bytes:
        usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5}
        usage |= {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}
        answer = {**self._answer(), "status": "completed", "output": self._done, "usage": usage}
        return _event({"type": "response.completed", "response": answer})

    def failed(self, words: str) -> bytes:
        return _event({"type": "error", "code": "server_error", "message": words, "param": None, "sequence_number": 9})

    def _answer(self) -> Event:
        return {"id": "resp_x", "object": "response", "created_at": 1, "model": self.model}

    def _open(self, item: Event) -> bytes:
        self._at += 1
        self._item = item
        return _event({"type": "response.output_item.added", "output_index": self._at, "item": item})

    def _close(self, **fields: Any) -> bytes:
        self._item = {**self._item, **fields}
        self._done.append(self._item)
        return _event({"type": "response.output_item.done", "output_index": self._at, "item": self._item})

    def _arguments(self, words: str) -> bytes:
        where = {"output_index": self._at, "item_id": self._item["id"]}
        return _event({"type": "response.function_call_arguments.delta", **where, "delta": words})


class Gemini(Speech):
    """Google's API: each event has parts of the answer, a call in one piece."""

    def begun(self) -> bytes:
        return self._candidate([])

    def thinking_begun(self) -> bytes:
        return self._candidate([{"text": "", "thought": True}])

    def thinking(self) -> bytes:
        return self._candidate([{"text": THOUGHT, "thought": True}])

    def thinking_signed(self) -> bytes:
        return self._candidate([{"text": "", "thought": True, "thoughtSignature": self._signature()}])

    def text_begun(self) -> bytes:
        return self._candidate([{"text": ""}])

    def said(self, words: str) -> bytes:
        return self._candidate([{"text": words}])

    def call_done(self) -> bytes:
        call = {"name": CALL, "args": json.loads(HALF + REST)}
        return self._candidate([{"functionCall": call, "thoughtSignature": self._signature()}])

    def finished(self, reason: str) -> bytes:
        return self._candidate([{"text": ""}], finishReason="STOP")

    def failed(self, words: str) -> bytes:
        error = {"code": 500, "message": words, "status": "INTERNAL"}
        return f"data: {json.dumps({'error': error})}\n\n".encode()

    @staticmethod
    def _signature() -> str:
        return sign_once(THOUGHT)

    def _candidate(self, parts: list[Event], **more: str) -> bytes:
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
        event = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model}
        return f"data: {json.dumps(event)}\n\n".encode()


SPEECHES: dict[str, Callable[[str], Speech]] = {
    "anthropic": Messages,
    "vertex-claude": Messages,
    "bedrock": Converse,
    "openrouter": OpenRouter,
    "copilot": Copilot,
    "mistral": Mistral,
    "xai": WholeCalls,
    "openai": Responses,
    "azure": Responses,
    "gemini": Gemini,
    "gemini-2": Gemini,
    "vertex": Gemini,
}


def speech(family: str, model: str) -> Speech:
    """An answer of a family, still without a word."""
    return SPEECHES.get(family, Chat)(model)
