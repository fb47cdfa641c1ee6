"""A thread as the client stores it, built line by line: what is replayed, and the events beside it."""

from __future__ import annotations

import itertools
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Item = dict[str, Any]

MODEL = "gpt-5.2"
SOL = "gpt-6.1-sol"  # as each model since GPT-5.6 has it: its tools, and what it is told first, are items of the thread
_TOLD = "You are a coding agent."

_BEGINNING = datetime(2026, 11, 20, 9, 0, 0, tzinfo=UTC)
_threads = itertools.count(1)


class Rollout:
    """Turns of a thread. Every method that adds a line returns nothing; `lines` are what is written, newlines apart."""

    def __init__(self, directory: Path, *, seed: str = "", model: str = MODEL, configured: bool = False) -> None:
        self.model, self.configured = model, configured
        number = next(_threads)
        self._namespace = uuid.uuid5(uuid.NAMESPACE_OID, f"{seed or number}")
        self._numbers = itertools.count(1)
        self.directory = directory
        self.thread = self._time_id()
        self.lines: list[bytes] = []
        self._ordinals = itertools.count(0)
        self._sequence, self._turns = itertools.count(1), itertools.count(1)
        self._turn = ""
        self._answer: str | None = None
        self._seconds = 0
        self._meta()

    def turn(self, prompt: str, *parts: Item) -> None:
        """Begin a turn with what a person wrote; `parts` are content behind the words."""
        if self._turn:
            self.end()
        self._turn, self._answer = self._time_id(), None
        self.event("task_started", turn_id=self._turn, started_at=self._stamp(), model_context_window=258400)
        if self.model == SOL and next(self._turns) == 1:
            self.item({"type": "additional_tools", "id": self.id("at"), "role": "developer", "tools": []})
            told = [{"type": "input_text", "text": _TOLD}]
            self.item({"type": "message", "id": self.id("msg"), "role": "developer", "content": told})
        self.line("turn_context", self._context())
        words = [{"type": "input_text", "text": prompt}] if prompt else []
        self.item({"type": "message", "id": self.id("msg"), "role": "user", "content": [*words, *parts]})
        said = {"type": "UserMessage", "id": self._time_id(), "content": [{"type": "text", "text": prompt}]}
        self._completed(said)
        if self.configured:  # as where the client has just loaded the thread
            update: Item = {"type": "configuration_update", "reasoning": {"effort": "low"}}
            self.item(update, harness_authored_configuration=True)

    def reasoning(self, sealed: str, text: str = "thinking", **fields: Any) -> None:
        """Reasoning of the model; `sealed` is its encrypted content, `fields` come on top."""
        summary = [{"type": "summary_text", "text": text}]
        item = {"type": "reasoning", "id": self.id("rs"), "summary": summary, "content": None}
        self.item({**item, "encrypted_content": sealed, **fields})

    def call(self, command: str = "ls", output: Any = "one two", *, call_id: str = "", name: str = "") -> None:
        """A call of the shell tool and its output; none where `output` is None."""
        call_id = call_id or self.id("call")
        arguments = json.dumps({"cmd": command})
        call = {"type": "function_call", "id": self.id("fc"), "name": name or "exec_command", "arguments": arguments}
        self.item({**call, "call_id": call_id})
        if output is not None:
            self.item({"type": "function_call_output", "id": self.id("fco"), "call_id": call_id, "output": output})

    def answer(self, text: str) -> None:
        """Words of the model."""
        self._answer = text
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "status": "completed", "id": self.id("msg"), "role": "assistant"}
        self._completed({"type": "AgentMessage", "id": message["id"], "content": [{"type": "Text", "text": text}]})
        self.item({**message, "content": content})

    def end(self) -> None:
        """The turn ended well."""
        usage = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5, "reasoning_output_tokens": 0}
        info = {"total_token_usage": {**usage, "total_tokens": 15}, "last_token_usage": {**usage, "total_tokens": 15}}
        self.event("token_count", info={**info, "model_context_window": 258400}, rate_limits=None)
        fields = {"last_agent_message": self._answer, "completed_at": self._stamp(), "duration_ms": 10}
        self.event("task_complete", turn_id=self._turn, **fields)
        self._turn = ""

    def compacted(self, history: list[Item], message: str = "") -> None:
        """A compaction: all before it is replaced by `history`, with a note on each of its items."""
        notes = [
            {"history_sequence": n, "sampled_through_sequence": 0, "client_authored": False}
            for n, _ in enumerate(history)
        ]
        replaced = {"replacement_history": history, "replacement_history_metadata": notes}
        self.line("compacted", {"message": message, **replaced})

    def item(self, payload: Item, **more: Any) -> None:
        """Something that is replayed, as it is given; `more` is noted of it."""
        number = next(self._sequence)
        marks = {"history_sequence": number, "sampled_through_sequence": number - 1, "client_authored": False, **more}
        if payload["type"] not in ("additional_tools", "configuration_update"):
            payload = {**payload, "internal_chat_message_metadata_passthrough": {"turn_id": self._turn}}
        self._write({"type": "response_item", "payload": payload, "metadata": marks})

    def event(self, kind: str, **fields: Any) -> None:
        """Something for the user's eyes."""
        self.line("event_msg", {"type": kind, **fields})

    def line(self, kind: str, payload: Item) -> None:
        """Any line."""
        self._write({"type": kind, "payload": payload})

    def id(self, kind: str) -> str:
        """A new id with the prefix of its kind."""
        return f"{kind}_{uuid.uuid5(self._namespace, str(next(self._numbers))).hex}"

    def path(self, home: Path) -> Path:
        """Where the file of the thread belongs."""
        folder = home / "sessions" / f"{_BEGINNING:%Y/%m/%d}"
        return folder / f"rollout-{_BEGINNING:%Y-%m-%dT%H-%M-%S}-{self.thread}.jsonl"

    def write(self, home: Path) -> Path:
        """Write the file; the last turn is ended where it was not."""
        if self._turn:
            self.end()
        path = self.path(home)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in self.lines))
        return path

    def _meta(self) -> None:
        about: Item = {
            "session_id": self.thread,
            "id": self.thread,
            "timestamp": self._time(),
            "cwd": str(self.directory),
        }
        about |= {"originator": "codex_exec", "cli_version": "0.169.0", "source": "exec", "thread_source": "user"}
        words = {"text": _TOLD, "provenance": {"type": "model", "model": self.model}}
        window = {"window_id": self._time_id()}
        about |= {"model_provider": "fake", "base_instructions": words, "history_mode": "paginated"}
        self.line("session_meta", {**about, "context_window": window})

    def _context(self) -> Item:
        settings = {"model": self.model, "reasoning_effort": None, "developer_instructions": None}
        family = {"comp_hash": "3000", "multi_agent_version": "v2"} if self.model == SOL else {}
        return {
            "turn_id": self._turn,
            "cwd": str(self.directory),
            "approval_policy": "never",
            "permission_profile": {"type": "disabled"},
            "model": self.model,
            "collaboration_mode": {"mode": "default", "settings": settings},
            "summary": "none",
            "sandbox_policy": {"type": "danger-full-access"},
            **family,
        }

    def _completed(self, item: Item) -> None:
        now = self._stamp() * 1000
        ids = {"thread_id": self.thread, "turn_id": self._turn}
        self.event("item_completed", **ids, item=item, started_at_ms=now, completed_at_ms=now)

    def _write(self, line: Item) -> None:
        self._seconds += 1
        stamped = {"timestamp": self._time(), "ordinal": next(self._ordinals), **line}
        self.lines.append(json.dumps(stamped, separators=(",", ":"), ensure_ascii=False).encode())

    def _now(self) -> datetime:
        return _BEGINNING + timedelta(seconds=self._seconds)

    def _time(self) -> str:
        return f"{self._now():%Y-%m-%dT%H:%M:%S}.000Z"

    def _stamp(self) -> int:
        return int(self._now().timestamp())

    def _time_id(self) -> str:
        """An id that begins with its time, as the client makes them."""
        rest = uuid.uuid5(self._namespace, str(next(self._numbers))).hex
        since = f"{int(_BEGINNING.timestamp() * 1000):012x}"
        return f"{since[:8]}-{since[8:]}-7{rest[1:4]}-8{rest[5:8]}-{rest[8:20]}"
