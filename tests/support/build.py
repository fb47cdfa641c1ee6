"""Stored sessions as plain values, field by field as the client (1.1.53) writes them.

What is planted (`tests.support.planted`, `tests.support.parts`) is kept apart from how it is written
(`tests.support.plant`); all of it may be imported from here. Ids carry the time, so a session that is to be prompted
must be built with the clock of now.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable
from typing import Any

from tests.e2e.signing import sign
from tests.support.parts import (
    SIGNED,
    SPENT,
    Part,
    aborted,
    api_error,
    compaction,
    file,
    raw,
    reasoning,
    step_finish,
    step_start,
    subtask,
    text,
    tool,
)
from tests.support.plant import write_sqlite, write_tree
from tests.support.planted import Message, Planted, ascending, descending, dump

__all__ = [
    "Message",
    "Part",
    "Planted",
    "SessionBuilder",
    "aborted",
    "api_error",
    "compaction",
    "dump",
    "file",
    "raw",
    "reasoning",
    "step_finish",
    "step_start",
    "subtask",
    "text",
    "tool",
    "write_sqlite",
    "write_tree",
]

MODEL = {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
# Ties its thinking to all that stands before it. A name as a proxy may give: for `claude-opus-5-1` OpenCode 1.18 would
# have the provider drop what no longer fits, and ask for thinking in another way.
BINDS = {"providerID": "anthropic", "modelID": "claude_opus-5-1"}
ZERO = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


class SessionBuilder:
    """Adds message behind message to one session, with ids and times that grow as the client's do.

    `now_ms` is the time of the first message (default: an hour ago); every message takes a second. `model` is asked.
    """

    def __init__(
        self,
        now_ms: int | None = None,
        *,
        seed: int | None = None,
        title: str = "planted",
        directory: str = "/planted",
        project: str = "global",
        version: str = "1.1.53",
        model: dict[str, str] | None = None,
    ) -> None:
        self._model = model or MODEL
        self._rng = random.Random(seed)
        self._ms = int(time.time() * 1000) - 3_600_000 if now_ms is None else now_ms
        self._counter = 0
        self._calls = 0
        self.directory = directory
        self.session: dict[str, Any] = {
            "id": descending("ses", self._ms, 1, self._rng),
            "slug": "planted-session",
            "version": version,
            "projectID": project,
            "directory": directory,
            "title": title,
            "time": {"created": self._ms, "updated": self._ms},
        }
        self.messages: list[Message] = []
        self.parts: dict[str, list[Part]] = {}
        self.raw: dict[str, bytes] = {}

    def user(self, *content: str | Part, agent: str = "build", **fields: Any) -> Message:
        """A user message: texts and parts in order. Returns the message, still to be changed at will."""
        message = {"id": self._id("msg"), "sessionID": self.session["id"], "role": "user"}
        message |= {"time": {"created": self._ms}, "summary": {"title": "asked", "diffs": []}}
        return self._add({**message, "agent": agent, "model": dict(self._model), **fields}, content)

    def assistant(
        self,
        *content: str | Part,
        finish: str | None = "",
        error: dict[str, Any] | None = None,
        completed: bool = True,
        bare: bool = False,
        **fields: Any,
    ) -> Message:
        """An assistant message. Texts and parts are wrapped in step-start and step-finish unless `bare`.

        `finish=""` finds out whether the turn goes on; `completed=False` is a message that a crash left behind.
        """
        parts: list[str | Part] = list(content)
        calls = any(isinstance(part, dict) and part["type"] == "tool" for part in parts)
        if finish == "":
            finish = None if error or not completed else "tool-calls" if calls else "stop"
        if not bare and parts:
            parts = [step_start(), *parts, *([step_finish(finish)] if finish else [])]
        message: Message = {"id": self._id("msg"), "sessionID": self.session["id"], "role": "assistant"}
        message["time"] = {"created": self._ms, **({"completed": self._ms + 900} if completed else {})}
        if error:
            message["error"] = error
        parent = next((m["id"] for m in reversed(self.messages) if m["role"] == "user"), self._id("msg"))
        message |= {"parentID": parent, **self._model, "mode": "build", "agent": "build"}
        message |= {"path": {"cwd": self.directory, "root": "/"}, "cost": 0, "tokens": SPENT if finish else ZERO}
        return self._add({**message, **({"finish": finish} if finish else {}), **fields}, parts)

    def failed(self, question: str = "continue", error: dict[str, Any] | None = None) -> Message:
        """A prompt and the empty message of its failure."""
        self.user(question)
        return self.assistant(error=error or api_error())

    def planted(self) -> Planted:
        """What was built so far."""
        self.session["time"]["updated"] = self._ms
        return Planted(self.session, self.messages, self.parts, self.raw)

    def _id(self, prefix: str) -> str:
        self._counter += 1
        return ascending(prefix, self._ms, self._counter, self._rng)

    def _add(self, message: Message, content: Iterable[str | Part]) -> Message:
        self.messages.append(message)
        stored = self.parts.setdefault(message["id"], [])
        for item in content:
            self._ms += 10
            stored.append(self._part(message, text(item) if isinstance(item, str) else item))
        # A second for each message, so that order by time and order by id can never differ.
        self._ms += 1000
        self._counter = 0
        return message

    def _part(self, message: Message, part: Part) -> Part:
        ids = {"id": self._id("prt"), "sessionID": message["sessionID"], "messageID": message["id"]}
        if part["type"] == "raw":
            self.raw[ids["id"]] = part["raw"]
            return {**ids, "type": "raw"}
        stored = {**ids, **json.loads(json.dumps(part))}
        if part["type"] == "tool":
            self._finish_tool(stored)
        elif part["type"] == "reasoning" or (part["type"] == "text" and message["role"] == "assistant"):
            stored.setdefault("time", {"start": self._ms, "end": self._ms + 5})
        metadata = stored.get("metadata")
        marks = (metadata.get("anthropic") or {}) if isinstance(metadata, dict) else {}
        if marks.get("signature") == SIGNED:
            marks["signature"] = sign(stored["text"], ids["id"][-14:])
        return stored

    def _finish_tool(self, stored: Part) -> None:
        self._calls += 1
        if stored.get("callID") is None:
            # Letters, then a number: 1.18 takes a 500 or 429 anywhere in an error's text for a status, and tries again.
            own = "".join(char if char.isalpha() else "x" for char in self.session["id"][-6:])
            stored["callID"] = f"toolu_{own}{self._calls:04d}"
        state = stored.get("state")
        if isinstance(state, dict) and "time" not in state and state.get("status") != "pending":
            ended = {} if state.get("status") == "running" else {"end": self._ms + 8}
            state["time"] = {"start": self._ms, **ended}
