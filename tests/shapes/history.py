"""A long conversation without a fault, of all that makes the index on the wire differ from the index in the store."""

from __future__ import annotations

from tests.support.build import SessionBuilder
from tests.support.parts import aborted, api_error, reasoning, text, tool


def long_history(session: SessionBuilder, rounds: int = 6) -> None:
    """Add 13 messages a round: plain, tools, thinking, failed, aborted, neighbouring users. The turn is closed."""
    for number in range(rounds):
        session.user(f"question {number}")
        session.assistant(f"answer {number}")
        session.user(f"run {number}")
        session.assistant(
            reasoning(f"I should run {number}"), text("running"), tool(), tool("read", {"filePath": "/a"})
        )
        session.assistant("it ran")
        session.failed(f"fails {number}", api_error("Overloaded"))
        session.user(f"and again {number}")
        session.assistant(text("I begin"), tool(status="error", output="Tool execution aborted"), error=aborted())
        session.user("stopped before a word")
        session.assistant(reasoning("only a thought", None), error=aborted())
        session.user(f"once more {number}")
        session.assistant(reasoning(f"a thought {number}"), text("closed"))
