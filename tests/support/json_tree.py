"""A JSON tree of OpenCode to fill by hand, with a clock of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recoveryd.clients.opencode.files.store import OpencodeFiles

NOW = 1_790_000_000_000  # ms; some weeks after ids started again near zero
SES = "ses_1"
Files = dict[str, bytes]


def name(ms: int, counter: int = 0, prefix: str = "msg") -> str:
    return f"{prefix}_{(ms * 4096 + counter) % 2**48:012x}abc"


def message(identifier: str, role: str, ms: int, **fields: Any) -> dict[str, Any]:
    return {"id": identifier, "sessionID": SES, "role": role, "time": {"created": ms}, **fields}


def done(ms: int) -> dict[str, Any]:
    return {"time": {"created": ms, "completed": ms + 5}, "finish": "stop"}


REFUSED = {"error": {"name": "APIError", "data": {"message": "no"}}, "providerID": "anthropic", "modelID": "m"}
ABORTED = {"error": {"name": "MessageAbortedError", "data": {}}}


class Tree:
    """A JSON tree to fill by hand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("message", "part", "session"):
            (root / folder).mkdir(parents=True)
        self.store = OpencodeFiles(root, clock=lambda: NOW / 1000)

    def put(self, key: str, content: Any) -> Path:
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content, indent=2).encode())
        return path

    def say(self, role: str, ms: int, **fields: Any) -> str:
        identifier = name(ms)
        self.put(f"message/{SES}/{identifier}.json", message(identifier, role, ms, **fields))
        return identifier

    def part(self, owner: str, identifier: str, content: Any = None) -> Path:
        data = {"id": identifier, "sessionID": SES, "messageID": owner, "type": "text", "text": "hello"}
        return self.put(f"part/{owner}/{identifier}.json", data if content is None else content)

    def files(self) -> Files:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}

    def small(self) -> tuple[str, str]:
        """A user's and an assistant's message, each with one part."""
        asked, answered = self.say("user", NOW - 100), self.say("assistant", NOW - 90, **done(NOW - 90))
        self.part(asked, "prt_1")
        self.part(answered, "prt_2")
        return asked, answered
