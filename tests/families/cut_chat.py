"""Answers by chat completions, a step at a time: as most servers stream them, and what some do otherwise."""

from __future__ import annotations

import json

from tests.e2e.replies import new_id
from tests.e2e.signing import sign_once
from tests.families.cut_steps import CALL, HALF, REST, THOUGHT, Event, Speech


class Chat(Speech):
    """Chat completions, with the reasoning as most servers have it."""

    calls = -1

    def begun(self) -> bytes:
        return self._delta({"role": "assistant", "content": ""})

    def thinking_begun(self) -> bytes:
        return self._delta({"reasoning_content": ""})

    def thinking(self) -> bytes:
        return self._delta({"reasoning_content": THOUGHT})

    def text_begun(self) -> bytes:
        return self._delta({"content": ""})

    def said(self, words: str) -> bytes:
        return self._delta({"content": words})

    def call_begun(self) -> bytes:
        self.calls += 1
        named = {"id": self.call_id(), "type": "function", "function": {"name": CALL, "arguments": ""}}
        return self._delta({"tool_calls": [{"index": self.calls, **named}]})

    def call_half(self) -> bytes:
        return self._delta({"tool_calls": [{"index": self.calls, "function": {"arguments": HALF}}]})

    def call_done(self) -> bytes:
        return self._delta({"tool_calls": [{"index": self.calls, "function": {"arguments": REST}}]})

    def call_id(self) -> str:
        """An id for a call."""
        return new_id("call_")

    def finished(self, reason: str) -> bytes:
        why = {"stop": "stop", "calls": "tool_calls"}[reason]
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return self._chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": why}], "usage": usage})

    def ended(self) -> bytes:
        return b"data: [DONE]\n\n"

    def failed(self, words: str) -> bytes:
        error = {"message": words, "type": "server_error", "param": None, "code": None}
        return f"data: {json.dumps({'error': error})}\n\n".encode()

    def _delta(self, delta: Event) -> bytes:
        return self._chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def _chunk(self, fields: Event) -> bytes:
        start = {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1, "model": self.model}
        return f"data: {json.dumps({**start, **fields})}\n\n".encode()


class WholeCalls(Chat):
    """Chat completions of those that stream a call in one piece."""

    def call_begun(self) -> bytes:
        return b""

    def call_half(self) -> bytes:
        return b""

    def call_done(self) -> bytes:
        self.calls += 1
        function = {"name": CALL, "arguments": HALF + REST}
        named = {"index": self.calls, "id": self.call_id(), "type": "function", "function": function}
        return self._delta({"tool_calls": [named]})


class Mistral(WholeCalls):
    """Mistral's: thinking is a piece of the content, and ids have nine letters."""

    def thinking_begun(self) -> bytes:
        return self._thought("")

    def thinking(self) -> bytes:
        return self._thought(THOUGHT)

    def call_id(self) -> str:
        return new_id("abc")[:9]

    def _thought(self, words: str) -> bytes:
        return self._delta({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": words}]}]})


class OpenRouter(Chat):
    """Claude on OpenRouter: thinking as details, which are signed at their end."""

    def thinking_begun(self) -> bytes:
        return self._detail("")

    def thinking(self) -> bytes:
        return self._detail(THOUGHT)

    def thinking_signed(self) -> bytes:
        return self._detail("", signature=sign_once(THOUGHT))

    def _detail(self, words: str, **more: str) -> bytes:
        detail = {"type": "reasoning.text", "text": words, "format": "anthropic-claude-v1", "index": 0, **more}
        return self._delta({"content": "", "reasoning": words, "reasoning_details": [detail]})


class Copilot(Chat):
    """Claude on GitHub Copilot: thinking has one opaque value."""

    def thinking_begun(self) -> bytes:
        return self._delta({"reasoning_text": ""})

    def thinking(self) -> bytes:
        return self._delta({"reasoning_text": THOUGHT})

    def thinking_signed(self) -> bytes:
        return self._delta({"reasoning_opaque": sign_once(THOUGHT)})
