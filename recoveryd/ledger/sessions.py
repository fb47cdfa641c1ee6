"""What sessions looked like when they were last found in order: the next start looks at the others alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recoveryd.core.model import Resumed
from recoveryd.ledger.file import LedgerFile, put, text


class Marks(LedgerFile):
    """The part of the ledger that remembers sessions which need nothing."""

    def remember_many(self, store: str, stamps: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """What sessions looked like when they were last found in order, by session; `gone` ones are forgotten."""
        with self._write() as db:
            rows = ((put(store), put(session), put(stamp)) for session, stamp in stamps.items())
            db.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", rows)
            db.executemany("DELETE FROM seen WHERE store = ? AND session = ?", ((put(store), put(s)) for s in gone))

    def remembered(self, store: str) -> dict[str, str]:
        """Session to stamp, of all sessions of the store."""
        rows = self._read("SELECT session, stamp FROM seen WHERE store = ?", (store,))
        return {text(session): text(stamp) for session, stamp in rows}


TRIES = """SELECT id, message, outcome, undone FROM recovery
    WHERE store = ? AND session = ? AND (answered = ? OR message = ?) AND outcome != ?
    AND (edits > 0 OR outcome = ? OR id IN (SELECT recovery FROM resume)) ORDER BY seq"""


_KEPT_S = 30 * 86_400.0


class Resumes(LedgerFile):
    """The resumes of a ledger."""

    def resumed(self, recovery: str, store: str, session: str, *, thinking_off: bool) -> None:
        """Keep that a session is told to go on, before it is: on the disk at the return."""
        now = self._clock()
        with self._write() as db:
            db.execute("DELETE FROM resume WHERE time < ?", (now - _KEPT_S,))
            row = (recovery, put(store), put(session), now, thinking_off)
            db.execute("INSERT OR REPLACE INTO resume VALUES (?, ?, ?, ?, ?)", row)

    def resumes(self, store: str, session: str) -> list[Resumed]:
        """Those of a session in the last 30 days; the oldest first."""
        query = """SELECT resume.recovery, resume.time, thinking_off, answered FROM resume
            LEFT JOIN recovery ON recovery.id = resume.recovery
            WHERE resume.store = ? AND resume.session = ? ORDER BY resume.time"""
        rows = self._read(query, (store, session))
        return [Resumed(text(name), time, bool(off), answered) for name, time, off, answered in rows]
