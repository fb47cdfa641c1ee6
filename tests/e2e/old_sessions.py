"""Sessions from before ids started again, and everything that a client keeps of its sessions, to be compared."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import Any

from tests.build import SessionBuilder, compaction, reasoning, text, tool
from tests.e2e.harness import Harness, Outcome
from tests.planted import Planted

STARTED_AGAIN = 1_786_706_395_136  # 2026-08-14T11:19:55.136Z
Snapshot = dict[str, Any]


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


def snapshot(harness: Harness) -> Snapshot:
    """Every file and folder of the tree with its mode, or every row of the database with its place in its table."""
    if not harness.client.database.exists():
        root = harness.client.storage
        return {
            str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in sorted(root.rglob("*"))
        }
    with contextlib.closing(sqlite3.connect(harness.client.database)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {table: db.execute(f"SELECT rowid, * FROM '{table}' ORDER BY rowid").fetchall() for table in tables}


def said(outcome: Outcome) -> list[str]:
    """All texts, thoughts and outputs of the first request of a prompt, in order."""
    found: list[str] = []
    for message in (outcome.requests[0].body or {})["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"text": content}]:
            words = block.get("text") or block.get("thinking") or block.get("content") or ""
            found.append(words if isinstance(words, str) else str(words[0].get("text")))
    return [words for words in found if words]
