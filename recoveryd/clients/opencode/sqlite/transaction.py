"""Write a set of rows in one transaction: all of them, or none, and only if nobody changed them since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from recoveryd.clients.opencode.sqlite import rows
from recoveryd.clients.opencode.sqlite.schema import read_schema, why_not_edited
from recoveryd.core import Change, ConflictError, StoreError, failpoint
from recoveryd.disk import Database


@dataclass(frozen=True, slots=True)
class _Write:
    table: str
    id: str
    before: bytes | None
    after: rows.Row | None


def write_rows(database: Database, changes: Sequence[Change]) -> None:
    """Write rows of OpenCode's database in one transaction: every change in the order given, or none. ConflictError,
    BusyStoreError, StoreError: nothing was written then.
    """
    if len({change.key for change in changes}) != len(changes):
        raise StoreError("One record was to be changed twice at once.")
    writes = [_write(change) for change in changes]
    with database.writing() as connection:
        failpoint.reach("begin")
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute("PRAGMA defer_foreign_keys = ON")  # a message under another id goes before its parts
            refused = why_not_edited(read_schema(connection), database.path)
            if refused:
                raise StoreError(refused)
            for write in writes:
                _compare(connection, write, database)
            for write in _joined(writes):
                if write.after is not None or write.before is not None:
                    _carry_out(connection, write, database)
            failpoint.reach("commit")
            _commit(connection, database)
            failpoint.reach("committed")
        except BaseException:
            # What made SQLite fail may have ended the transaction as well; closing ends it in any case.
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def _write(change: Change) -> _Write:
    table, identifier = rows.split_key(change.key)
    after = None if change.after is None else rows.row_of_image(table, change.after)
    if after is not None and after["id"] != identifier:
        raise StoreError(f"The image of {change.key} is that of another record.")
    if table == "session" and (change.before is None or after is None):
        raise StoreError(f"{change.key} is a session, which is neither made nor removed here.")
    return _Write(table, identifier, change.before, after)


def _joined(writes: Sequence[_Write]) -> Iterator[_Write]:
    """Join a row that goes with the one of the same times that comes right behind it: it is that row under another id.

    Then it keeps its place in the table: the client (1.2) orders messages of the same millisecond by nothing else.
    """
    waiting: _Write | None = None
    for write in writes:
        if waiting is not None and _same_row(waiting, write):
            yield _Write(write.table, waiting.id, waiting.before, write.after)
            waiting = None
            continue
        if waiting is not None:
            yield waiting
        waiting = write
    if waiting is not None:
        yield waiting


def _same_row(gone: _Write, come: _Write) -> bool:
    if gone.table != come.table or gone.before is None or gone.after is not None or come.before is not None:
        return False
    before = rows.row_of_image(gone.table, gone.before)
    same = ("session_id", "time_created", "time_updated")
    return come.after is not None and all(before[column] == come.after[column] for column in same)


def _compare(connection: sqlite3.Connection, write: _Write, database: Database) -> None:
    failpoint.reach("compare")
    now = rows.fetch(connection, write.table, write.id, database.path)
    if (None if now is None else rows.row_image(now)) != write.before:
        raise _conflict(write, database, "is not what was read before: the client wrote since")


def _carry_out(connection: sqlite3.Connection, write: _Write, database: Database) -> None:
    failpoint.reach("write")
    if write.after is None:
        if write.table == "message" and _has_parts(connection, write.id):
            raise _conflict(write, database, "has parts that are not ours: the client wrote since")
        connection.execute(f"DELETE FROM {write.table} WHERE id = ?", (write.id,))  # noqa: S608
        return
    columns = list(write.after)
    texts = {c for c, value in write.after.items() if c in ("data", "revert") and isinstance(value, str)}
    values = [rows.data_bytes(value) if column in texts else value for column, value in write.after.items()]
    places = ["CAST(? AS TEXT)" if column in texts else "?" for column in columns]
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


def _commit(connection: sqlite3.Connection, database: Database) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.IntegrityError as error:
        raise ConflictError(f"{database.path} can't be written ({error}): the client wrote since.") from error


def _has_parts(connection: sqlite3.Connection, message: str) -> bool:
    return connection.execute("SELECT 1 FROM part WHERE message_id = ? LIMIT 1", (message,)).fetchone() is not None


def _conflict(write: _Write, database: Database, why: str) -> ConflictError:
    return ConflictError(f"{rows.row_key(write.table, write.id)} in {database.path} {why}.")
