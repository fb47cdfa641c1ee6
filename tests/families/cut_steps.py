"""An answer that is streamed a step at a time, so that it can break off behind any of them."""

from __future__ import annotations

from typing import Any

THOUGHT, WORDS = "I look into it first", "Here is what I found"
HALF = '{"command": "echo hi", "descr'
REST = 'iption": "say hi"}'
CALL = "bash"
Event = dict[str, Any]


class Speech:
    """One answer on its way; each step gives the bytes that the provider sends for it, none where it has no such step.

    Of a call in one piece, only `call_done` sends something.
    """

    content_type = "text/event-stream"

    def __init__(self, model: str) -> None:
        self.model = model
        self._at = -1  # the block that is open
        self._call = {"id": "", "name": CALL}

    def begun(self) -> bytes:
        """Before the first word."""
        return b""

    def thinking_begun(self) -> bytes:
        """Thinking that is still empty."""
        return b""

    def thinking(self) -> bytes:
        """All its words."""
        return b""

    def thinking_ended(self) -> bytes:
        """Its end without a signature."""
        return b""

    def thinking_signed(self) -> bytes:
        """Its signature and its end."""
        return b""

    def text_begun(self) -> bytes:
        """A text that is still empty."""
        return b""

    def blank(self) -> bytes:
        """White space, with which an answer may begin."""
        return self.said("\n\n")

    def text(self) -> bytes:
        """Its words."""
        return self.said(WORDS)

    def said(self, words: str) -> bytes:
        """Words of a text."""
        raise NotImplementedError

    def text_ended(self) -> bytes:
        """The end of a text."""
        return b""

    def call_begun(self) -> bytes:
        """The name of a call."""
        return b""

    def call_half(self) -> bytes:
        """The first half of its arguments."""
        return b""

    def call_done(self) -> bytes:
        """The rest of its arguments, and its end."""
        raise NotImplementedError

    def finished(self, reason: str) -> bytes:
        """Why it ends: "stop" or "calls"."""
        raise NotImplementedError

    def ended(self) -> bytes:
        """What comes last."""
        return b""

    def failed(self, words: str) -> bytes:
        """An error within the stream."""
        raise NotImplementedError
