"""A thread of Codex for `demo`, refused for reasoning that can't be decrypted. Written as 0.169.0 writes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recoveryd.core import Change, Kind
from recoveryd.demo.broken_sessions import Data, Example

_THREAD = "01a201b9-82b1-7263-872f-20dfb3075cd3"
_FIRST, _LAST = "01a201b9-82c3-7563-9eba-1e7c214917bd", "01a201b9-ca09-7f81-b266-a2de0f684be8"  # turns
_REFUSED = {
    "error": {
        "message": "The encrypted content gAAA...9w== could not be verified. "
        "Reason: Encrypted content could not be decrypted or parsed.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_encrypted_content",
    }
}


@dataclass
class ThreadExample(Example):
    """A thread of the demo, in one growing file; `root` is a home of Codex here."""

    client = "codex"

    def plant(self, root: Path) -> None:
        """Write the thread as it was before its last prompt."""
        path = self._path(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        about = {"id": self.id, "cwd": "/home/you/project", "cli_version": "0.169.0", "model_provider": "openai"}
        self._line(root, "session_meta", about)
        self._asks(root, _FIRST, "Why is the build so slow?")
        reasoning: Data = {"type": "reasoning", "id": "rs_1", "summary": [], "content": None}
        self._line(root, "response_item", {**reasoning, "encrypted_content": "gAAAAABk" + "x" * 400 + "9w=="})
        self._line(root, "response_item", _message("assistant", "It compiles everything twice."))
        self._line(root, "event_msg", {"type": "task_complete", "turn_id": _FIRST, "last_agent_message": "..."})

    def fail(self, root: Path, now_ms: int) -> None:
        """Append the last prompt, and its refusal."""
        del now_ms
        self._asks(root, _LAST, "Then mend it.")
        error = {"message": json.dumps(_REFUSED), "codex_error_info": "other"}
        ended = {"type": "task_complete", "turn_id": _LAST, "last_agent_message": None, "error": error}
        self._line(root, "event_msg", ended)

    def owns(self, change: Change) -> bool:
        return self.id in change.key

    def stored(self, root: Path) -> dict[str, bytes]:
        return {"rollout": self._path(root).read_bytes()}

    def _path(self, root: Path) -> Path:
        return root / "sessions/2026/11/22" / f"rollout-2026-11-22T05-27-44-{self.id}.jsonl"

    def _asks(self, root: Path, turn: str, words: str) -> None:
        self._line(root, "event_msg", {"type": "task_started", "turn_id": turn})
        self._line(root, "turn_context", {"turn_id": turn, "model": "gpt-5.2"})
        self._line(root, "response_item", _message("user", words))

    def _line(self, root: Path, kind: str, payload: Data) -> None:
        path = self._path(root)
        stamp = f"{datetime.now(UTC).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"
        number = path.read_bytes().count(b"\n")
        line: dict[str, Any] = {"timestamp": stamp, "ordinal": number, "type": kind, "payload": payload}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _message(role: str, words: str) -> Data:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def example_thread() -> ThreadExample:
    """Return the one thread of Codex that the demo shows."""
    return ThreadExample("Find out why the build is slow (Codex)", Kind.REASONING_ITEM, _THREAD, _LAST, error=_REFUSED)
