"""Keep what is known of sessions beside their recoveries: which need no look, and which were told to go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from recoveryd.ledger.file import LedgerFile, column_text, column_value

_KEPT_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Resumed:
    """What the ledger has of a session that was told to go on after a recovery. `time` in seconds since the epoch.

    `answered`: `SessionStatus.last_answer` when the recovery was begun.
    """

    recovery: str
    time: float
    thinking_off: bool
    answered: int | None = None


class SeenSessions:
    """The stamps of sessions that were found in order: after a start only the others are looked at."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def remember(self, store: str, stamps: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Keep a stamp of each session; `gone` ones are forgotten."""
        with self._file.write() as db:
            rows = (
                (column_value(store), column_value(session), column_value(stamp)) for session, stamp in stamps.items()
            )
            db.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", rows)
            db.executemany(
                "DELETE FROM seen WHERE store = ? AND session = ?",
                ((column_value(store), column_value(s)) for s in gone),
            )

    def remembered(self, store: str) -> dict[str, str]:
        """Return the stamp of each session of the store."""
        rows = self._file.read("SELECT session, stamp FROM seen WHERE store = ?", (store,))
        return {column_text(session): column_text(stamp) for session, stamp in rows}


class Resumes:
    """The sessions that were told to go on after a recovery."""

    def __init__(self, file: LedgerFile, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock

    def add(self, recovery: str, store: str, session: str, *, thinking_off: bool) -> None:
        """Keep, before it happens, that a session is told to go on; it is on the disk at the return."""
        now = self._clock()
        with self._file.write() as db:
            db.execute("DELETE FROM resume WHERE time < ?", (now - _KEPT_S,))
            row = (recovery, column_value(store), column_value(session), now, thinking_off)
            db.execute("INSERT OR REPLACE INTO resume VALUES (?, ?, ?, ?, ?)", row)

    def of(self, store: str, session: str) -> list[Resumed]:
        """List when a session was told to go on in the last 30 days, the oldest first."""
        query = """SELECT resume.recovery, resume.time, thinking_off, answered FROM resume
            LEFT JOIN recovery ON recovery.id = resume.recovery
            WHERE resume.store = ? AND resume.session = ? ORDER BY resume.time"""
        rows = self._file.read(query, (store, session))
        return [Resumed(column_text(name), time, bool(off), answered) for name, time, off, answered in rows]
