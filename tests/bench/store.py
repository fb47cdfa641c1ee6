"""Stores to measure on: broken sessions, whose failure comes later, and many healthy ones of messages alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.build import Message, Planted, SessionBuilder, api_error, dump, reasoning, text, tool, write_tree

ERRORS = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {call}. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message.",
    "messages.1: The final block in an assistant message cannot be `thinking`.",
    "messages.1.content.0.text: text content blocks must contain non-whitespace text",
)


@dataclass(frozen=True, slots=True)
class Patient:
    """A session without its failure; `fail` writes that, as the client does. Returns when its file was closed."""

    id: str
    path: Path
    failed: Message

    def fail(self) -> float:
        self.path.write_bytes(dump({**self.failed, "time": {"created": int(time.time() * 1000)}}))
        return time.monotonic()


def plant_patients(storage: Path, count: int) -> list[Patient]:
    return [_patient(storage, number) for number in range(count)]


def broken_session(number: int, which: int) -> tuple[Planted, Message]:
    """A session that is refused from now on, and the failed message that will say so, which is not in it yet."""
    builder = SessionBuilder(int(time.time() * 1000) - 60_000, seed=number, title=f"session {number}")
    builder.user("please")
    call = f"toolu_{number:08d}"
    bodies = ([tool(call_id=call), text("done")], [reasoning("let me see")], [text(" \n")])
    builder.assistant(*bodies[which])
    failed = builder.failed(error=api_error(ERRORS[which].format(call=call), 400))
    planted = builder.planted()
    planted.messages.remove(failed)
    return planted, failed


def _patient(storage: Path, number: int) -> Patient:
    planted, failed = broken_session(number, number % len(ERRORS))
    write_tree(planted, storage)
    return Patient(planted.id, storage / "message" / planted.id / f"{failed['id']}.json", failed)


def plant_healthy(storage: Path, sessions: int, messages: int, first: int = 0) -> None:
    """`sessions` more than the `first` that are there: session and message files alone, a look reads nothing else."""
    start = int(time.time() * 1000) - 86_400_000
    for number in range(first, first + sessions):
        builder = SessionBuilder(start + number, seed=number, title=f"session {number}")
        for _ in range(messages // 2):
            builder.user("how are you?")
            builder.assistant("fine")
        planted = builder.planted()
        write_tree(Planted(planted.session, planted.messages, {}), storage)
