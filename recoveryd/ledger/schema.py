"""The tables of the ledger, and the steps that bring an older ledger to today's form."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from recoveryd.core import LedgerError
from recoveryd.disk import private_files

_FIRST = (
    """CREATE TABLE recovery (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, time REAL NOT NULL, store TEXT NOT NULL,
        session TEXT NOT NULL, message TEXT NOT NULL, title TEXT NOT NULL, kind TEXT, outcome TEXT NOT NULL,
        edits INTEGER NOT NULL, detail TEXT NOT NULL, actions TEXT NOT NULL,
        session_state TEXT NOT NULL, rules_version INTEGER NOT NULL, sole INTEGER)""",
    "CREATE INDEX recovery_session ON recovery (store, session, seq)",
    """CREATE TABLE image (
        seq INTEGER NOT NULL REFERENCES recovery (seq), position INTEGER NOT NULL, key TEXT NOT NULL,
        before BLOB, after BLOB, mode INTEGER, PRIMARY KEY (seq, position))""",
    """CREATE TABLE handled (
        store TEXT NOT NULL, session TEXT NOT NULL, message TEXT NOT NULL, outcome TEXT NOT NULL,
        session_state TEXT NOT NULL, rules_version INTEGER NOT NULL,
        PRIMARY KEY (store, session, message)) WITHOUT ROWID""",
    """CREATE TABLE seen (
        store TEXT NOT NULL, session TEXT NOT NULL, stamp TEXT NOT NULL, PRIMARY KEY (store, session)) WITHOUT ROWID""",
)
# Schema n is the first one and steps 2 to n: a new ledger is made in the way in which an old one becomes new.
_STEPS = (
    _FIRST,
    ("ALTER TABLE recovery ADD COLUMN seconds REAL",),  # from the start of the repair to the disk; null: not recorded
    (
        """CREATE TABLE resume (
            recovery TEXT PRIMARY KEY, store TEXT NOT NULL, session TEXT NOT NULL, time REAL NOT NULL,
            thinking_off INTEGER NOT NULL) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE recovery ADD COLUMN answered INTEGER",  # when the session's last answer was made, by its client
        "ALTER TABLE recovery ADD COLUMN root TEXT",  # the session that its title is of: a subagent's has another's
        "ALTER TABLE recovery ADD COLUMN undone REAL",  # when
        # What stays of images that were taken out: enough to tell whether the store is still as they left it.
        """CREATE TABLE trace (
            seq INTEGER NOT NULL REFERENCES recovery (seq), position INTEGER NOT NULL, key TEXT NOT NULL,
            digest BLOB, PRIMARY KEY (seq, position)) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE recovery ADD COLUMN confirmed INTEGER",  # null: not yet read back after the client had its time
        "UPDATE recovery SET confirmed = 1",  # who wrote them kept that in memory alone
    ),
    # What tells a store that was moved from a copy of it, which may be there while the store's own disk is not.
    ("CREATE TABLE place (store TEXT PRIMARY KEY, identity TEXT NOT NULL) WITHOUT ROWID",),
    ("ALTER TABLE place ADD COLUMN client TEXT",),  # whose store it is; null: not recorded
    ("ALTER TABLE recovery ADD COLUMN sent INTEGER",),  # tokens that are sent since, of what was made shorter
    ("ALTER TABLE recovery ADD COLUMN kinds TEXT",),  # that it mended, its own among them; null: not recorded
)
SCHEMA_VERSION = len(_STEPS)


def create_tables(db: sqlite3.Connection, application_id: int) -> None:
    """Create the tables of the ledger, in an empty file."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    _steps(db, 0)
    db.execute(f"PRAGMA application_id = {application_id}")
    db.execute("COMMIT")


def bring_forward(db: sqlite3.Connection, path: Path) -> None:
    """Bring an older ledger to today's form, in one transaction; a copy of it stands beside it until that is done.

    Raises what SQLite and the system raise; then the ledger is as it was.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version < SCHEMA_VERSION:  # else another process was first
            _copy(path, _aside(path, version))
            _steps(db, version)
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


def remove_copies(path: Path) -> None:
    """Remove the copies that `bring_forward` left beside the ledger: they hold what a user may have had forgotten
    since.

    Also those, and other files of ours, that a crash left before they were complete.
    """
    for version in range(1, SCHEMA_VERSION):
        with suppress(FileNotFoundError):
            _aside(path, version).unlink()
    private_files.remove_left_over(path.parent)


def unusable(path: Path, version: int | None) -> LedgerError:
    """Make the error for a ledger that is not used: it is of another program (None), or of a schema that is not known
    here.
    """
    if version is None:
        hint = "Move it away; a new ledger is made at the next start."
        return LedgerError(f"{path} is an SQLite database of another program, not a ledger.", hint)
    known = f"schema {version}; this one knows {SCHEMA_VERSION}"
    return LedgerError(f"The ledger {path} was written by a newer recoveryd ({known}).", "Update recoveryd.")


def _steps(db: sqlite3.Connection, version: int) -> None:
    for statement in _statements(version):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _statements(version: int) -> Iterator[str]:
    for step in _STEPS[version:]:
        yield from step


def _aside(path: Path, version: int) -> Path:
    return path.with_name(f"{path.name}.schema-{version}")


def _copy(path: Path, aside: Path) -> None:
    """Copy the ledger by a connection of its own, which sees the state before the transaction; on the disk at the
    return.
    """
    with (
        private_files.beside(aside) as (_, made),
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(made)) as to,
    ):
        source.backup(to)
