"""Everything that a client keeps of its sessions, to be compared, and what a request says."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

from tests.e2e.client import Client
from tests.e2e.harness import Outcome

Snapshot = dict[str, Any]


def snapshot(client: Client) -> Snapshot:
    """Every file and folder of the tree with its mode, or every row of the database with its place in its table."""
    return rows(client.database) if client.database.exists() else files(client.storage)


def still(client: Client) -> Snapshot:
    """As `snapshot`, once the client has done with what it does behind an answer."""
    found, deadline = snapshot(client), time.monotonic() + 20
    while time.monotonic() < deadline:
        time.sleep(0.4)
        before, found = found, snapshot(client)
        if before == found:
            return found
    raise TimeoutError("the client goes on writing")


def changed(before: Snapshot, after: Snapshot) -> Snapshot:
    """What is not as it was, by file or by table; but of projects, where the client keeps when it opened one."""
    names = [name for name in before.keys() | after.keys() if name.partition("/")[0] != "project"]
    return {name: _unlike(before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _unlike(before: Any, after: Any) -> Any:
    if isinstance(before, list) and isinstance(after, list):
        return [row for row in before if row not in after], [row for row in after if row not in before]
    return before, after


def files(root: Path) -> Snapshot:
    """Every file and folder with its mode."""
    return {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


def rows(database: Path) -> Snapshot:
    """Every row of every table with its place in it."""
    with contextlib.closing(sqlite3.connect(database)) as db:
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
