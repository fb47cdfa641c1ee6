"""A transcript of Claude Code that a test writes line by line, as 2.1.330 writes it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]
Blocks = str | list[Any]
SECOND = 1000


class Transcript:
    """Lines of one session; each comes behind the one before (`parentUuid`), a second later.

    `folder`: the project's folder below `projects/`. Nothing is written before `write`.
    """

    def __init__(self, session: str | None = None, *, cwd: str = "/work", start: int = 1_795_000_000_000) -> None:
        self.session = session or str(uuid.uuid4())
        self.cwd = cwd
        self.ms = start
        self.lines: list[Line | bytes] = []
        self.last: str | None = None
        self._messages = 0

    def user(self, content: Any, **fields: Any) -> str:
        """A prompt, or what comes back from tools; its uuid."""
        return self.add({"type": "user", "message": {"role": "user", "content": content}, **fields})

    def assistant(self, *blocks: Any, one_line: bool = False, stop: str | None = None, **fields: Any) -> list[str]:
        """One answer of the model: a line for each block, all with one `message.id`; their uuids."""
        self._messages += 1
        name = f"msg_{self.session[:8]}{self._messages:04d}"
        called = any(isinstance(block, dict) and block.get("type") == "tool_use" for block in blocks)
        parts = [list(blocks)] if one_line else [[block] for block in blocks]
        return [
            self.add(_answer(name, part, stop or ("tool_use" if called else "end_turn"), n, fields))
            for n, part in enumerate(parts)
        ]

    def refused(self, words: str, status: int = 400, kind: str = "invalid_request_error", **fields: Any) -> str:
        """The line that the client writes when the provider refused; its uuid."""
        message = {
            **_answer(
                str(uuid.uuid4()), [{"type": "text", "text": f"API Error: {status} {words}"}], "stop_sequence", 0, {}
            )["message"],
            "model": "<synthetic>",
        }
        return self.add(
            {
                "type": "assistant",
                "message": message,
                "error": "invalid_request",
                "isApiErrorMessage": True,
                "apiErrorStatus": status,
                "apiErrorType": kind,
                **fields,
            }
        )

    def no_response(self) -> str:
        """What the client says in the place of an answer to a prompt that was cut off; its uuid."""
        message = {**_answer(str(uuid.uuid4()), [text("No response requested.")], "stop_sequence", 0, {})["message"]}
        line = {"type": "assistant", "message": {**message, "model": "<synthetic>"}}
        return self.add({**line, "isApiErrorMessage": False, "madeBy": "other"})

    def by(self, model: str, asked: str | None = None) -> None:
        """Give all answers so far to this model, which was asked for by this name; None: by its own."""
        for line in self.lines:
            if isinstance(line, dict) and "requestedModel" in line:
                line["message"]["model"], line["requestedModel"] = model, model if asked is None else asked

    def asks(self, model: str) -> None:
        """What the client notes of a request before it sends it."""
        params = {"model": model, "max_tokens": 32_000}
        self.event({"type": "api-request", "sessionId": self.session, "id": str(uuid.uuid4()), "params": params})

    def told_model(self, model: str) -> str:
        """What the client attaches to a prompt with which the model is another one than before (2.1.332); its uuid."""
        identity = {"modelId": model, "marketingName": None, "knowledgeCutoff": None}
        says = f"You are powered by the model {model}."
        return self.add({"type": "attachment", "attachment": {"type": "model", "identity": identity, "text": says}})

    def result(self, call: str, content: Any = "done", **fields: Any) -> str:
        """What came back from a tool; its uuid."""
        return self.user([{"tool_use_id": call, "type": "tool_result", "content": content, **fields}])

    def add(self, line: Line) -> str:
        """Any line of the conversation, behind the one before; its uuid."""
        self.ms += SECOND
        name = line.get("uuid") or str(uuid.uuid4())
        whole = {
            "parentUuid": self.last,
            "isSidechain": False,
            **line,
            "uuid": name,
            "timestamp": stamp(self.ms),
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.330",
            "gitBranch": "HEAD",
        }
        self.lines.append({**whole, **{key: line[key] for key in line if key in whole}})
        self.last = name
        return name

    def event(self, line: Line | bytes) -> None:
        """A line that is no part of the conversation, or bytes as they are."""
        self.lines.append(line)

    def line(self, index: int) -> Line:
        """A line that is no bytes."""
        line = self.lines[index]
        assert isinstance(line, dict)
        return line

    def raw(self) -> bytes:
        """The whole file."""
        return b"".join(line if isinstance(line, bytes) else dump(line) for line in self.lines)

    def write(self, projects: Path) -> Path:
        """The file, below the client's `projects` folder."""
        folder = projects / project(self.cwd)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.session}.jsonl"
        path.write_bytes(self.raw())
        return path


def project(cwd: str) -> str:
    """The name of the client's folder for a project."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in cwd)


def dump(line: Line) -> bytes:
    """As the client writes a line: without white space, a lone surrogate as an escape."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text).encode() + b"\n"


def stamp(ms: int) -> str:
    """A time as the client writes it."""
    import datetime

    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def text(words: str, **fields: Any) -> Line:
    return {"type": "text", "text": words, **fields}


def call(name: str = "Bash", call_id: Any = "toolu_01", given: Any = None, **fields: Any) -> Line:
    return {
        "type": "tool_use",
        "id": call_id,
        "name": name,
        "input": {"command": "ls"} if given is None else given,
        **fields,
    }


def _answer(name: str, blocks: Sequence[Any], stop: str, index: int, fields: Line) -> Line:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}
    message = {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }
    told = {"requestId": f"req_{name}", "requestedModel": message["model"], "apiBlockIndex": index}
    return {"type": "assistant", "message": message, **told, **fields}
