"""Rollouts of Codex that a test writes line by line, as 0.169.0 does: tests/e2e/codex/test_recorded.py compares."""

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


_CONTEXT: Json = {
    "disabled_plugin_ids": [],
    "cwd": "/p",
    "approval_policy": "never",
    "approvals_reviewer": "user",
    "permission_profile": {"type": "disabled"},
    "model": "gpt-5.2",
    "collaboration_mode": {"mode": "default", "settings": {"model": "gpt-5.2"}},
    "multi_agent_version": "v1",
    "realtime_active": False,
    "summary": "none",
    "sandbox_policy": {"type": "danger-full-access"},
}


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
        self._sequence = itertools.count(1)
        self.turn = ""
        about = {"account_scoped": True, "session_id": thread, "id": thread, "timestamp": self._stamp(), "cwd": "/p"}
        about |= {"runtime_workspace_roots": ["/p"], "originator": "codex_exec", "cli_version": "0.169.0"}
        about |= {"source": "exec", "thread_source": "user", "model_provider": "openai"}
        about |= {"base_instructions": {"text": "You are a coding agent."}, "history_mode": "paginated"}
        self.line("session_meta", {**about, "context_window": {"window_id": thread}, **(meta or {})})

    def line(self, kind: str, payload: Json, **more: Any) -> None:
        """Any line, half a second after the one before."""
        self.ms += 500
        line = {"timestamp": self._stamp(), "ordinal": next(self._ordinals), "type": kind, "payload": payload, **more}
        self.raw(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def _stamp(self) -> str:
        at = datetime.fromtimestamp(self.ms / 1000, UTC)
        return f"{at:%Y-%m-%dT%H:%M:%S}.{self.ms % 1000:03d}Z"

    def raw(self, line: bytes) -> None:
        """These bytes, as they are."""
        with self.path.open("ab") as file:
            file.write(line)

    def item(self, payload: Json) -> Json:
        """Something that is sent again."""
        number = next(self._sequence)
        note = {"history_sequence": number, "sampled_through_sequence": number - 1, "client_authored": False}
        about: Json = {"turn_id": self.turn}
        if payload.get("type") == "message":  # a word for each part of its content
            about["content_item_kinds"] = ["unknown" for _ in payload.get("content") or ()]
        self.line("response_item", {**payload, "internal_chat_message_metadata_passthrough": about}, metadata=note)
        return payload

    def event(self, kind: str, **fields: Any) -> None:
        self.line("event_msg", {"type": kind, **fields})

    def asks(self, text: str = "do it", *content: Json, trigger: str | None = None) -> str:
        """A turn begins with what its user wrote; the turn's id."""
        self.turn = self._turn_id()
        root = {"turn_id": self.turn, "root_turn_id": self.turn}
        asked = {**root, "turn_trigger": trigger, "parent_turn_id": None, "initiating_agent_path": None}
        begun = {"started_at": self.ms // 1000, "model_context_window": 258400, "collaboration_mode_kind": "default"}
        self.event("task_started", turn_attribution=asked, **root, **begun)
        self.line("turn_context", {**root, **_CONTEXT})
        self.item({**message("user", text, *content), "id": f"msg_{self.turn}"})
        self._shown("UserMessage", content=[{"type": "text", "text": text, "text_elements": []}])
        return self.turn

    def reviews(self) -> str:
        """Its user asks for a `/review`, which a thread of its own begins to make; the turn's id."""
        self.turn = own = self._turn_id()
        self._shown("EnteredReviewMode", target={"type": "uncommittedChanges"}, user_facing_hint="current changes")
        root, self.turn = {"root_turn_id": own}, self._turn_id()
        asked = {"turn_id": self.turn, "turn_trigger": None, "parent_turn_id": own, "initiating_agent_path": None}
        begun = {"started_at": self.ms // 1000, "model_context_window": 258400, "collaboration_mode_kind": "default"}
        self.event("task_started", turn_attribution={**asked, **root}, turn_id=self.turn, **root, **begun)
        self._shown("UserMessage", content=[{"type": "text", "text": "Review it.", "text_elements": []}])
        self.turn = own
        return own

    def is_reviewed(self, **fields: Any) -> None:
        """The review is over: `error` is what the reviewer was refused."""
        self.item({**message("user", "<user_action>\n  <action>review</action>"), "id": "msg_r"})
        self._shown("ExitedReviewMode", review_output=None)
        self.item({**message("assistant", "It is well."), "id": "msg_2"})
        self._ended(last_agent_message=None, **fields)

    def _turn_id(self) -> str:
        return f"01a201b9-0000-7000-8000-{next(self._turns):012d}"

    def _shown(self, kind: str, **fields: Any) -> None:
        """Something for the user's eyes."""
        times = {"started_at_ms": self.ms, "completed_at_ms": self.ms}
        item = {"type": kind, "id": "x", **fields}
        self.event("item_completed", thread_id=self.thread, turn_id=self.turn, item=item, **times)

    def thinks(self, sealed: str = "gAAAA", **fields: Any) -> None:
        summary = [{"type": "summary_text", "text": "hm"}]
        item = {"type": "reasoning", "id": "rs_1", "summary": summary, "content": None}
        self.item({**item, "encrypted_content": sealed, **fields})

    def calls(self, call_id: str = "call_1", output: Any = "ok", name: str = "exec_command") -> None:
        """A call and, unless that is None, its output."""
        self.item({"type": "function_call", "id": "fc_1", "name": name, "arguments": "{}", "call_id": call_id})
        if output is not None:
            self.item({"type": "function_call_output", "id": f"fco_{self.turn}", "call_id": call_id, "output": output})

    def answers(self, text: str = "done") -> None:
        """The turn ends with words of the model."""
        self.item({**message("assistant", text), "status": "completed", "id": "msg_1"})
        self._ended(last_agent_message=text, time_to_first_token_ms=94)

    def is_refused(self, body: str = NOT_VERIFIED, info: Any = "other") -> str:
        """The turn ends with a refusal; the turn's id."""
        error = {"message": body, "codex_error_info": info}
        self._ended(last_agent_message=None, error=error)
        return self.turn

    def _ended(self, **fields: Any) -> None:
        times = {"started_at": self.ms // 1000, "completed_at": self.ms // 1000, "duration_ms": 172}
        self.event("task_complete", root_turn_id=self.turn, turn_id=self.turn, **fields, **times)

    def compacted(self, history: list[Json]) -> None:
        """All before is replaced by `history`, with a note on each of its items."""
        note = {"sampled_through_sequence": 0, "client_authored": False}
        notes = [{"history_sequence": number, **note} for number in range(len(history))]
        windows = {"window_number": 1, "first_window_id": "a", "previous_window_id": "a", "window_id": "b"}
        beside = {"retained_context": {}, "compaction_response_id": "resp_1", "resume_metadata": {}}
        replaced = {"replacement_history": history, "replacement_history_metadata": notes}
        used: Json = {"latest_token_usage_record": {}}
        self.line("compacted", {"message": "", **replaced, **windows, **beside, **used})

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
