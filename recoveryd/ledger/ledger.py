"""Every recovery and its images, in one SQLite file: for `history`, for `undo`, and for a start after a crash.

One object is used from one thread at a time; several processes may hold the same file (the daemon, `undo`, `scan`). A
process with a `Ledger` never opens the file by other means: closing any descriptor of it drops SQLite's POSIX locks.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from recoveryd.core import failpoint
from recoveryd.core.errors import NotFoundError
from recoveryd.core.model import CUT_OFF, Change, Entry, Failure, Kind, Outcome, Try, is_session_id
from recoveryd.ledger.file import INSERT, SCHEMA_VERSION, SELECT, LedgerError, entry, put, text
from recoveryd.ledger.images import Images, any_sole, digest, droppable, joined, sole
from recoveryd.ledger.moves import Moves
from recoveryd.ledger.sessions import TRIES, Marks, Resumes

__all__ = ["SCHEMA_VERSION", "Handled", "Ledger", "LedgerError", "new_id", "sole"]

_SETTLE = """INSERT OR REPLACE INTO handled
    SELECT store, session, message, outcome, session_state, rules_version FROM recovery WHERE id = ?"""
# A wish to have it undone stays in every outcome but `healed`.
_FINISH = """UPDATE recovery SET outcome = ?1, detail = ?2, seconds = ifnull(seconds, ?3),
    undone = CASE WHEN ?1 != 'healed' THEN
        ifnull(undone, CASE WHEN ?1 IN ('undoing', 'undone') OR outcome = 'undoing' THEN ?4 END) END WHERE id = ?5"""
# Rules of version 0: what a forced undo wrote over, which is no repair.
_TAKEN_BACK = """SELECT id, message, outcome, undone FROM recovery WHERE session = ? AND rules_version > 0
    AND (answered >= ? OR message = ?) AND (undone IS NOT NULL OR outcome IN ('healed', 'undone', 'undoing'))
    ORDER BY seq DESC LIMIT 1"""
_REOPEN = """DELETE FROM handled
    WHERE (store, session, message) = (SELECT store, session, message FROM recovery WHERE id = ?)"""


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of a failure that was handled before, and what it was judged by then."""

    outcome: Outcome
    session_state: str
    rules_version: int


def new_id() -> str:
    return "r" + base64.b32encode(os.urandom(5)).decode().lower()


class Ledger(Marks, Moves, Resumes):
    """The ledger at `path`, made on first use (0600; its folder 0700). Raises `LedgerError` and `BusyError`."""

    def begin(
        self,
        name: str,
        failure: Failure,
        title: str,
        kind: Kind | None,
        changes: Sequence[Change],
        actions: Sequence[str],
        detail: str,
        *,
        session_state: str,
        rules_version: int,
        answered: int | None = None,
        root: str = "",
    ) -> None:
        """Keep all images of a recovery (`name`: `new_id()`) that is about to be written: on the disk at the return."""
        row = (title, kind, Outcome.PENDING, len(changes), detail, json.dumps([*actions]))
        with self._write():
            self._insert(name, failure, (*row, session_state, rules_version, answered, root))
            self._images(name, changes)

    def rewrite(
        self, name: str, changes: Sequence[Change], actions: Sequence[str], detail: str, *, keep: bool = True
    ) -> None:
        """The same recovery is written once more, for the client wrote in between; it is pending again till `finish`.

        `keep`: what it wrote before may still stand, so those images stay that `changes` does not touch. False only
        when nothing was written yet, after a conflict.
        """
        with self._write() as db:
            images = joined(self.changes(name), changes) if keep else changes
            said = (Outcome.PENDING.value, len(images), json.dumps([*actions]), put(detail), name)
            db.execute("UPDATE recovery SET outcome=?, edits=?, actions=?, detail=?, sole=NULL WHERE id=?", said)
            db.execute(_REOPEN, (name,))
            self._images(name, images)

    def keep(self, failure: Failure, title: str, kind: Kind | None, changes: Sequence[Change], detail: str) -> str:
        """What a forced undo is about to write over, as a recovery of its own that is being undone; returns its id."""
        name = new_id()
        with self._write():
            self._insert(name, failure, (title, kind, Outcome.UNDOING, len(changes), detail, "[]", "", 0, None, ""))
            self._images(name, changes)
        return name

    def taking_back(self, name: str, answered: int) -> None:
        """Keep that the user wants this undone, before it is: that counts whatever becomes of the undo itself.

        `answered`: `Look.last_answer` now. The wish is over when a prompt was answered since.
        """
        with self._write() as db:
            query = "UPDATE recovery SET undone = ?, answered = ? WHERE id = ?"
            db.execute(query, (self._clock(), answered, name))

    def undone(self, *names: str) -> None:
        """These were undone: all of them say so from now on, or none."""
        with self._write() as db:
            now = self._clock()
            query = "UPDATE recovery SET outcome = 'undone', undone = ? WHERE id = ?"
            db.executemany(query, ((now, name) for name in names))
            db.executemany(_SETTLE, ((name,) for name in names))

    def record(
        self,
        name: str,
        failure: Failure,
        title: str,
        kind: Kind | None,
        outcome: Outcome,
        detail: str,
        *,
        session_state: str,
        rules_version: int,
        answered: int | None = None,
        root: str = "",
    ) -> None:
        """A recovery without edits (refused, not understood, gave up, failed); its failure counts as handled."""
        row = (title, kind, outcome, 0, detail, "[]")
        with self._write() as db:
            self._insert(name, failure, (*row, session_state, rules_version, answered, root))
            db.execute(_SETTLE, (name,))

    def finish(
        self, name: str, outcome: Outcome, detail: str, *, settled: bool = True, seconds: float | None = None
    ) -> None:
        """The end of what `begin` began. `settled=False` leaves the failure open: taken back after a crash, say.

        `seconds`: how long the repair took, to the disk; the first one counts.
        """
        with self._write() as db:
            if not db.execute(_FINISH, (outcome.value, put(detail), seconds, self._clock(), name)).rowcount:
                raise NotFoundError(f'There is no recovery "{name}".')
            if settled:
                db.execute(_SETTLE, (name,))

    def confirm(self, name: str) -> None:
        """What was healed was read back, after the client had time to write over it."""
        with self._write() as db:
            db.execute("UPDATE recovery SET confirmed = 1 WHERE id = ?", (name,))

    def unconfirmed(self) -> list[Entry]:
        """What was healed and not yet read back, oldest first: its process may have ended before it could."""
        images = "EXISTS (SELECT 1 FROM image WHERE image.seq = recovery.seq)"
        return self._entries(f"WHERE outcome = ? AND confirmed IS NULL AND {images} ORDER BY seq", Outcome.HEALED)

    def drop(self, name: str) -> None:
        """Forget a recovery that was begun and of which nothing was written: it was put off, and counts for nothing."""
        with self._write() as db:
            db.execute("DELETE FROM image WHERE seq = (SELECT seq FROM recovery WHERE id = ?)", (name,))
            db.execute("DELETE FROM recovery WHERE id = ?", (name,))

    def mark(self, name: str, outcome: Outcome, detail: str = "") -> None:
        """Another outcome for a finished recovery (undone, conflict); an empty detail keeps the old one."""
        self.finish(name, outcome, detail or self.get(name).detail)

    def handled(self, store: str, session: str, message: str) -> Handled | None:
        """What became of this failure; None if it was never handled. Outlives the images."""
        query = "SELECT outcome, session_state, rules_version FROM handled WHERE (store, session, message) = (?, ?, ?)"
        rows = self._read(query, (store, session, message))
        return Handled(Outcome(rows[0][0]), text(rows[0][1]), rows[0][2]) if rows else None

    def tries(self, store: str, session: str, answered: int, message: str = "") -> list[Try]:
        """What was tried on a session since its last answer (`Look.last_answer`), in the ledger's own order.

        No two clocks are compared: tries belong together that saw the same last answer, or failed at this `message`.
        """
        if not self._has("answered"):  # a ledger that was not brought forward yet, and is only looked into
            return []
        values = (store, session, answered, message, Outcome.PENDING, Outcome.GAVE_UP)
        rows = self._read(TRIES, values)
        return [Try(name, text(failed), Outcome(outcome), undone) for name, failed, outcome, undone in rows]

    def taken_back(self, session: str, answered: int, message: str) -> Try | None:
        """The newest repair of a session, if the user took it back since its last answer (`Look.last_answer`).

        Of the session, in whichever store: a copy of it is not repaired against the user's wish either.
        """
        if not self._has("undone"):
            return None
        rows = self._read(_TAKEN_BACK, (session, answered, message))
        found = [Try(name, text(failed), Outcome(outcome), undone) for name, failed, outcome, undone in rows]
        return next((one for one in found if one.outcome is not Outcome.HEALED or one.undone is not None), None)

    def count(self, outcome: Outcome, since: float) -> int:
        """How many recoveries since `since`, in seconds since the epoch, ended so."""
        query = "SELECT count(*) FROM recovery WHERE outcome = ? AND time >= ?"
        return int(self._read(query, (outcome.value, since))[0][0])

    def history(self, limit: int, session: str | None = None) -> list[Entry]:
        """Newest first."""
        which = () if session is None else (session,)
        return self._entries(f"{'WHERE session = ? ' if which else ''}ORDER BY seq DESC LIMIT ?", *which, limit)

    def get(self, name: str) -> Entry:
        """The recovery of this id, or of the one id that begins so. Raises `NotFoundError`, which lists near ids."""
        if is_session_id(name):
            hint = f"`recoveryd history --session {name}` lists those of the session."
            mine = [r.id for r in self.history(3, name)]
            raise NotFoundError(f"{name} is the id of a session; wanted is that of a recovery.", hint, recoveries=mine)
        wanted = name.strip().lower()
        where = "WHERE substr(id, 1, length(?1)) = ?1 ORDER BY seq DESC LIMIT 10"
        found = self._entries(where, wanted) if len(wanted) > 1 else []  # all begin with the same letter
        if len(found) == 1:
            return found[0]
        if found:
            ids = [r.id for r in found]
            raise NotFoundError(f'"{name}" fits several recoveries.', f"Which one: {', '.join(ids)}", recoveries=ids)
        recent = [r.id for r in self.history(500)]
        near = difflib.get_close_matches(wanted, recent, 3) or recent[:3]
        hint = f"Near it: {', '.join(near)}" if near else "The ledger is empty."
        raise NotFoundError(f'There is no recovery "{name}".', hint, recoveries=near)

    def find(self, name: str) -> Entry | None:
        """The recovery of exactly this id, without `get`'s hints: those read and compare up to 500 others."""
        return next(iter(self._entries("WHERE id = ?", name)), None)

    def changes(self, name: str) -> list[Change]:
        """All images of a recovery, in the order of `begin`; none at all once they were pruned."""
        query = "SELECT key, before, after, mode FROM image JOIN recovery USING (seq) WHERE id = ? ORDER BY position"
        return [Change(text(key), before, after, mode) for key, before, after, mode in self._read(query, (name,))]

    def repairs(self, session: str, message: str) -> list[Entry]:
        """The recoveries of one failure that wrote something, in whichever store; newest first."""
        return self._entries("WHERE session = ? AND message = ? AND edits > 0 ORDER BY seq DESC", session, message)

    def left(self, name: str) -> dict[str, bytes | None]:
        """Each record of a recovery with the digest of what it wrote (`images.digest`): outlives the images."""
        images = {change.key: digest(change.after) for change in self.changes(name)}
        query = "SELECT key, digest FROM trace JOIN recovery USING (seq) WHERE id = ? ORDER BY position"
        return images or {text(key): held for key, held in self._read(query, (name,))}

    def pending(self) -> list[Entry]:
        """What a crash left half done (pending or undoing), newest first: the order in which to take it back."""
        return self._entries("WHERE outcome IN (?, ?) ORDER BY seq DESC", *CUT_OFF)

    def later(self, recovery: Entry) -> list[Entry]:
        """Newer recoveries of the same session whose edits stand in the store, newest first: undo those first."""
        return self._entries(
            "WHERE store = ? AND session = ? AND seq > (SELECT seq FROM recovery WHERE id = ?)"
            " AND edits > 0 AND outcome IN (?, ?, ?) ORDER BY seq DESC",
            *(recovery.store, recovery.session, recovery.id, Outcome.HEALED, *CUT_OFF),
        )

    def prune(self, keep_days: float, keep_mb: float, now: float) -> int:
        """Drop images of finished recoveries, older than `keep_days` or the oldest beyond `keep_mb` (10^6 bytes).

        Not those with content that now exists nowhere else. The images of a recovery go together or not at all, so that
        `undo` is whole. Returns how many recoveries lost theirs; their rows, and what counts as handled, stay.
        """
        gone = droppable(self._finished(), keep_days, keep_mb, now)
        if gone:
            with self._write():
                self._drop_images(gone)
            self._read("PRAGMA incremental_vacuum")
            self._read("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(gone)

    def _entries(self, where: str, *values: Any) -> list[Entry]:
        return [entry(row) for row in self._read(SELECT + where, values)]

    def _insert(self, name: str, failure: Failure, row: tuple[Any, ...]) -> None:
        """`row`: the columns of `INSERT` from the title on."""
        values = (name, self._clock(), failure.store, failure.session, failure.message, *row)
        self._db.execute(INSERT, [put(v) for v in values])

    def _images(self, name: str, changes: Sequence[Change]) -> None:
        failpoint.reach("ledger images")
        (seq,) = self._db.execute("SELECT seq FROM recovery WHERE id = ?", (name,)).fetchone()
        images = [(seq, n, put(c.key), c.before, c.after, c.mode) for n, c in enumerate(changes)]
        self._db.execute("DELETE FROM image WHERE seq = ?", (seq,))
        self._db.executemany("INSERT INTO image VALUES (?, ?, ?, ?, ?, ?)", images)

    def _drop_images(self, numbers: Iterable[int]) -> None:
        """Within a transaction. Of what was healed a trace stays, without content: does the repair still stand?"""
        self._db.create_function("digest", 1, digest, deterministic=True)
        trace = """INSERT OR REPLACE INTO trace SELECT seq, position, key, digest(after) FROM image
            WHERE seq = ? AND seq IN (SELECT seq FROM recovery WHERE outcome = 'healed')"""
        for number in numbers:
            self._db.execute(trace, (number,))
            self._db.execute("DELETE FROM image WHERE seq = ?", (number,))

    def _finished(self) -> list[Images]:
        """Of each finished recovery that has images, oldest first."""
        rows = self._read(
            "SELECT seq, id, time, sole, sum(ifnull(length(before), 0) + ifnull(length(after), 0))"
            " FROM recovery JOIN image USING (seq) WHERE outcome NOT IN (?, ?) GROUP BY seq ORDER BY seq",
            CUT_OFF,
        )
        fresh = {}  # worked out once for each recovery, or an old ledger would be parsed again at every start
        for seq, name, _, held, _ in rows:
            if held is None:
                changes = self.changes(name)
                fresh[seq] = any_sole(changes)
        if fresh:
            with self._write() as db:
                pairs = ((held, seq) for seq, held in fresh.items())
                db.executemany("UPDATE recovery SET sole = ? WHERE seq = ?", pairs)
        return [Images(seq, at, size, bool(fresh.get(seq, held))) for seq, _, at, held, size in rows]
