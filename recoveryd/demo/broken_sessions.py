"""Sessions for `demo`: one that the provider refuses for each kind, and two controls that must stay as they are.

Fields, ids and the way of writing are those of OpenCode 1.1.53; the errors are in Anthropic's words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from recoveryd.clients.opencode.records import dump
from recoveryd.core import Change, Kind

Data = dict[str, Any]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MODEL = {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
_TOKENS = {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 0, "write": 0}}
_FOLDER = "/home/you/project"


@dataclass
class Example:
    """A session of the demo that is to be written: first `plant`, then, where it has an error, `fail`. `kind` None: not
    ours to repair.
    """

    title: str
    kind: Kind | None
    id: str
    failed: str  # the id of the failed message, "" where there is none
    files: dict[str, Data] = field(default_factory=dict)  # by path below the store
    prompt: dict[str, Data] = field(default_factory=dict)  # what comes with the failure: the last prompt
    error: Data | None = None
    client: ClassVar[str] = "opencode"

    def plant(self, root: Path) -> None:
        """Write the session as it was before its last prompt."""
        for key, data in self.files.items():
            write_demo_file(root / key, data)

    def fail(self, root: Path, now_ms: int) -> None:
        """Write the last prompt and the empty message of its failure: first unfinished, then with the error."""
        for key, data in self.prompt.items():
            write_demo_file(root / key, data)
        unfinished = _assistant(self.id, self.failed, now_ms)
        error = {**unfinished, "time": {"created": now_ms, "completed": now_ms}, "error": self.error}
        for data in (unfinished, error, error):
            write_demo_file(root / "message" / self.id / f"{self.failed}.json", data)

    def owns(self, change: Change) -> bool:
        """Whether a change is one of this session."""
        messages = {Path(key).stem for key in (*self.files, *self.prompt) if key.startswith("message/")}
        return bool(messages.intersection(Path(change.key).parts)) or self.id in change.key

    def stored(self, root: Path) -> dict[str, bytes]:
        """Read all files of the session, also those that were not there before."""
        messages = root / "message" / self.id
        folders = [messages, *(root / "part" / path.stem for path in messages.glob("*.json"))]
        found = [path for folder in folders for path in folder.glob("*")]
        found.append(root / "session" / "global" / f"{self.id}.json")
        return {str(path.relative_to(root)): path.read_bytes() for path in found}


def write_demo_file(path: Path, data: Data) -> None:
    """Write a file of a demo session as the client does: truncated first, not atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(dump(data))


class _Conversation:
    """Adds messages to a session; `now` (ms since the epoch) is when its last prompt will be."""

    def __init__(self, title: str, kind: Kind | None, now: int, length: int) -> None:
        self._random = random.Random(title)  # noqa: S311 - ids that look like ids
        self._ms = now - length * 1000
        session = f"ses_{~(self._ms * 4096 + 1) % 2**48:012x}{self._tail()}"
        self.example = Example(title, kind, session, "")
        self.calls: list[str] = []
        self._parent = ""
        about: Data = {
            "id": session,
            "slug": "quick-lake",
            "version": "1.1.53",
            "projectID": "global",
            "directory": _FOLDER,
        }
        about |= {"title": title, "time": {"created": self._ms, "updated": now}}
        self._put(f"session/global/{session}.json", about)

    def user(self, words: str) -> None:
        message = self._id("msg")
        data = {"id": message, "sessionID": self.example.id, "role": "user", "time": {"created": self._ms}}
        self._put(self._path(message), {**data, "agent": "build", "model": _MODEL})
        self._part(message, words)
        self._parent = message
        self._ms += 1000

    def assistant(self, *parts: Data | str) -> None:
        """Add an answer in one step; a call in it means that the turn goes on."""
        message = self._id("msg")
        calls = any(isinstance(part, dict) and part["type"] == "tool" for part in parts)
        finish = "tool-calls" if calls else "stop"
        data = _assistant(self.example.id, message, self._ms)
        data["time"]["completed"] = self._ms + 900
        self._put(self._path(message), {**data, "parentID": self._parent, "tokens": _TOKENS, "finish": finish})
        end = {"type": "step-finish", "reason": finish, "cost": 0.0001, "tokens": _TOKENS}
        for part in ({"type": "step-start"}, *parts, end):
            self._part(message, part)
        self._ms += 1000

    def refused(self, error: Data) -> Example:
        """Set the last prompt, "continue", and how it was answered."""
        before = dict(self.example.files)
        self.user("continue")
        self.example.prompt = {key: data for key, data in self.example.files.items() if key not in before}
        self.example.files = before
        self.example.failed = self._id("msg")
        self.example.error = error
        return self.example

    def tool(self, command: str, output: str) -> Data:
        call = f"toolu_01{self._tail()}{self._tail()[:8]}"
        self.calls.append(call)
        done = {"output": output, "exit": 0, "truncated": False}
        state: Data = {"status": "completed", "input": {"command": command}, "output": output, "title": command}
        state |= {"metadata": done, "time": {"start": self._ms, "end": self._ms + 8}}
        return {"type": "tool", "callID": call, "tool": "bash", "state": state}

    def thought(self, words: str) -> Data:
        signature = "EqQBCkgIBRABGAIiQ" + "".join(self._random.choices(_DIGITS, k=70)) + "=="
        time = {"start": self._ms, "end": self._ms + 5}
        return {"type": "reasoning", "text": words, "time": time, "metadata": {"anthropic": {"signature": signature}}}

    def _part(self, message: str, content: Data | str) -> None:
        self._ms += 10
        part = self._id("prt")
        body = {"type": "text", "text": content} if isinstance(content, str) else content
        ids = {"id": part, "sessionID": self.example.id, "messageID": message}
        self._put(f"part/{message}/{part}.json", {**ids, **body})

    def _put(self, key: str, data: Data) -> None:
        self.example.files[key] = data

    def _path(self, message: str) -> str:
        return f"message/{self.example.id}/{message}.json"

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{(self._ms * 4096 + 1) % 2**48:012x}{self._tail()}"

    def _tail(self) -> str:
        return "".join(self._random.choices(_DIGITS, k=14))


def _assistant(session: str, message: str, now: int) -> Data:
    data: Data = {"id": message, "sessionID": session, "role": "assistant", "time": {"created": now}}
    data |= {**_MODEL, "mode": "build", "agent": "build", "path": {"cwd": _FOLDER, "root": "/"}, "cost": 0}
    return {**data, "tokens": {**_TOKENS, "input": 0, "output": 0}}


def demo_error(message: str, status: int = 400, type: str = "invalid_request_error") -> Data:
    """Make the error that a session of the demo fails with, as the client records a refusal."""
    body = json.dumps({"type": "error", "error": {"type": type, "message": message}})
    data: Data = {"message": message, "statusCode": status, "isRetryable": status != 400, "responseHeaders": {}}
    data |= {"responseBody": body, "metadata": {"url": "https://api.anthropic.com/v1/messages"}}
    return {"name": "APIError", "data": data}


def _result_missing(talk: _Conversation) -> str:
    talk.user("Rename load_conf to load_config everywhere.")
    talk.assistant(talk.tool("grep -rn load_conf src", "src/app.py:12: load_conf()\n"), "There is one place.")
    talk.user("Go on, please.")
    return (
        f"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {talk.calls[0]}. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _thinking_order(talk: _Conversation) -> str:
    talk.user("Why is the test suite so slow?")
    talk.assistant("Let me measure it.", talk.tool("pytest --durations=1", "12.41s call test_retry\n"))
    return (
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
        "`tool_use` and `tool_result` blocks)."
    )


def _thinking_disabled(talk: _Conversation) -> str:
    talk.user("Is the cache ever cleared?")
    talk.assistant(talk.thought("I should look for the calls of clear()."), talk.tool("grep -rn 'clear()' src", ""))
    return (
        "messages.1.content.0.type: Expected `text`, but found `thinking`. When `thinking` is disabled, an `assistant` "
        "message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your "
        "request."
    )


def _signature_invalid(talk: _Conversation) -> str:
    talk.user("Which port does the server use?")
    talk.assistant(talk.thought("It is in the settings: 8080."), "Port 8080.")
    talk.user("Can it be changed?")
    talk.assistant("Yes, with --port.")
    return "messages.1.content.0: Invalid `signature` in `thinking` block"


def _block_modified(talk: _Conversation) -> str:
    talk.user("Sort the imports.")
    talk.assistant("They are sorted now.")
    talk.user("And in the tests?")
    talk.assistant(talk.thought("The tests are next; ruff can do it."), "In the tests, too.")
    return (
        "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response."
    )


def _final_block(talk: _Conversation) -> str:
    talk.user("Find a better name for this function.")
    talk.assistant(talk.thought("It returns the first free port, so free_port would say it."))
    return "messages.1: The final block in an assistant message cannot be `thinking`."


def _empty_content(talk: _Conversation) -> str:
    talk.user("Add a line to the changelog.")
    talk.assistant("\n\n")
    return "messages.1.content.0.text: text content blocks must contain non-whitespace text"


def _role_order(talk: _Conversation) -> str:
    talk.user("")
    talk.assistant("What can I do for you?")
    return 'messages: first message must use the "user" role'


_BROKEN: Sequence[tuple[str, Kind, Callable[[_Conversation], str]]] = (
    ("Rename the config loader", Kind.TOOL_RESULT_MISSING, _result_missing),
    ("Find the slow test", Kind.THINKING_BLOCK_ORDER, _thinking_order),
    ("Check the cache", Kind.THINKING_DISABLED_VIOLATION, _thinking_disabled),
    ("Change the port", Kind.THINKING_SIGNATURE_INVALID, _signature_invalid),
    ("Sort the imports", Kind.THINKING_BLOCK_MODIFIED, _block_modified),
    ("Name a function", Kind.THINKING_FINAL_BLOCK, _final_block),
    ("Write the changelog", Kind.EMPTY_CONTENT, _empty_content),
    ("A quick question", Kind.ROLE_ORDER, _role_order),
)

CONTROLS: Mapping[str, str] = {"Say hello": "a healthy session", "Ask too much": "a rate limit, not the session"}


def examples(now_ms: int) -> list[Example]:
    """Make the demo's sessions: healthy ones, then one a kind, in the order in which they are to fail."""
    made = []
    healthy, busy = (_Conversation(title, None, now_ms, 2) for title in CONTROLS)
    for talk in (healthy, busy):
        talk.user("Say hello.")
        talk.assistant("Hello!")
    limit = "This request would exceed your organization's rate limit of 30,000 input tokens per minute."
    made += [healthy.example, busy.refused(demo_error(limit, 429, "rate_limit_error"))]
    for title, kind, tell in _BROKEN:
        talk = _Conversation(title, kind, now_ms, 6)
        words = tell(talk)
        made.append(talk.refused(demo_error(words)))
    return made
