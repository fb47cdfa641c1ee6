"""Make, open, read and write the file of the ledger, and tell SQLite's errors in words."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from recoveryd.core import BusyError, Entry, Kind, LedgerError, Outcome, RecoverydError, failpoint
from recoveryd.disk import NOT_MOUNTED, check_owner, connect, dangling_link, error_code, private_files
from recoveryd.ledger.schema import SCHEMA_VERSION, bring_forward, create_tables, remove_copies, unusable

__all__ = ["KINDS", "SCHEMA_VERSION", "LedgerError", "LedgerFile", "column_text", "column_value"]

_APPLICATION_ID = 0x72636F76  # "rcov": tells our file from another program's
_BUSY_SECONDS = 5.0
_ENTRIES = """SELECT id, time, store, session, message, title, kind, outcome, edits, detail, actions, {}, {}, {},
    rules_version = 0 FROM recovery """
# What was not read back counts for as long as that can be done: it needs the images.
_CONFIRMED = """confirmed IS NOT NULL OR outcome != 'healed'
    OR NOT EXISTS (SELECT 1 FROM image WHERE image.seq = recovery.seq)"""
KINDS = {kind.value: kind for kind in Kind}
_PERMISSIONS = (
    "Check the permissions of the file and its folder, and that its disk is not read-only. "
    "Nothing is repaired meanwhile."
)
HINTS = {
    sqlite3.SQLITE_FULL: "Make room on its disk. Nothing is repaired meanwhile.",
    sqlite3.SQLITE_READONLY: _PERMISSIONS,
    sqlite3.SQLITE_CANTOPEN: _PERMISSIONS,
}
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class LedgerFile:
    """The open file: 0600, its folder 0700 if it is new. Made on first use.

    `db` is a connection to it that somebody else opened, for reading alone. Where another file came into the place of
    the one that is open, or none is there any more, that place is opened anew: what is kept in a file that was removed
    is lost. `replaced` is called then. Every method raises `LedgerError` and `BusyError`.
    """

    def __init__(self, path: Path, db: sqlite3.Connection | None = None) -> None:
        self.path = path
        self.replaced: Callable[[], object] = lambda: None
        self.db = db or _opened(path)
        self._ours = db is None
        self._identity = _identity(path) if self._ours else None
        self._columns: set[tuple[str, str]] = set()

    @classmethod
    def empty(cls, path: Path) -> Self:
        """Make an empty ledger in memory, for commands that only read where there is no ledger at `path`."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        create_tables(db, _APPLICATION_ID)
        return cls(path, db)

    @classmethod
    def unchanging(cls, path: Path) -> Self:
        """Open the ledger on a disk that takes no writes, for commands that only read: no file is made beside it."""
        with _in_words(path):
            wal = path.with_name(f"{path.name}-wal")
            how = "mode=ro" if wal.exists() and wal.stat().st_size else "immutable=1"
            db = connect(path, how, _BUSY_SECONDS, one_thread=False)
            try:
                check_file(db, path)
            except BaseException:
                db.close()
                raise
        return cls(path, db)

    def close(self) -> None:
        """Close the connection, if one is open."""
        self.db.close()

    def size(self) -> int:
        """Tell how many bytes the file has on the disk."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction: all of it is on the disk when the block ends, or none of it."""
        with _in_words(self.path):
            check_owner(self.path.parent)
            self._follow()
            failpoint.reach("ledger begin")
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
                failpoint.reach("ledger commit")
                self.db.execute("COMMIT")
                failpoint.reach("ledger committed")
            except BaseException:
                self.db.rollback()
                raise

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query, or what a PRAGMA says."""
        with _in_words(self.path):
            self._follow()
            return self.db.execute(query, [column_value(v) for v in values]).fetchall()

    def entries(self, where: str, *values: Any) -> list[Entry]:
        """Return the recoveries that the end of a query (`WHERE …`) selects."""
        later = ("confirmed", _CONFIRMED, "1"), ("sent", "sent", "0"), ("kinds", "kinds", "NULL")
        query = _ENTRIES.format(*(said if self.has(column) else else_ for column, said, else_ in later))
        return [_entry(row) for row in self.read(query + where, values)]

    def has(self, column: str, table: str = "recovery") -> bool:
        """Whether a table has this column. A ledger of an older recoveryd that is only read may lack it."""
        if (table, column) not in self._columns:  # one that is there stays there
            self._columns.update((table, name) for _, name, *_ in self.read(f"PRAGMA table_info({table})"))
        return (table, column) in self._columns

    def _follow(self) -> None:
        """Open the file that is at the path now, if that is another one than the open one."""
        if not self._ours:
            return
        if self._identity is not None:
            if self.db.in_transaction or _identity(self.path) == self._identity:
                return
            with suppress(sqlite3.Error):  # what only its WAL has goes with it, wherever it was moved to
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.db.close()
            self._identity = None  # until another one is open
            self.replaced()
        self.db = _opened(self.path)
        self._identity = _identity(self.path)


def is_there(path: Path) -> bool:
    """Whether there is a ledger at `path`. LedgerError where its folder can't be looked into: it is another user's,
    say.
    """
    with _in_words(path):
        found = _identity(path) != (0, 0)
    if not found:
        _check_links(path)
    return found


def _check_links(path: Path) -> None:
    """Raise LedgerError where the path leads to nothing by a symlink: there may be a ledger once its disk is there."""
    if link := dangling_link(path):
        raise LedgerError(f"The ledger {path} can't be reached: {link}.", NOT_MOUNTED)


def _opened(path: Path) -> sqlite3.Connection:
    _check_links(path)
    with _in_words(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _create(path)
        elif path.stat().st_mode & 0o077:
            path.chmod(0o600)
        return _open(path)


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn what SQLite and the system raise into `BusyError` or `LedgerError`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _explained(path, error) from error
    except OSError as error:
        raise LedgerError(f"The ledger {path} can't be opened: {error.strerror or error}.", _PERMISSIONS) from error


def column_value(value: Any) -> Any:
    """Make the value that a column of the ledger's file takes. A text with surrogates (a key or title that was no
    UTF-8) becomes a BLOB.
    """
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return str(value)


def column_text(value: str | bytes) -> str:
    """Return the text that `column_value` put into a column of the ledger."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def _entry(row: Sequence[Any]) -> Entry:
    """Make an `Entry` of a row of `_ENTRIES`."""
    name, at, store, session, message, title, kind, outcome, edits, detail, actions, *late, overwritten = row
    confirmed, sent, kinds = late
    texts = (column_text(store), column_text(session), column_text(message), column_text(title))
    known = KINDS.get(kind or "")  # a kind that only a newer recoveryd knows is none
    deeds = tuple(json.loads(actions))
    mended = tuple(KINDS[one] for one in (kinds or "").split() if one in KINDS)
    said = column_text(detail), deeds, bool(confirmed), sent or 0
    return Entry(name, at, *texts, known, Outcome(outcome), edits, *said, mended, bool(overwritten))


def _open(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] and not _version(db):
            create_tables(db, _APPLICATION_ID)
        elif check_file(db, path) < SCHEMA_VERSION:
            bring_forward(db, path)
        remove_copies(path)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA journal_size_limit = 4194304")
        db.execute("PRAGMA secure_delete = ON")  # what is forgotten is to be gone from the file
        db.execute("PRAGMA cache_size = -512")  # KiB: what is asked for lies at the end of the file
    except BaseException:
        db.close()
        raise
    return db


def check_file(db: sqlite3.Connection, path: Path) -> int:
    """Check, on opening it, that the ledger's file is ours and of a known schema, and return its version. Raises
    `LedgerError` for one that is not known, and for another program's database.
    """
    version = _version(db)
    if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise unusable(path, None)
    if not 0 < version <= SCHEMA_VERSION:
        raise unusable(path, version)
    return version


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _create(path: Path) -> None:
    """Make the file aside, then put it in its place: nobody meets it without tables or with wider permissions.

    Where a ledger was removed without its WAL, SQLite would take that for the new one's. It is put in its place without
    one, and what closes it says nothing where the disk has no room for all that its WAL has.
    """
    with private_files.alone(path.parent):  # another process may be making it, and be at work with it then
        if path.exists():
            return
        _remove_wal(path)
        with suppress(FileExistsError), private_files.beside(path, new=True) as (_, aside):
            try:
                with _in_words(path), closing(_open(aside)) as db:  # a full disk has room again once these are gone
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                _remove_wal(aside)


def _remove_wal(path: Path) -> None:
    for left in ("-wal", "-shm"):
        path.with_name(path.name + left).unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from another one that is put in its place; (0, 0) where there is none. Raises
    OSError.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return 0, 0
    return found.st_dev, found.st_ino


def _explained(path: Path, error: sqlite3.Error) -> RecoverydError:
    code = error_code(error, path)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BusyError(f"The ledger {path} is in use by another process.", "Try again in a moment.")
    if code in _DAMAGED:
        return LedgerError(
            f"The ledger {path} is damaged ({error}).",
            "Stop recoveryd and move the file (with its -wal and -shm) to a safe place: it holds the originals of what "
            "was repaired, and `sqlite3 FILE .recover` may read them. A new ledger is made at the next start.",
        )
    says = "its disk is full, or your quota of it" if code == sqlite3.SQLITE_FULL else error
    return LedgerError(f"The ledger {path} can't be used: {says}.", HINTS.get(code, ""))
