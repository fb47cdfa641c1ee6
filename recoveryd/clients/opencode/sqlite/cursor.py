"""Find the sessions of OpenCode's database that were written to since the last look, without reading any table
whole.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from recoveryd.clients.opencode import records
from recoveryd.clients.opencode.ids import id_ranges
from recoveryd.clients.opencode.sqlite import rows
from recoveryd.clients.opencode.sqlite.reader import UNREADABLE, sessions_since
from recoveryd.clients.opencode.sqlite.schema import Tables, why_not_edited
from recoveryd.core import PAGE, Message, StoreError
from recoveryd.disk import Database, Files, settled, tree

OVERLAP_MS = 600_000  # a message may become visible this long after its id was made
PARTS_S = 50.0  # between two looks at the parts of recent sessions: a sweep comes each minute
_STEP_MS = 50  # a row written this recently may be written again within the same tick of its clock

IN_RANGE = "SELECT id, time_updated FROM message WHERE id >= ? AND id < ? AND time_created >= ?"
BY_ID = "SELECT session_id, time_created, time_updated FROM message WHERE id = ?"
DATA = "SELECT data FROM message WHERE id = ?"
LAST_EVENT = "SELECT max(rowid) FROM event"
EVENT_AT = "SELECT id FROM event WHERE rowid = ?"
# By number alone: the planner would sooner go through a whole index that has the sessions.
EVENTS_SINCE = "SELECT aggregate_id, type FROM event NOT INDEXED WHERE rowid > ?"
_PART = "message.part."  # an answer that streams in: what becomes of it is written to its message


@dataclass(slots=True)
class _Place:
    """Where a look ended."""

    identity: tuple[int, int] = (0, 0)
    files: Files | None = None  # None: a write may have been too young for the clock to tell
    looked: int = 0  # ms; 0: never
    seen: dict[str, int] = field(default_factory=dict)  # the messages of the last minutes: when each was written
    open: dict[str, int] = field(default_factory=dict)  # those that the client has not finished, however old
    event: tuple[int, str] | None = None  # the rowid and the id of the last one


class Cursor:
    """Remembers in memory up to which row each table of OpenCode's database was read. Messages are found by ids, which
    tell their time; changes also by events.

    Events alone don't do: clients turn them off, users delete them, and their numbers are used again.
    """

    def __init__(self, database: Database, tables: Tables, clock: Callable[[], float]) -> None:
        self._database = database
        self._tables = tables
        self._clock = clock
        self._place = _Place()
        self._parts_read = time.monotonic()  # the first call names every session, and each is looked at whole

    def fresh(self, since_ms: int) -> list[str]:
        """List the sessions, each once. After an error the next call starts where this one did."""
        files = self._database.files()
        place = self._place
        if files == place.files:
            return []
        identity = files[0][0], files[0][1]
        if identity != place.identity:
            place = _Place()
        now = int(self._clock() * 1000)
        parts_due = time.monotonic() - self._parts_read >= PARTS_S
        found: dict[str, None] = {}

        def work(db: sqlite3.Connection) -> _Place:
            schema = self._tables.understood(db)
            foreign = why_not_edited(schema, self._database.path)
            if foreign:
                raise StoreError(foreign)
            found.clear()
            ended = _Place(identity, files if settled(files) and (parts_due or not place.looked) else None, now)
            found.update(dict.fromkeys(_messages(db, place, ended, since_ms)))
            if schema.events:
                found.update(dict.fromkeys(_events(db, place, ended)))
            if parts_due:
                found.update(dict.fromkeys(_broken(db, since_ms, now)))
            return ended

        self._place = self._database.read(work)
        if parts_due:
            self._parts_read = time.monotonic()
        return [session for session in found if tree.safe_name(session)]


def _messages(db: sqlite3.Connection, place: _Place, ended: _Place, since_ms: int) -> Iterator[str]:
    """List the sessions of messages made since, where they were written since, and of older ones that were not
    finished.
    """
    start = max(since_ms, min(place.looked, ended.looked) - OVERLAP_MS)  # the clock may have jumped back
    recent: dict[str, int] = {}
    for low, high in id_ranges(start, ended.looked):
        recent.update(db.execute(IN_RANGE, (low, high, start)))
    changed = {message for message, updated in recent.items() if place.seen.get(message) != updated}
    for message in changed | place.open.keys():
        row = db.execute(BY_ID, (message,)).fetchone()
        if row is None:
            continue
        session, created, updated = row
        same = place.open.get(message) == updated
        if message in changed or not same:
            yield str(session)
        if _at(created) >= since_ms and (same or _unfinished(db, message)):
            ended.open[message] = updated
    overlap = list(id_ranges(ended.looked - OVERLAP_MS, ended.looked))
    ended.seen = {
        message: updated
        for message, updated in recent.items()
        if ended.looked - _at(updated) > _STEP_MS and any(low <= message < high for low, high in overlap)
    }


def _broken(db: sqlite3.Connection, since_ms: int, now_ms: int) -> Iterator[str]:
    """List the sessions of messages made since in which a part is no JSON: that may come about without a message
    written.
    """
    for session in sessions_since(db, since_ms, now_ms):
        if db.execute(UNREADABLE, (session, PAGE)).fetchone() is not None:
            yield session


def _at(column: object) -> float:
    """Read a time of a row, in ms. A value that is no time counts as long ago, so that one odd row does not hide the
    others.
    """
    return column if isinstance(column, (int, float)) else 0


def _unfinished(db: sqlite3.Connection, message: str) -> bool:
    try:
        data = db.execute(DATA, (message,)).fetchone()[0]
        said = Message(message, records.parse(rows.data_bytes(data), message) or {})
    except (sqlite3.DataError, StoreError):  # too large, or nested too deeply: the look at its session will say so
        return False
    return said.role == "assistant" and not said.completed and said.error is None


def _events(db: sqlite3.Connection, place: _Place, ended: _Place) -> Iterator[str]:
    """List the sessions of the events since. A number that another event has by now says nothing about those before
    it.
    """
    last = db.execute(LAST_EVENT).fetchone()[0] or 0
    ended.event = last, _event(db, last)
    if place.event is not None:
        number, identifier = place.event
        if last >= number and _event(db, number) == identifier:
            for session, kind in db.execute(EVENTS_SINCE, (number,)):
                if not str(kind).startswith(_PART):
                    yield str(session)


def _event(db: sqlite3.Connection, number: int) -> str:
    row = db.execute(EVENT_AT, (number,)).fetchone()
    return "" if row is None else str(row[0])
