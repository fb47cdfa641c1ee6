"""Turn a row of OpenCode's database into bytes that restore it exactly, and into what it says."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recoveryd.clients.opencode import records
from recoveryd.clients.opencode.sqlite.schema import IDS, NUMBERS, RECORDS
from recoveryd.core import Json, StoreError, UnknownKeyError
from recoveryd.disk import tree

_TYPES: Mapping[str, Any] = {**dict.fromkeys(NUMBERS, int), "data": (str, bytes), "revert": (str, type(None))}

Row = dict[str, Any]


def row_key(table: str, identifier: str) -> str:
    """Make the key of a row of OpenCode's database, of its table and id."""
    return f"{table}/{identifier}"


def split_key(record: str) -> tuple[str, str]:
    """Cut the key of a row of OpenCode's database into table and id. StoreError for any other text."""
    table, _, identifier = record.partition("/")
    if table not in RECORDS or not tree.safe_name(identifier):
        raise UnknownKeyError(f"{record!r} is no record of this store.")
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
