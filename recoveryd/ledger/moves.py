"""Which stores the ledger knows, and one of them under another path."""

from __future__ import annotations

from collections.abc import Iterable

from recoveryd.ledger.file import LedgerFile, put, text


class Moves(LedgerFile):
    """The part of the ledger that follows a store."""

    def stores(self) -> list[str]:
        """The ids of all stores that something was handled in."""
        return [text(store) for (store,) in self._read("SELECT store FROM recovery UNION SELECT store FROM handled")]

    def sessions(self, store: str) -> list[str]:
        """The sessions of a store that something was handled in."""
        query = "SELECT session FROM recovery WHERE store = ?1 UNION SELECT session FROM handled WHERE store = ?1"
        return [text(session) for (session,) in self._read(query, (store,))]

    def move(self, before: str, after: str, sessions: Iterable[str]) -> None:
        """What is recorded of these sessions of a store is of another from now on; what that one knows itself stays."""
        rows = [(put(after), put(before), put(session)) for session in sessions]
        if not rows:
            return
        with self._write() as db:
            for table in ("recovery", "resume", "handled"):
                query = f"UPDATE OR IGNORE {table} SET store = ? WHERE store = ? AND session = ?"  # noqa: S608
                db.executemany(query, rows)
