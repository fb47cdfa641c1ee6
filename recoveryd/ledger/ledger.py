"""Every recovery and its images, in one SQLite file: for `history`, for `undo`, and for a start after a crash.

One object is used from one thread at a time; several processes may hold the same file (the daemon, `undo`, `scan`). A
process with a `Ledger` never opens the file by other means: closing any descriptor of it drops SQLite's POSIX locks.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from recoveryd.core import (
    CUT_OFF,
    Change,
    Entry,
    Failure,
    Kind,
    LedgerError,
    NotFoundError,
    Outcome,
    PastRecovery,
    command_line,
    failpoint,
    is_session_id,
)
from recoveryd.ledger.file import SCHEMA_VERSION, LedgerFile, column_text, column_value
from recoveryd.ledger.images import digest

__all__ = ["SCHEMA_VERSION", "Handled", "Judged", "Ledger", "LedgerError", "Record", "new_id"]

_INSERT = """INSERT INTO recovery (id, time, store, session, message, title, kind, outcome, edits, detail, actions,
    session_state, rules_version, answered, root, sole, sent, kinds)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_CLIENT = """INSERT INTO place (store, identity, client) VALUES (?, '', ?)
    ON CONFLICT (store) DO UPDATE SET client = excluded.client"""
_REWRITE = """UPDATE recovery SET outcome = ?, edits = ?, actions = ?, detail = ?, sole = ?, sent = ?, kinds = ?
    WHERE id = ?"""
_SETTLE = """INSERT OR REPLACE INTO handled
    SELECT store, session, message, outcome, session_state, rules_version FROM recovery WHERE id = ?"""
# A wish to have it undone stays in every outcome but `healed`.
_FINISH = """UPDATE recovery SET outcome = ?1, detail = ?2, seconds = ifnull(seconds, ?3),
    undone = CASE WHEN ?1 != 'healed' THEN
        ifnull(undone, CASE WHEN ?1 IN ('undoing', 'undone') OR outcome = 'undoing' THEN ?4 END) END WHERE id = ?5"""
# Rules of version 0: `OVERWRITTEN`.
_TAKEN_BACK = """SELECT id, message, outcome, undone, kind FROM recovery WHERE session = ? AND rules_version > 0
    AND (answered >= ? OR message = ?) AND (undone IS NOT NULL OR outcome IN ('healed', 'undone', 'undoing'))
    ORDER BY store = ? DESC, seq DESC LIMIT 1"""
_REOPEN = """DELETE FROM handled
    WHERE (store, session, message) = (SELECT store, session, message FROM recovery WHERE id = ?)"""
_TRIES = """SELECT id, message, outcome, undone, kind FROM recovery
    WHERE store = ? AND session = ? AND (answered = ? OR message = ?) AND outcome != ? AND rules_version > 0
    AND (edits > 0 OR outcome = ? OR id IN (SELECT recovery FROM resume)) ORDER BY seq"""


@dataclass(frozen=True, slots=True)
class Handled:
    """What the ledger has of a failure that was handled before: what became of it, and what it was judged by then."""

    outcome: Outcome
    session_state: str
    rules_version: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What the ledger keeps of the state in which a recovery was decided.

    `answered`: `SessionStatus.last_answer`, which tells one stretch without an answer from the next; `root`: the
    session whose title the recovery is told under. `rules_version`: 0 of what is no repair (`OVERWRITTEN`).
    """

    session_state: str = ""
    rules_version: int = 1
    answered: int | None = None
    root: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A recovery as it is written down first. `id`: `new_id()`; `changes`: all records that are to be written.

    `sole`: whether their before-images hold content that exists nowhere else then, as the client says (`Content`).
    Such images are never pruned, nor are those of which that is not known (None).
    """

    id: str
    failure: Failure
    title: str
    kind: Kind | None
    detail: str = ""
    actions: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    sole: bool | None = None
    judged: Judged = Judged()
    client: str = ""  # whose store it is
    sent: int = 0  # as of `Entry`
    kinds: tuple[Kind, ...] = ()  # as of `Entry`


OVERWRITTEN = Judged(rules_version=0)  # what a forced undo wrote over: kept as a recovery, and none


def new_id() -> str:
    """Make an id for a recovery in the ledger: "r" and eight characters of base32."""
    return "r" + base64.b32encode(os.urandom(5)).decode().lower()


class Ledger:
    """The recoveries in a ledger. `file`: one that is open, or a path, where it is made on first use.

    Every method raises `LedgerError` and `BusyError`. `clock` gives seconds since the epoch.
    """

    def __init__(self, file: Path | LedgerFile, clock: Callable[[], float] = time.time) -> None:
        self.file = file if isinstance(file, LedgerFile) else LedgerFile(file)
        self._clock = clock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def begin(self, record: Record, outcome: Outcome = Outcome.PENDING) -> None:
        """Keep all images of a recovery that is about to be written; they are on the disk at the return.

        `outcome`: one of `CUT_OFF`, by which a start after a crash knows how to end it.
        """
        with self.file.write() as db:
            self._insert(db, record, outcome)
            _keep_images(db, record)

    def rewrite(self, record: Record) -> None:
        """Keep the images of a recovery that is written once more because the client wrote in between; pending until
        `finish`.

        From now on its images are those of `record`: also the earlier ones that may still stand (see `join_images`).
        """
        with self.file.write() as db:
            said = Outcome.PENDING.value, len(record.changes), _listed(record), column_value(record.detail)
            db.execute(_REWRITE, (*said, record.sole, record.sent, " ".join(record.kinds), record.id))
            db.execute(_REOPEN, (record.id,))
            _keep_images(db, record)

    def record(self, record: Record, outcome: Outcome) -> None:
        """Keep a recovery without edits (refused, not understood, gave up, failed), in the place of one of the same id;
        its failure counts as handled.
        """
        with self.file.write() as db:
            db.execute("DELETE FROM recovery WHERE id = ? AND edits = 0", (record.id,))
            self._insert(db, record, outcome)
            db.execute(_SETTLE, (record.id,))

    def taking_back(self, name: str, answered: int) -> None:
        """Keep that the user wants a recovery undone, before the undo is written: the wish holds whatever becomes of
        the undo.

        `answered`: `SessionStatus.last_answer` now. The wish is over when a prompt was answered since.
        """
        with self.file.write() as db:
            query = "UPDATE recovery SET undone = ?, answered = ? WHERE id = ?"
            db.execute(query, (self._clock(), answered, name))

    def undone(self, *names: str, whole: bool = False) -> None:
        """Mark these recoveries as undone, all or none; `whole`: all of it is in the store again."""
        with self.file.write() as db:
            now = self._clock()
            query = "UPDATE recovery SET outcome = 'undone', undone = ?, sole = sole AND NOT ? WHERE id = ?"
            db.executemany(query, ((now, whole, name) for name in names))
            db.executemany(_SETTLE, ((name,) for name in names))

    def finish(
        self, name: str, outcome: Outcome, detail: str, *, settled: bool = True, seconds: float | None = None
    ) -> None:
        """Keep how a recovery ended that `begin` began.

        `settled=False` leaves the failure open: taken back after a crash, say. `seconds`: how long the repair took
        until it was on the disk; the first value counts.
        """
        with self.file.write() as db:
            if not db.execute(_FINISH, (outcome.value, column_value(detail), seconds, self._clock(), name)).rowcount:
                raise NotFoundError(f'There is no recovery "{name}".')
            if settled:
                db.execute(_SETTLE, (name,))

    def confirm(self, name: str) -> None:
        """Keep that a healed recovery was read back, after the client had time to write over it."""
        with self.file.write() as db:
            db.execute("UPDATE recovery SET confirmed = 1 WHERE id = ?", (name,))

    def unconfirmed(self) -> list[Entry]:
        """List the healed recoveries that were not read back, oldest first: their process may have ended before."""
        images = "EXISTS (SELECT 1 FROM image WHERE image.seq = recovery.seq)"
        return self.file.entries(f"WHERE outcome = ? AND confirmed IS NULL AND {images} ORDER BY seq", Outcome.HEALED)

    def drop(self, name: str) -> None:
        """Remove a recovery that was begun and of which nothing was written: it was put off, and counts for nothing."""
        with self.file.write() as db:
            db.execute("DELETE FROM image WHERE seq = (SELECT seq FROM recovery WHERE id = ?)", (name,))
            db.execute("DELETE FROM recovery WHERE id = ?", (name,))

    def mark(self, name: str, outcome: Outcome, detail: str = "") -> None:
        """Give a finished recovery another outcome (undone, conflict); an empty detail keeps the old one."""
        self.finish(name, outcome, detail or self.get(name).detail)

    def handled(self, store: str, session: str, message: str) -> Handled | None:
        """Return what became of this failure; None if it was never handled. Known also after its images were pruned."""
        query = "SELECT outcome, session_state, rules_version FROM handled WHERE (store, session, message) = (?, ?, ?)"
        rows = self.file.read(query, (store, session, message))
        return Handled(Outcome(rows[0][0]), column_text(rows[0][1]), rows[0][2]) if rows else None

    def tries(self, store: str, session: str, answered: int, message: str = "") -> list[PastRecovery]:
        """List what was tried on a session since its last answer (`SessionStatus.last_answer`), in the order of the
        ledger.

        No two clocks are compared: tries belong together that saw the same last answer, or failed at this `message`.
        """
        if not self.file.has("answered"):  # a ledger that was not brought forward yet, and is only looked into
            return []
        values = (store, session, answered, message, Outcome.PENDING, Outcome.GAVE_UP)
        rows = self.file.read(_TRIES, values)
        return [_try(row) for row in rows]

    def taken_back(self, store: str, session: str, answered: int, message: str) -> PastRecovery | None:
        """Return the newest repair of a session, if the user took it back since its last answer
        (`SessionStatus.last_answer`).

        That of this store counts, else that of any: a copy of it is not repaired against the user's wish either.
        """
        if not self.file.has("undone"):
            return None
        rows = self.file.read(_TAKEN_BACK, (session, answered, message, store))
        found = [_try(row) for row in rows]
        return next((one for one in found if one.outcome is not Outcome.HEALED or one.undone is not None), None)

    def history(self, limit: int, session: str | None = None, store: str | None = None) -> list[Entry]:
        """List recoveries, newest first. A session may be in several stores."""
        which = {f"{name} = ?": value for name, value in (("store", store), ("session", session)) if value is not None}
        where = f"WHERE {' AND '.join(which)} " if which else ""
        return self.file.entries(f"{where}ORDER BY seq DESC LIMIT ?", *which.values(), limit)

    def get(self, name: str) -> Entry:
        """Return the recovery of this id, or of the one that begins so. Raises `NotFoundError`, with near ids."""
        if is_session_id(name):
            hint = f"`{command_line('history', session=name)}` lists those of the session."
            mine = [r.id for r in self.history(3, name)]
            raise NotFoundError(f"{name} is the id of a session; wanted is that of a recovery.", hint, recoveries=mine)
        wanted = name.strip().lower()
        where = "WHERE substr(id, 1, length(?1)) = ?1 ORDER BY seq DESC LIMIT 10"
        found = self.file.entries(where, wanted) if len(wanted) > 1 else []  # all begin with the same letter
        if len(found) == 1:
            return found[0]
        if found:
            ids = [r.id for r in found]
            raise NotFoundError(f'"{name}" fits several recoveries.', f"Which one: {', '.join(ids)}", recoveries=ids)
        recent = [r.id for r in self.history(500)]
        import difflib  # late: for a typing error alone

        near = difflib.get_close_matches(wanted, recent, 3)
        said, near = ("Near it", near) if near else ("The newest", recent[:3])
        hint = f"{said}: {', '.join(near)}" if near else "The ledger is empty."
        raise NotFoundError(f'There is no recovery "{name}".', hint, recoveries=near)

    def find(self, name: str) -> Entry | None:
        """Return the recovery of exactly this id. Unlike `get` it looks for no near ids, which reads up to 500
        others.
        """
        return next(iter(self.file.entries("WHERE id = ?", name)), None)

    def changes(self, name: str) -> list[Change]:
        """Return all images of a recovery, in the order of `begin`; none at all once they were pruned."""
        query = "SELECT key, before, after, mode FROM image JOIN recovery USING (seq) WHERE id = ? ORDER BY position"
        return [
            Change(column_text(key), before, after, mode) for key, before, after, mode in self.file.read(query, (name,))
        ]

    def answered(self, name: str) -> int | None:
        """Return the session's last answer (`SessionStatus.last_answer`) when a recovery, or its undo, was begun; None
        where that is not recorded.
        """
        rows = self.file.read("SELECT answered FROM recovery WHERE id = ?", (name,))
        return rows[0][0] if rows else None

    def root(self, name: str) -> str:
        """Return the session whose title a recovery is told under; "" where that is not recorded."""
        rows = self.file.read("SELECT root FROM recovery WHERE id = ?", (name,))
        return column_text(rows[0][0] or "") if rows else ""

    def repairs(self, session: str, message: str) -> list[Entry]:
        """List the recoveries of one failure that wrote something, in whichever store; newest first."""
        return self.file.entries("WHERE session = ? AND message = ? AND edits > 0 ORDER BY seq DESC", session, message)

    def left(self, name: str) -> dict[str, bytes | None]:
        """Return each record of a recovery with the digest of what it wrote (`images.digest`), known also without the
        images.
        """
        images = {change.key: digest(change.after) for change in self.changes(name)}
        query = "SELECT key, digest FROM trace JOIN recovery USING (seq) WHERE id = ? ORDER BY position"
        return images or {column_text(key): held for key, held in self.file.read(query, (name,))}

    def pending(self) -> list[Entry]:
        """List what a crash left half done (pending or undoing), newest first: the order in which to take it back."""
        return self.file.entries("WHERE outcome IN (?, ?) ORDER BY seq DESC", *CUT_OFF)

    def later(self, recovery: Entry) -> list[Entry]:
        """List newer recoveries of the same session whose edits stand in the store, newest first: undo those first."""
        return self.file.entries(
            "WHERE store = ? AND session = ? AND seq > (SELECT seq FROM recovery WHERE id = ?)"
            " AND edits > 0 AND outcome IN (?, ?, ?) ORDER BY seq DESC",
            *(recovery.store, recovery.session, recovery.id, Outcome.HEALED, *CUT_OFF),
        )

    def _insert(self, db: sqlite3.Connection, record: Record, outcome: Outcome) -> None:
        of, judged = record.failure, record.judged
        said = (record.title, record.kind, outcome, len(record.changes), record.detail, _listed(record))
        basis = (judged.session_state, judged.rules_version, judged.answered, judged.root, record.sole, record.sent)
        values = (record.id, self._clock(), of.store, of.session, of.message, *said, *basis, " ".join(record.kinds))
        db.execute(_INSERT, [column_value(v) for v in values])
        if record.client:
            db.execute(_CLIENT, [column_value(v) for v in (of.store, record.client)])


def _keep_images(db: sqlite3.Connection, record: Record) -> None:
    failpoint.reach("ledger images")
    (seq,) = db.execute("SELECT seq FROM recovery WHERE id = ?", (record.id,)).fetchone()
    images = [(seq, n, column_value(c.key), c.before, c.after, c.mode) for n, c in enumerate(record.changes)]
    db.execute("DELETE FROM image WHERE seq = ?", (seq,))
    db.executemany("INSERT INTO image VALUES (?, ?, ?, ?, ?, ?)", images)


def _listed(record: Record) -> str:
    """Return a recovery's actions as the ledger has them."""
    return json.dumps([*record.actions])


def _try(row: tuple[str, str | bytes, str, float | None, str | bytes]) -> PastRecovery:
    """Read what `_TRIES` and `_TAKEN_BACK` select."""
    name, message, outcome, undone, kind = row
    return PastRecovery(name, column_text(message), Outcome(outcome), undone, column_text(kind))
