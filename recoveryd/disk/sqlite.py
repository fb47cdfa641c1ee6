"""Open another program's SQLite database: read it without leaving files, write with patience, tell errors in words."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from recoveryd.core import BusyStoreError, DiskError, StoreError
from recoveryd.disk import tree
from recoveryd.disk.places import is_full

BUSY_S = 2.0  # how long another program's lock is waited for
_ATTEMPTS = 4
_STEPS = 10_000  # of SQLite's machine, between two looks at the clock
# The coarsest clock that a file system keeps is one of two seconds; and what was written to the log may take longer to
# become visible, without another write: its writer was held up, or waits for the disk.
_VISIBLE_NS = 150_000_000_000
_WAL = b"\x02\x02"  # bytes 18 and 19 of the header: how the file is written and read
_PERMISSION = "Check the owner and the mode of the file and of its folder, and that its disk is not read-only."
_SPACE = "Free some space; it is tried again then."
_SENTENCES = {
    sqlite3.SQLITE_CORRUPT: (
        "is damaged",
        "Quit {user} and keep a copy of it; `sqlite3 FILE .recover` saves what can be read.",
    ),
    sqlite3.SQLITE_NOTADB: ("is no SQLite database", "It is left alone."),
    sqlite3.SQLITE_READONLY: ("can't be written to", _PERMISSION),
    sqlite3.SQLITE_CANTOPEN: ("can't be opened", _PERMISSION),
    sqlite3.SQLITE_PERM: ("can't be opened", _PERMISSION),
    sqlite3.SQLITE_FULL: ("can't be used: the disk is full, or your quota of it", _SPACE),
    sqlite3.SQLITE_IOERR: ("can't be used: the disk reports an error", "Check the disk before anything else."),
}
_LASTING = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})

# Closing any descriptor of a file drops all the locks that this process has on it, so only one thread at a time has a
# database open, by whatever means.
_GATE = threading.RLock()

Files = tuple[tuple[int, ...], ...]
T = TypeVar("T")


def in_time(db: sqlite3.Connection, deadline: float, work: Callable[[], T]) -> T | None:
    """Run `work` on a SQLite database until `deadline` (`time.monotonic()`). Returns None when it was cut off."""
    db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    try:
        return work()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT:
            return None
        raise


def connect(path: Path, how: str, busy_s: float, *, one_thread: bool = True) -> sqlite3.Connection:
    """Open a SQLite database that is there: "mode=ro", "mode=rw", or "immutable=1", which makes no file beside one that
    nobody has open.
    """
    uri = f"file:{quote(os.fsencode(path))}?{how}"
    return sqlite3.connect(uri, uri=True, timeout=busy_s, isolation_level=None, check_same_thread=one_thread)


class Database:
    """A SQLite database of another program. Nothing of it stays open between two calls, and no symlink is followed."""

    def __init__(
        self,
        path: Path,
        *,
        max_row: int = tree.MAX_FILE,
        busy_s: float = BUSY_S,
        user: str = "the program that uses it",
    ) -> None:
        self.path = path
        self._user = user  # as sentences name it
        self._max_row = max_row
        self._busy_s = busy_s
        self._wal = path.with_name(path.name + "-wal")

    def check(self) -> os.stat_result:
        """Ask the kernel about the file. Raises StoreError when it is not there, or no regular file."""
        try:
            found = self.path.lstat()
        except FileNotFoundError as error:
            raise StoreError(f"{self.path} is not there.") from error
        except OSError as error:
            raise tree.error_of(error, f"look at {self.path}") from error
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{self.path} is {tree.file_kind(found.st_mode)}, where a database should be.")
        return found

    def files(self) -> Files:
        """Tell device, inode, size and time of the database and of its WAL: while they stay the same, nobody wrote."""
        try:
            wal = _facts(self._wal.stat())
        except FileNotFoundError:
            wal = ()
        except OSError as error:
            raise tree.error_of(error, f"look at {self._wal}") from error
        return _facts(self.check()), wal

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on one consistent state of the database. It may be called again when the file changed.

        A database in WAL mode that nobody has open is read as a file that can't change: to join it in the usual way
        would leave `-wal` and `-shm` behind. If another program opened it meanwhile, it is read once more.
        """
        with _GATE, in_words(self.path, "read", self._user, self._max_row):
            for _ in range(_ATTEMPTS):
                before = self.files()
                if before[1] or not self._uses_wal():
                    break
                try:
                    result = self._run("immutable=1", work)
                except sqlite3.Error:
                    if self.files() == before:
                        raise
                else:
                    if self.files() == before:
                        return result
            return self._run("mode=ro", work)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a connection that may write, with no transaction begun. Raises BusyStoreError, StoreError."""
        with _GATE, in_words(self.path, "write to", self._user):
            self.check()
            with closing(self._connect("mode=rw")) as connection:
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                yield connection

    def _run(self, how: str, work: Callable[[sqlite3.Connection], T]) -> T:
        with closing(self._connect(how)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._max_row)
            connection.execute("BEGIN")
            return work(connection)

    def _connect(self, how: str) -> sqlite3.Connection:
        connection = connect(self.path, how, self._busy_s)
        connection.text_factory = _text
        return connection

    def _uses_wal(self) -> bool:
        """Whether the file is in WAL mode. Ask only while there is no WAL: else this drops a connection's locks (see
        `_GATE`).
        """
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise tree.error_of(error, f"read {self.path}") from error
        try:
            return os.pread(fd, 2, 18) == _WAL
        except OSError as error:
            raise tree.error_of(error, f"read {self.path}") from error
        finally:
            os.close(fd)


def settled(files: Files) -> bool:
    """Whether a write from now on would show in the times of a database's `files`: file systems keep time in steps."""
    young = time.time_ns() - _VISIBLE_NS
    return all(not facts or facts[3] < young for facts in files)


@contextmanager
def in_words(path: Path, doing: str, user: str, max_row: int = tree.MAX_FILE) -> Iterator[None]:
    """Turn SQLite's errors into StoreError or BusyStoreError, in a sentence about `path`."""
    try:
        yield
    except sqlite3.Error as error:
        code = error_code(error, path)
        if code in _BUSY:
            raise BusyStoreError(f"{path} is locked by another program.", "Try again in a moment.") from error
        if isinstance(error, sqlite3.DataError) or code == sqlite3.SQLITE_TOOBIG:
            raise StoreError(f"A row of {path} is too large: at most {max_row:,} bytes are read.") from error
        reason, hint = _SENTENCES.get(code, (f"can't be used: SQLite says {str(error)!r}", ""))
        kind = StoreError if code in _LASTING or code not in _SENTENCES else DiskError
        raise kind(f"Can't {doing} {path}: it {reason}.", hint.format(user=user)) from error


def error_code(error: BaseException | None, path: Path) -> int:
    """Tell SQLite's primary code of an error about a database; 0 where it has none.

    Where there is no room for what SQLite maps beside it, or in a quota, it calls that an error of the disk.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return sqlite3.SQLITE_FULL if code == sqlite3.SQLITE_IOERR and is_full(path.parent, by_write=True) else code


def _facts(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _text(raw: bytes) -> str:
    """Decode a text so that broken UTF-8 survives the way to a `str` and back."""
    return raw.decode("utf-8", "surrogateescape")
