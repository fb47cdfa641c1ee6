"""The plans of the queries that a store of a database really runs, as SQLite tells them."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core.model import Edit, Session
from tests.bench.client import Client
from tests.bench.large import generate

_SIZE = 15_000_000  # some dozens of sessions: statistics of fewer would rightly make a scan of each search
_LARGE = ("message", "part", "event")  # what grows with every answer
_QUERY = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_HOUR_MS = 3_600_000


def plans(root: Path, version: str, *, analyzed: bool) -> list[str]:
    """Query and plan, a line each, of all that is asked from the first look to an undo. `analyzed`: after ANALYZE."""
    path = root.resolve() / "opencode.db"
    generate(path, version, _SIZE)
    with Client(path, version) as client:
        if analyzed:
            with closing(sqlite3.connect(path)) as db:
                db.execute("ANALYZE")
        with _traced() as queries:
            _use(OpencodeSqlite(path), client)
        with closing(sqlite3.connect(path)) as db:
            found = {(_bare(query), plan): None for query in queries for plan in _explain(db, query)}
    return [f"{query} -> {plan}" for query, plan in found]


def whole(line: str) -> bool:
    """Whether a line of `plans` goes through one of the large tables from end to end."""
    query, _, plan = line.rpartition(" -> ")
    aliases = re.findall(rf"\b({'|'.join(_LARGE)})(?: AS (\w+))?", query)
    names = {name for pair in aliases for name in pair if name}
    return any(name in names for name in re.findall(r"\bSCAN (?:TABLE )?(\w+)", plan))


def _use(store: OpencodeSqlite, client: Client) -> None:
    """All that the daemon and the commands ask of a store: `fresh` before and after a failure, then a repair."""
    since = int(time.time() * 1000) - 24 * _HOUR_MS
    [(planted, failed)] = client.plant(1)
    list(store.fresh({}, since))
    client.fail(planted.id, failed)
    assert planted.id in [session for session, _ in store.fresh({}, since)]
    assert store.look(planted.id).failure is not None
    assert store.live() is None
    store.stamp(planted.id)
    list(store.session_ids())
    session = store.load(planted.id)
    for edits in (_edits(session), [Edit(session.messages[1].id, None, None, "gone")]):
        changes = store.changes(store.load(planted.id), edits)
        store.apply(changes)
        assert [store.read(change.key) for change in changes] == [change.after for change in changes]


def _edits(session: Session) -> list[Edit]:
    """One of each sort: a part that is written over, one that is new, one that goes."""
    message = session.messages[1]
    first, last = message.parts[0], message.parts[-1]
    return [
        Edit(message.id, first.id, {**(first.data or {}), "x": 1}, "changed"),
        Edit(message.id, last.id + "0", {"type": "text", "text": "[]"}, "added"),
        Edit(message.id, last.id, None, "gone"),
    ]


@contextmanager
def _traced() -> Iterator[list[str]]:
    """Every statement of every connection that is made meanwhile."""
    queries: list[str] = []
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def traced(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **named)
        connection.set_trace_callback(queries.append)
        return connection

    with patch("recoveryd.disk.sqlite.sqlite3.connect", traced):
        yield queries


def _explain(db: sqlite3.Connection, query: str) -> Iterator[str]:
    if not _QUERY.match(query):
        return
    rows = db.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
    if rows:
        yield "; ".join(str(row[3]) for row in rows)


def _bare(query: str) -> str:
    """Without the values, which a plan does not hang on, on one line."""
    return " ".join(re.sub(r"x?'(?:[^']|'')*'|(?<=[ (])\d+\b", "?", query, flags=re.IGNORECASE).split())
