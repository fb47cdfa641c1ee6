"""Know OpenCode's tables: their columns, of which generation a database is, and whether it may be edited."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recoveryd.clients.opencode import records
from recoveryd.core import StoreError
from recoveryd.disk import Database

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "message": ("id", "session_id", "time_created", "time_updated", "data"),
    "part": ("id", "message_id", "session_id", "time_created", "time_updated", "data"),
}
# What the client takes from the columns, whatever stands in `data`.
IDS: Mapping[str, Mapping[str, str]] = {
    "message": {"id": "id", "sessionID": "session_id"},
    "part": {"id": "id", "sessionID": "session_id", "messageID": "message_id"},
}
# Of a session only what names its messages; such a row is changed, never made or removed.
RECORDS: Mapping[str, tuple[str, ...]] = {**COLUMNS, "session": ("id", "revert")}
NUMBERS = frozenset({"time_created", "time_updated"})
_SESSION = frozenset({"id", "parent_id", "directory", "title", "revert", "time_updated"})
_TABLES = """SELECT t.name, c.name, lower(c.type) FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c
    WHERE t.type = 'table' AND t.name IN ('message', 'part', 'session', 'event', 'session_v2')"""

_ORDER = """SELECT 1 FROM pragma_index_list('message') AS i JOIN pragma_index_info(i.name) AS c
    WHERE c.seqno = 1 AND c.name = 'time_created'"""


@dataclass(frozen=True, slots=True)
class Schema:
    """What OpenCode's database holds: its tables, their columns, its generation. `unknown` and `foreign` are sentences
    that end in a name: why it isn't read, or edited.
    """

    unknown: str = ""  # nothing of it can be understood
    foreign: str = ""  # OpenCode 2.x: what we know of is there, and nobody uses it any more
    events: bool = False  # every change is also written to a table of events
    ordered: bool = True  # an index has messages by time and id: so they come, also where they are sorted by time alone


def read_schema(connection: sqlite3.Connection) -> Schema:
    """Tell which generation OpenCode's database is of; never guessed."""
    tables: dict[str, dict[str, str]] = {}
    for table, column, declared in connection.execute(_TABLES):
        tables.setdefault(table, {})[column] = declared
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]
    events = tables.get("event", {}).keys() >= {"id", "aggregate_id", "type"}
    ordered = connection.execute(_ORDER).fetchone() is not None
    return Schema(_unknown(tables, encoding), "session_v2" if "session_v2" in tables else "", events, ordered)


def _unknown(tables: Mapping[str, Mapping[str, str]], encoding: str) -> str:
    missing = [table for table in ("message", "part", "session") if table not in tables]
    if missing:
        return f"it has no table {missing[0]}"
    for table, columns in COLUMNS.items():
        expected = {column: "integer" if column in NUMBERS else "text" for column in columns}
        if tables[table] != expected:
            return f"its table {table} has other columns than any version that recoveryd knows"
    if not tables["session"].keys() >= _SESSION:
        return "its table session has other columns than any version that recoveryd knows"
    return "" if encoding == "UTF-8" else f"its texts are in {encoding}"


_KEEPS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name IN ('session', 'session_v2')"


def keeps_sessions(path: Path) -> bool:
    """Whether the tables of a database are those in which an OpenCode of any version keeps its sessions; in doubt they
    are.
    """
    return has_messages(path, ())


def has_messages(path: Path, messages: Sequence[str]) -> bool:
    """Whether the tables of a database are OpenCode's and hold all of these messages; in doubt they do."""

    def work(db: sqlite3.Connection) -> bool:
        if db.execute(_KEEPS).fetchone() is None:
            return False
        return all(db.execute("SELECT 1 FROM message WHERE id = ?", (one,)).fetchone() for one in messages)

    try:
        return Database(path, user=records.TITLE).read(work)
    except StoreError:
        return True


class Tables:
    """The schema of one database of OpenCode, read again only when it changed: that costs more than what is asked most
    often.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: tuple[tuple[int, ...], Schema] = ((), Schema())

    def schema(self, connection: sqlite3.Connection) -> Schema:
        """Return the schema, read again only if the database changed."""
        file = self._database.check()
        now = file.st_dev, file.st_ino, connection.execute("PRAGMA schema_version").fetchone()[0]
        if self._known[0] != now:
            self._known = now, read_schema(connection)
        return self._known[1]

    def understood(self, connection: sqlite3.Connection) -> Schema:
        """Return the schema of a database that can be read. StoreError for any other."""
        found = self.schema(connection)
        if found.unknown:
            raise StoreError(*_refused(self._database.path, found.unknown))
        return found


def why_not_edited(found: Schema, path: Path) -> str | None:
    """Tell why a database of OpenCode with this schema is not edited; None when it may be."""
    if found.foreign:
        return f"{path} is of OpenCode 2, which keeps its sessions in other tables; recoveryd can't repair those yet."
    return " ".join(_refused(path, found.unknown)) if found.unknown else None


def _refused(path: Path, unknown: str) -> tuple[str, str]:
    return f"{path} holds no sessions that recoveryd knows: {unknown}.", "It is left alone."
