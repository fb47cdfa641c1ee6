"""Stuck sessions in a JSON tree, their failed messages written the way the client writes them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.daemon import Daemon
from tests.e2e.heals import Files, files
from tests.support.build import Planted, SessionBuilder
from tests.support.parts import Part, api_error, reasoning, text, tool
from tests.support.plant import dump, write_tree

MISSING = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message."
)
EMPTY = "messages.2.content.0.text: text content blocks must contain non-whitespace text"
HOUR_MS = 3_600_000


class Stuck:
    """A session with a tool call and a text behind it, which no provider takes; `fail` writes the refused turn.

    `content` stands there instead of the two; before it come so many `rounds` with thinking.
    """

    def __init__(
        self, storage: Path, content: Sequence[Part] | None = None, rounds: int = 0, *, age_ms: int = 3_600_000
    ) -> None:
        self.storage = storage
        self.builder = SessionBuilder(int(time.time() * 1000) - age_ms, title="stuck")
        for number in range(rounds):
            self.builder.user(f"question {number}")
            self.builder.assistant(reasoning(f"thought {number}"), text(f"answer {number}"))
        self.builder.user("go")
        self.builder.assistant(*([tool(), text("behind")] if content is None else content))
        write_tree(self.planted, storage)

    @property
    def planted(self) -> Planted:
        """The session as it was written so far."""
        return self.builder.planted()

    @property
    def id(self) -> str:
        """The session's id."""
        return self.planted.id

    @property
    def files(self) -> Files:
        """Every file of the session as it is now."""
        return files(self.storage, self.id)

    def fail(
        self, words: str = MISSING, *, asked: str = "continue", age_ms: int = 0, error: dict[str, Any] | None = None
    ) -> Path:
        """A prompt and its refusal, `age_ms` ago; returns the failed message's file."""
        user = self.builder.user(asked)
        failed = self.builder.assistant(error=error or api_error(words, 400))
        now = int(time.time() * 1000) - age_ms
        user["time"], failed["time"] = {"created": now - 20}, {"created": now - 10, "completed": now}
        self._write(user["id"])
        path = self.storage / "message" / self.id / f"{failed['id']}.json"
        write_as_the_client(path, dump(failed))
        return path

    def answer(self, words: str = "fine") -> None:
        """A prompt that the model answers, now."""
        now = int(time.time() * 1000)
        for message in (self.builder.user("again"), self.builder.assistant(words)):
            message["time"] = {"created": now, **({"completed": now + 5} if message["role"] == "assistant" else {})}
            self._write(message["id"])

    def _write(self, message_id: str) -> None:
        planted = self.planted
        message = next(m for m in planted.messages if m["id"] == message_id)
        for part in planted.parts[message_id]:
            path = self.storage / "part" / message_id / f"{part['id']}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_as_the_client(path, dump(part))
        write_as_the_client(self.storage / "message" / self.id / f"{message_id}.json", dump(message))


def write_as_the_client(path: Path, content: bytes, pause: float = 0.002) -> None:
    """Twice, and not atomically: made or cut to nothing, filled in pieces, closed; a reader may meet any of it."""
    for _ in range(2):
        with path.open("wb", buffering=0) as file:
            middle = len(content) // 2
            file.write(content[:middle])
            time.sleep(pause)
            file.write(content[middle:])


def stopped(daemon: Daemon, do: Callable[[], object]) -> None:
    """`do` it while the daemon stands still."""
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        do()
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


def names(storage: Path) -> set[str]:
    """Every name below a folder; it may change meanwhile."""
    return {str(Path(folder, name).relative_to(storage)) for folder, _, found in os.walk(storage) for name in found}


def tree(storage: Path) -> Files:
    """Every file below a folder that nobody writes to, names that begin with a dot too."""
    found = [path for path in storage.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(storage)): path.read_bytes() for path in found}


def outcomes(daemon: Daemon, session: str) -> list[str]:
    """How the recoveries of a session ended, newest first."""
    return [entry["outcome"] for entry in daemon.history(session)]


def wait_healed(daemon: Daemon, *sessions: Stuck, times: int = 1) -> None:
    """Wait until each of them was healed; raises AssertionError with what became of it instead."""
    found = daemon.wait_settled([session.id for session in sessions], times)
    for session in sessions:
        said = [(entry["outcome"], entry["detail"]) for entry in found.get(session.id, [])]
        assert [outcome for outcome, _ in said[:1]] == ["healed"], f"{said}\n{daemon.log[-2000:]}"
