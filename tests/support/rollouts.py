"""Rollouts of Codex that a test writes line by line, as the real 0.169.0 writes them."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recoveryd.clients.codex.store import CodexThreads

Json = dict[str, Any]

NOW = 1_795_325_264_000
THREAD = "01a201b9-82b1-7263-872f-20dfb3075cd3"
NOT_VERIFIED = json.dumps(
    {
        "error": {
            "message": "The encrypted content gAAA...abcd could not be verified. "
            "Reason: Encrypted content could not be decrypted or parsed.",
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_encrypted_content",
        }
    }
)


class Rollout:
    """The file of one thread. Each method appends lines to it; times are milliseconds since the epoch."""

    def __init__(
        self, home: Path, thread: str = THREAD, *, ms: int = NOW, meta: Json | None = None, name: str = ""
    ) -> None:
        self.home, self.thread, self.ms = home, thread, ms
        self.path = home / "sessions/2026/11/22" / f"rollout-{name or '2026-11-22T05-27-44-' + thread}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"")
        self._ordinals = itertools.count()
        self._turns = itertools.count(1)
        self.turn = ""
        about = {"id": thread, "cwd": "/p", "cli_version": "0.169.0", "model_provider": "openai"}
        self.line("session_meta", {**about, "base_instructions": {"text": "You are a coding agent."}, **(meta or {})})

    def line(self, kind: str, payload: Json, **more: Any) -> None:
        """Any line, half a second after the one before."""
        self.ms += 500
        at = datetime.fromtimestamp(self.ms / 1000, UTC)
        stamp = f"{at:%Y-%m-%dT%H:%M:%S}.{self.ms % 1000:03d}Z"
        line = {"timestamp": stamp, "ordinal": next(self._ordinals), "type": kind, "payload": payload, **more}
        self.raw(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def raw(self, line: bytes) -> None:
        """These bytes, as they are."""
        with self.path.open("ab") as file:
            file.write(line)

    def item(self, payload: Json) -> Json:
        """Something that is sent again."""
        sealed = {"turn_id": self.turn}
        self.line("response_item", {**payload, "internal_chat_message_metadata_passthrough": sealed})
        return payload

    def event(self, kind: str, **fields: Any) -> None:
        self.line("event_msg", {"type": kind, **fields})

    def asks(self, text: str = "do it", *content: Json, trigger: str | None = None) -> str:
        """A turn begins with what its user wrote; the turn's id."""
        self.turn = f"01a201b9-0000-7000-8000-{next(self._turns):012d}"
        self.event("task_started", turn_attribution={"turn_trigger": trigger}, turn_id=self.turn)
        self.line("turn_context", {"turn_id": self.turn, "cwd": "/p", "model": "gpt-5.2"})
        self.item(message("user", text, *content))
        item = {"type": "UserMessage", "id": "x", "content": [{"type": "text", "text": text}]}
        self.event("item_completed", turn_id=self.turn, item=item)
        return self.turn

    def thinks(self, sealed: str = "gAAAA", **fields: Any) -> None:
        summary = [{"type": "summary_text", "text": "hm"}]
        item = {"type": "reasoning", "id": "rs_1", "summary": summary, "content": None}
        self.item({**item, "encrypted_content": sealed, **fields})

    def calls(self, call_id: str = "call_1", output: Any = "ok", name: str = "exec_command") -> None:
        """A call and, unless that is None, its output."""
        self.item({"type": "function_call", "id": "fc_1", "name": name, "arguments": "{}", "call_id": call_id})
        if output is not None:
            self.item({"type": "function_call_output", "call_id": call_id, "output": output})

    def answers(self, text: str = "done") -> None:
        """The turn ends with words of the model."""
        self.item({**message("assistant", text), "id": "msg_1"})
        self.event("task_complete", turn_id=self.turn, last_agent_message=text, duration_ms=172)

    def is_refused(self, body: str = NOT_VERIFIED, info: Any = "other") -> str:
        """The turn ends with a refusal; the turn's id."""
        error = {"message": body, "codex_error_info": info}
        self.event("task_complete", turn_id=self.turn, last_agent_message=None, error=error, duration_ms=88)
        return self.turn

    def compacted(self, history: list[Json]) -> None:
        """All before is replaced by `history`, with a note on each of its items."""
        notes = [{"history_sequence": number, "client_authored": False} for number in range(len(history))]
        self.line("compacted", {"message": "", "replacement_history": history, "replacement_history_metadata": notes})

    def healthy(self) -> None:
        """A turn with all that there is."""
        self.asks()
        self.thinks()
        self.calls()
        self.answers()

    def stuck(self) -> str:
        """A healthy turn, and one that is refused for its reasoning; that turn's id."""
        self.healthy()
        self.asks("again")
        return self.is_refused()

    def bytes(self) -> bytes:
        return self.path.read_bytes()

    @contextmanager
    def open(self, at: float | None = None) -> Iterator[None]:
        """A client has the thread open, from now on, or since `at`, in seconds since the epoch."""
        lock = self.home / "thread-writer-locks" / f"{self.thread}.lock"
        lock.parent.mkdir(exist_ok=True)
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if at is not None:
                os.utime(lock, (at, at))
            yield
        lock.unlink()


def message(role: str, text: str, *content: Json) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}, *content]}


def threads(home: Path) -> CodexThreads:
    return CodexThreads(home / "sessions")
