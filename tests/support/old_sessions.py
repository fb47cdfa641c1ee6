"""Sessions from before ids started again."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.build import SessionBuilder, compaction, reasoning, text, tool
from tests.support.planted import Planted

STARTED_AGAIN = 1_786_706_395_136  # 2026-08-14T11:19:55.136Z


def _builder(title: str, before_ms: int = 86_400_000) -> SessionBuilder:
    return SessionBuilder(STARTED_AGAIN - before_ms, title=title)


def _turns(session: SessionBuilder, count: int) -> None:
    for number in range(count):
        session.user(f"question {number}")
        session.assistant(reasoning(f"thought {number}"), tool(output=f"output {number}"))
        session.assistant(f"answer {number}")


def plain(title: str = "plain", turns: int = 2) -> Planted:
    session = _builder(title)
    _turns(session, turns)
    return session.planted()


def long() -> Planted:
    session = _builder("500 messages", 86_400_000 * 2)
    for number in range(250):
        session.user(f"question {number}")
        session.assistant(f"answer {number}", bare=True)
    return session.planted()


def compacted() -> Planted:
    session = _builder("compaction")
    _turns(session, 2)
    session.user(compaction())
    session.assistant("a summary of it all", summary=True)
    session.user("go on")
    session.assistant("gone on")
    return session.planted()


def reverted(title: str = "revert staged") -> Planted:
    """The last question and all behind it are taken back, not yet for good."""
    session = _builder(title)
    _turns(session, 3)
    questions = [message for message in session.messages if message["role"] == "user"]
    session.session["revert"] = {"messageID": questions[-1]["id"]}
    return session.planted()


def across() -> Planted:
    """An answer that was written while ids started again: its last parts have ids that sort first."""
    session = _builder("across", 12_000)
    _turns(session, 2)
    session.user("the last question")
    session._ms = STARTED_AGAIN - 35  # the time of the next parts is what this is about
    session.assistant(reasoning("before"), text("before it"), text("behind it"))
    planted = session.planted()
    parts = [part["id"] for part in planted.parts[planted.messages[-1]["id"]]]
    assert parts != sorted(parts)
    return planted


MADE: tuple[Callable[[], Planted], ...] = (plain, long, compacted, reverted, across)


def prompted(now_ms: int, title: str = "prompted") -> Planted:
    """A small one with a prompt of now that is not answered, and a staged revert to an old message."""
    session = _builder(title)
    session.user("question")
    session.assistant(text("answer"), bare=True)
    session.session["revert"] = {"messageID": session.messages[0]["id"]}
    session._ms = now_ms
    session.user("the prompt")
    return session.planted()
