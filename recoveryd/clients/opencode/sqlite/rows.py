"""Know OpenCode's tables: tell the generation of a database, and turn a row into bytes that restore it exactly."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recoveryd.clients.opencode import records
from recoveryd.core import Json, StoreError
from recoveryd.disk import Database, tree

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
_NUMBERS = frozenset({"time_created", "time_updated"})
_TYPES: Mapping[str, Any] = {**dict.fromkeys(_NUMBERS, int), "data": (str, bytes), "revert": (str, type(None))}
_SESSION = frozenset({"id", "parent_id", "directory", "title", "revert", "time_updated"})
_TABLES = """SELECT t.name, c.name, lower(c.type) FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c
    WHERE t.type = 'table' AND t.name IN ('message', 'part', 'session', 'event', 'session_v2')"""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Schema:
    """What OpenCode's database holds: its tables, their columns, its generation. `unknown` and `foreign` are sentences
    that end in a name: why it isn't read, or edited.
    """

    unknown: str = ""  # nothing of it can be understood
    foreign: str = ""  # OpenCode 2.x: what we know of is there, and nobody uses it any more
    events: bool = False  # every change is also written to a table of events


def schema(connection: sqlite3.Connection) -> Schema:
    """Tell which generation OpenCode's database is of; never guessed."""
    tables: dict[str, dict[str, str]] = {}
    for table, column, declared in connection.execute(_TABLES):
        tables.setdefault(table, {})[column] = declared
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]
    events = tables.get("event", {}).keys() >= {"id", "aggregate_id", "type"}
    return Schema(_unknown(tables, encoding), "session_v2" if "session_v2" in tables else "", events)


def _unknown(tables: Mapping[str, Mapping[str, str]], encoding: str) -> str:
    missing = [table for table in ("message", "part", "session") if table not in tables]
    if missing:
        return f"it has no table {missing[0]}"
    for table, columns in COLUMNS.items():
        expected = {column: "integer" if column in _NUMBERS else "text" for column in columns}
        if tables[table] != expected:
            return f"its table {table} has other columns than any version that recoveryd knows"
    if not tables["session"].keys() >= _SESSION:
        return "its table session has other columns than any version that recoveryd knows"
    return "" if encoding == "UTF-8" else f"its texts are in {encoding}"


_KEEPS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name IN ('session', 'session_v2')"


def keeps_sessions(path: Path) -> bool:
    """Whether an OpenCode of any version keeps its sessions in this database; in doubt it does."""
    return has_messages(path, ())


def has_messages(path: Path, messages: Sequence[str]) -> bool:
    """Whether an OpenCode keeps its sessions in this database, and all of these messages; in doubt it does."""

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
            self._known = now, schema(connection)
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


def row_key(table: str, identifier: str) -> str:
    """Make the key of a row of OpenCode's database, of its table and id."""
    return f"{table}/{identifier}"


def split_key(record: str) -> tuple[str, str]:
    """Cut the key of a row of OpenCode's database into table and id. StoreError for any other text."""
    table, _, identifier = record.partition("/")
    if table not in RECORDS or not tree.valid_id(identifier):
        raise StoreError(f"{record!r} is no record of this store.")
    return table, identifier


def row_by_column(table: str, values: tuple[Any, ...], path: Path) -> Row:
    """Make a row of OpenCode's database by column, of its values. StoreError for values that no row of OpenCode has."""
    found = dict(zip(RECORDS[table], values, strict=True))
    for column, value in found.items():
        if not isinstance(value, _TYPES.get(column, str)):
            raise StoreError(f"{path} has a row {found['id']!r} in {table} whose {column} is of an unexpected type.")
    return found


def fetch(connection: sqlite3.Connection, table: str, identifier: str, path: Path) -> Row | None:
    """Read one row of OpenCode's database as it is now; None when it is not there. `table` is a key of `RECORDS`."""
    query = f"SELECT {', '.join(RECORDS[table])} FROM {table} WHERE id = ?"  # noqa: S608
    found = connection.execute(query, (identifier,)).fetchone()
    return None if found is None else row_by_column(table, found, path)


def row_image(found: Row) -> bytes:
    """Write a row of OpenCode's database as one line of JSON with all of it, broken texts and BLOBs too: `row_of_image`
    gives the row again.
    """
    shown = dict(found)
    if isinstance(found.get("data"), bytes):
        shown |= {"data": found["data"].decode("utf-8", "surrogateescape"), "data_type": "blob"}
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogateescape")


def row_of_image(table: str, raw: bytes) -> Row:
    """Read a row of OpenCode's database from its image. StoreError when it stands for none."""
    try:
        shown = json.loads(raw.decode("utf-8", "surrogateescape"))
        blob = shown.pop("data_type", None) == "blob"
        if tuple(shown) != RECORDS[table]:
            raise ValueError("other columns")
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"The image of a row of {table} can't be read: {error}") from error
    found = row_by_column(table, tuple(shown.values()), Path("An image"))
    return {**found, "data": data_bytes(found["data"])} if blob else found


def data_bytes(data: object) -> bytes:
    """Return the bytes of a row's `data` as they are in OpenCode's database; any other value than a text or a BLOB has
    none.
    """
    if isinstance(data, str):
        return data.encode("utf-8", "surrogateescape")
    return data if isinstance(data, bytes) else b""


def data_of(table: str, found: Row, what: str) -> Json | None:
    """Return what a row of OpenCode's database says, in the shape that the JSON store has: with its ids. None when it
    is no JSON object.
    """
    raw = data_bytes(found["data"])
    said = records.parse_part(raw, what, null={}) if table == "part" else records.parse(raw, what)
    if said is None:
        return None
    ids = {name: found[column] for name, column in IDS[table].items()}
    return {**ids, **said, **ids}


def text_of(table: str, data: Json) -> str:
    """Write the column `data` of a row as OpenCode does: without what the columns say."""
    said = {name: value for name, value in data.items() if name not in IDS[table]}
    return records.dump(said, compact=True).decode()
