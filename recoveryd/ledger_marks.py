"""What sessions looked like when they were last found in order: the next start looks at the others alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recoveryd.ledger_file import LedgerFile, put, text


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
