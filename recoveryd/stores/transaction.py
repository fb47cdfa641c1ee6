"""Writing a set of rows in one transaction: all of them, or none, and only if nobody changed them since."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from recoveryd import failpoint
from recoveryd.errors import ConflictError, StoreError
from recoveryd.model import Change
from recoveryd.stores import rows
from recoveryd.stores.database import Database


@dataclass(frozen=True, slots=True)
class _Write:
    table: str
    id: str
    before: bytes | None
    after: rows.Row | None


def apply(database: Database, changes: Sequence[Change]) -> None:
    """Write every change in the order given. ConflictError, BusyStoreError, StoreError: nothing was written then."""
    if len({change.key for change in changes}) != len(changes):
        raise StoreError("One record was to be changed twice at once.")
    writes = [_write(change) for change in changes]
    with database.writing() as connection:
        failpoint.reach("begin")
        connection.execute("BEGIN IMMEDIATE")
        try:
            refused = rows.reason(rows.schema(connection), database.path)
            if refused:
                raise StoreError(refused)
            for write in writes:
                _compare(connection, write, database)
            for write in writes:
                if write.after is not None or write.before is not None:
                    _carry_out(connection, write, database)
            failpoint.reach("commit")
            connection.execute("COMMIT")
            failpoint.reach("committed")
        except BaseException:
            # What made SQLite fail may have ended the transaction as well; closing ends it in any case.
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def _write(change: Change) -> _Write:
    table, identifier = rows.split(change.key)
    after = None if change.after is None else rows.parse_image(table, change.after)
    if after is not None and after["id"] != identifier:
        raise StoreError(f"The image of {change.key} is that of another record.")
    return _Write(table, identifier, change.before, after)


def _compare(connection: sqlite3.Connection, write: _Write, database: Database) -> None:
    failpoint.reach("compare")
    now = rows.fetch(connection, write.table, write.id, database.path)
    if (None if now is None else rows.image(now)) != write.before:
        raise _conflict(write, database, "is not what was read before: the client wrote since")


def _carry_out(connection: sqlite3.Connection, write: _Write, database: Database) -> None:
    failpoint.reach("write")
    if write.after is None:
        if write.table == "message" and _has_parts(connection, write.id):
            raise _conflict(write, database, "has parts that are not ours: the client wrote since")
        connection.execute(f"DELETE FROM {write.table} WHERE id = ?", (write.id,))  # noqa: S608
        return
    columns = list(write.after)
    data = write.after["data"]
    blob = isinstance(data, bytes)
    values = [rows.content(value) if column == "data" else value for column, value in write.after.items()]
    places = ["?" if column != "data" or blob else "CAST(? AS TEXT)" for column in columns]
    if write.before is None:
        statement = f"INSERT INTO {write.table} ({', '.join(columns)}) VALUES ({', '.join(places)})"  # noqa: S608
    else:
        assigned = ", ".join(f"{column} = {place}" for column, place in zip(columns, places, strict=True))
        statement = f"UPDATE {write.table} SET {assigned} WHERE id = ?"  # noqa: S608
        values.append(write.id)
    try:
        connection.execute(statement, values)
    except sqlite3.IntegrityError as error:
        raise _conflict(write, database, f"can't be written ({error}): the client wrote since") from error


def _has_parts(connection: sqlite3.Connection, message: str) -> bool:
    return connection.execute("SELECT 1 FROM part WHERE message_id = ? LIMIT 1", (message,)).fetchone() is not None


def _conflict(write: _Write, database: Database, why: str) -> ConflictError:
    return ConflictError(f"{rows.key(write.table, write.id)} in {database.path} {why}.")
