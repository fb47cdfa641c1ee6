"""Sessions that are refused in the middle of a task, and what the provider answers in each: told apart by a name that
stands in their first prompt."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.e2e import replies, thinking_rules
from tests.e2e.provider import Forced
from tests.e2e.replies import Reply
from tests.e2e.signing import Block
from tests.e2e.strict import merged

SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
# An agent that may take two steps: at the last one the client ends its request with words of the assistant.
SHORT = {"agent": {"short": {"mode": "primary", "prompt": "Do it.", "steps": 2, "maxSteps": 2}}}


def _call() -> Block:
    return replies.tool_use("bash", {"command": "echo done", "description": "a step"})


def step() -> Reply:
    """A tool call as it should be."""
    return Reply([replies.thinking("a plan"), _call()])


def broken_step() -> Reply:
    """A tool call with thinking behind it: every client sends that back in an order that is refused."""
    return Reply([replies.thinking("a plan"), _call(), replies.thinking("too late")])


def end() -> Reply:
    return Reply([replies.text("finished")])


class Stage:
    """The provider's side of all scenes. `hold` is set when the answers that stand still may go on."""

    def __init__(self) -> None:
        self.hold = threading.Event()
        self._accepted: Counter[str] = Counter()
        self._answers: dict[str, Callable[[int], Reply]] = {
            "task": lambda n: [broken_step, step, end][min(n, 2)](),
            "forever": lambda n: broken_step(),
            "thinking": lambda n: step() if n == 0 else end(),
            "limit": lambda n: step() if n == 0 else end(),
            "prefill": lambda n: step() if n == 0 else end(),
            "prefill forever": lambda n: step(),
            "child": lambda n: broken_step() if n == 0 else end(),
            "start": lambda n: broken_step() if n == 0 else end(),
            "newer": lambda n: broken_step() if n == 0 else end(),
            "stopped": lambda n: broken_step() if n == 0 else Reply([], self.hold),
            "busy": lambda n: Reply([replies.text("half")], self.hold),
            "hung": lambda n: Reply([replies.text("half")], self.hold),
        }

    def reply(self, body: dict[str, Any]) -> Reply | None:
        name = self._scene(body)
        self._accepted[name] += 1
        return self._answers[name](self._accepted[name] - 1) if name in self._answers else None

    def judge(self, body: dict[str, Any]) -> Forced | None:
        """What the strict rules do not refuse by themselves."""
        name, on = self._scene(body), (body.get("thinking") or {}).get("type") == "enabled"
        if name == "thinking" and on and self._accepted[name]:
            return Forced(SIGNATURE)
        if name == "limit" and on:  # of a model that takes words of the assistant's at the end, behind thinking
            said = thinking_rules.order(merged(body["messages"]))
            return Forced(said) if said else None
        words = json.dumps(body["messages"])
        return Forced("not today") if name == "busy" and "again" not in words else None

    def _scene(self, body: dict[str, Any]) -> str:
        words = json.dumps(body["messages"])
        return next((name for name in sorted(self._answers, key=len, reverse=True) if f"scene: {name}." in words), "")
