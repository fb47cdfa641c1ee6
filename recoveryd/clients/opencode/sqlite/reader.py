"""Read the sessions of OpenCode's database. No query here goes through a whole table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from recoveryd.clients import javascript
from recoveryd.clients.opencode import records, session_status
from recoveryd.clients.opencode.ids import id_ranges
from recoveryd.clients.opencode.sqlite import rows
from recoveryd.clients.opencode.sqlite.schema import Schema, Tables
from recoveryd.clients.store import About, SessionStatus, Stamp
from recoveryd.core import Json, Message, NotFoundError, Part, Session, StoreError, model
from recoveryd.disk import Database, tree

T = TypeVar("T")

MESSAGES = """SELECT id, session_id, time_created, time_updated, data FROM message
    WHERE session_id = ? ORDER BY time_created, id"""
ROWS = "SELECT id, rowid FROM message WHERE session_id = ?"
# By their message, as the client does. CROSS: the planner may not turn it round and read all parts that there are.
PARTS = """SELECT p.id, p.message_id, p.session_id, p.time_created, p.time_updated, p.data
    FROM message AS m CROSS JOIN part AS p ON p.message_id = m.id WHERE m.session_id = ?"""
PARTS_OF = "SELECT data FROM part WHERE message_id = ? ORDER BY id"
# Without `data`: on 1.2 no index gives the order, and all that is selected would be sorted.
NEWEST = "SELECT id FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC"
# The test is made by SQLite, so that nothing sound is copied out of it.
UNREADABLE = """SELECT 1 FROM (SELECT id FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT ?)
    AS m CROSS JOIN part AS p ON p.message_id = m.id WHERE NOT json_valid(CAST(p.data AS TEXT)) LIMIT 1"""
TAIL = """SELECT 1 FROM part WHERE session_id = ? AND data LIKE '{"type":"compaction"%tail_start_id%' LIMIT 1"""
GREATEST = "SELECT ifnull(max(id), '') FROM message WHERE session_id = ?"
ABOUT = "SELECT title, directory, parent_id, revert, time_updated FROM session WHERE id = ?"
STAMPS = (
    "SELECT count(*), max(time_updated), total(time_updated) FROM message WHERE session_id = ?",
    "SELECT count(*), max(time_updated), total(time_updated) FROM part WHERE session_id = ?",
)
PAGE = 500
SINCE = "SELECT DISTINCT session_id FROM message WHERE id >= ? AND id < ? AND time_created >= ?"
SESSIONS = """SELECT id FROM session WHERE id > ?
    AND EXISTS (SELECT 1 FROM message WHERE session_id = session.id) ORDER BY id LIMIT ?"""


class RowReader:
    """Reads the sessions of a database for the store `store` of a `client`, up to the weight `max_session` each."""

    def __init__(self, store: str, client: str, database: Database, tables: Tables, max_session: int) -> None:
        self._store = store
        self._client = client
        self._database = database
        self._path = database.path
        self._tables = tables
        self._max_session = max_session

    def schema(self) -> Schema:
        """Return the schema. StoreError for one that is not understood."""
        return self._database.read(self._tables.understood)

    def session_ids(self) -> Iterator[str]:
        """List the ids of all sessions that have messages, a page at a time: nothing is open in between."""
        page = [""]
        while page:
            after = page[-1]
            page = self._read(lambda db, after=after: [str(i) for (i,) in db.execute(SESSIONS, (after, PAGE))])  # type: ignore[misc]
            yield from filter(tree.safe_name, page)

    def sessions_since(self, since_ms: int, now_ms: int) -> list[str]:
        """List the sessions of messages made since."""
        return self._read(lambda db: sorted(filter(tree.safe_name, sessions_since(db, since_ms, now_ms))))

    def images(self, keys: Sequence[str]) -> list[bytes | None]:
        """Read the images of these rows, from one state of the database; None for one that is not there."""
        named = [rows.split_key(key) for key in keys]

        def work(db: sqlite3.Connection) -> list[bytes | None]:
            found = (rows.fetch(db, table, identifier, self._path) for table, identifier in named)
            return [None if row is None else rows.row_image(row) for row in found]

        return self._read(work)

    def look(self, session_id: str) -> SessionStatus:
        """Tell whether the session is stuck now: reads messages from the newest back, until one settles it."""

        def work(db: sqlite3.Connection) -> SessionStatus:
            def parts(message_id: str) -> Iterator[Json | None]:
                for (data,) in db.execute(PARTS_OF, (message_id,)):
                    yield records.parse(rows.data_bytes(data), message_id)

            def revert() -> Json | None:
                about = db.execute(ABOUT, (session_id,)).fetchone()
                return self._revert(session_id, about[3]) if about else None

            found = (rows.fetch(db, "message", str(i), self._path) for (i,) in db.execute(NEWEST, (session_id,)))
            newest = (self._message(row) for row in found if row is not None)
            return session_status.look(self._store, session_id, newest, parts, revert, self._client)

        return self._read(work) if tree.safe_name(session_id) else SessionStatus()

    def about(self, session_id: str) -> About:
        """Read title, folder and parent of a session. An unknown session is an empty `About`."""
        if not tree.safe_name(session_id):
            return About()
        row = self._read(lambda db: db.execute(ABOUT, (session_id,)).fetchone())
        return About(_text(row[0]), _text(row[1]), _text(row[2]) or None) if row else About()

    def greatest_id(self, session_id: str) -> str:
        """Return the id of its messages that sorts last; "" when there is none."""
        if not tree.safe_name(session_id):
            return ""
        return self._read(lambda db: str(db.execute(GREATEST, (session_id,)).fetchone()[0]))

    def names_tail(self, session_id: str) -> bool:
        """Whether a compaction of it may say what of the history stays."""
        return self._read(lambda db: db.execute(TAIL, (session_id,)).fetchone() is not None)

    def unreadable(self, session_id: str, *, whole: bool) -> bool:
        """Whether a part of its newest messages, or of the `whole` session, is no JSON."""
        if not tree.safe_name(session_id):
            return False
        many = -1 if whole else model.PAGE
        return self._read(lambda db: db.execute(UNREADABLE, (session_id, many)).fetchone() is not None)

    def load(self, session_id: str) -> Session:
        """Load the whole session, from one state of the database. StoreError for a message that is no JSON object."""

        def work(db: sqlite3.Connection) -> Session:
            about = db.execute(ABOUT, (session_id,)).fetchone()
            messages = list(self._limited("message", db.execute(MESSAGES, (session_id,)), session_id))
            if about is None and not messages:
                raise self._missing(session_id)
            size = sum(javascript.weight_in_memory(rows.data_bytes(row["data"])) for row in messages)
            parts: dict[str, list[Part]] = {}
            for row in self._limited("part", db.execute(PARTS, (session_id,)), session_id, size):
                parts.setdefault(row["message_id"], []).append(self._part(row))
            places = {} if self._tables.schema(db).ordered else dict(db.execute(ROWS, (session_id,)).fetchall())
            title, directory, parent, revert, _ = about or ("", "", None, None, 0)
            return Session(
                store=self._store,
                id=session_id,
                messages=tuple(
                    self._message(row, parts.get(row["id"], ()), places.get(row["id"], 0)) for row in messages
                ),
                title=_text(title),
                directory=_text(directory),
                parent=_text(parent) or None,
                revert=self._revert(session_id, revert),
            )

        if not tree.safe_name(session_id):
            raise self._missing(session_id)
        return self._read(work)

    def stamp(self, session_id: str) -> Stamp:
        """Return a stamp that changes with every write: the client sets `time_updated` with each."""

        def work(db: sqlite3.Connection) -> Stamp:
            about = db.execute(ABOUT, (session_id,)).fetchone()
            facts = [db.execute(query, (session_id,)).fetchone() for query in STAMPS]
            if about is None and not facts[0][0]:
                raise self._missing(session_id)
            times = [*(newest for _, newest, _ in facts), about[-1] if about else 0]
            newest = max(time for time in (*times, 0) if isinstance(time, int))
            return Stamp(newest * 1_000_000, (*facts, about))

        if not tree.safe_name(session_id):
            raise self._missing(session_id)
        return self._read(work)

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def checked(db: sqlite3.Connection) -> T:
            self._tables.understood(db)
            return work(db)

        return self._database.read(checked)

    def _limited(
        self, table: str, found: Iterable[tuple[Any, ...]], session_id: str, size: int = 0
    ) -> Iterator[rows.Row]:
        for values in found:
            row = rows.row_by_column(table, values, self._path)
            size += javascript.weight_in_memory(rows.data_bytes(row["data"]))
            if size > self._max_session:
                limit = self._max_session
                raise StoreError(
                    f"The session {session_id} of {self._path} is too large: it may take {limit:,} bytes of memory."
                )
            yield row

    def _message(self, row: rows.Row, parts: Iterable[Part] = (), place: int = 0) -> Message:
        data = rows.data_of("message", row, self._named("message", row))
        if data is None:
            raise StoreError(f"{self._named('message', row)} is no JSON object.", "Restore the row, or delete it.")
        stored = sorted(parts, key=lambda part: part.id)
        return Message(row["id"], data, tuple(stored), rows.row_image(row), row["time_created"], place)

    def _part(self, row: rows.Row) -> Part:
        data = rows.data_of("part", row, self._named("part", row))
        return Part(row["id"], row["message_id"], data, rows.row_image(row))

    def _named(self, table: str, row: rows.Row) -> str:
        return f"{rows.row_key(table, row['id'])} of {self._path}"

    def _revert(self, session_id: str, stored: object) -> Json | None:
        """Read the staged revert: it names the messages that the client is about to delete. StoreError when it can't be
        read.
        """
        if stored is None:
            return None
        raw = rows.data_bytes(stored)
        if raw.strip() == b"null":
            return None
        data = records.parse(raw, f"revert of session {session_id} of {self._path}")
        if data is None:
            raise StoreError(f"The revert of session {session_id} of {self._path} is no JSON object.")
        return data

    def _missing(self, session_id: str) -> NotFoundError:
        return NotFoundError(f"There is no session {session_id!r} in {self._path}.")


def sessions_since(db: sqlite3.Connection, since_ms: int, now_ms: int) -> set[str]:
    """Return the sessions in OpenCode's database with messages made since."""
    found = (row for span in id_ranges(since_ms, now_ms) for row in db.execute(SINCE, (*span, since_ms)))
    return {str(session) for (session,) in found}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
