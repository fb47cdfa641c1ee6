"""Which sessions were told to go on, and when: what keeps that from becoming a loop."""

from __future__ import annotations

from recoveryd.ledger_file import LedgerFile, put, text
from recoveryd.model import Resumed

TRIES = """SELECT count(*) FROM recovery WHERE store = ? AND session = ? AND time >= ? AND outcome != ?
    AND (edits > 0 OR id IN (SELECT recovery FROM resume))"""
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

    def resumes(self, store: str, session: str, since: float) -> list[Resumed]:
        """Those of a session since `since`, in seconds since the epoch; the oldest first."""
        query = """SELECT recovery, time, thinking_off FROM resume
            WHERE store = ? AND session = ? AND time >= ? ORDER BY time"""
        rows = self._read(query, (store, session, since))
        return [Resumed(text(name), time, bool(off)) for name, time, off in rows]
