"""Look into the ledger without leaving a trace: for commands that only tell."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from recoveryd.core import BusyError, LedgerError, StoreError
from recoveryd.disk import BUSY_S, Database, error_code, in_time
from recoveryd.ledger.file import HINTS, LedgerFile, check_file, is_there
from recoveryd.ledger.ledger import Ledger

MAX_ROW = 1 << 30
SMALL = 64_000_000  # bytes up to which a ledger is checked
_CHECK_S = 1.0
_KEEP = "It holds the originals of what was repaired: keep a copy before anything else."

T = TypeVar("T")


def peek(path: Path, work: Callable[[Ledger], T]) -> T | None:
    """Run `work` on the ledger as it is; None when there is none. Raises LedgerError, BusyError."""
    return _read(path, lambda db: work(Ledger(LedgerFile(path, db)))) if is_there(path) else None


def damage(path: Path) -> str:
    """Look, without a trace, for what SQLite finds wrong with the ledger; "" when nothing is, when it is large, or when
    it takes too long.
    """
    if path.stat().st_size > SMALL:
        return ""
    deadline = time.monotonic() + _CHECK_S
    return _read(path, lambda db: in_time(db, deadline, lambda: _integrity(db)) or "")


def _read(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    def checked(db: sqlite3.Connection) -> T:
        check_file(db, path)
        return work(db)

    try:
        return Database(path, max_row=MAX_ROW, busy_s=BUSY_S).read(checked)
    except StoreError as error:
        if error.exit_code == BusyError.exit_code:
            raise BusyError(f"The ledger {path} is in use by another process.", "Try again in a moment.") from error
        hint = HINTS.get(error_code(error.__cause__, path), _KEEP)
        raise LedgerError(f"The ledger can't be read. {error.message}", hint) from error


def _integrity(db: sqlite3.Connection) -> str:
    """Run `PRAGMA quick_check`; "" when it finds nothing wrong."""
    found = [str(line) for (line,) in db.execute("PRAGMA quick_check(3)")]
    return "" if found == ["ok"] else "; ".join(found)
