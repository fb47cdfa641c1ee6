"""Find the stores that the ledger knows, and follow one that has moved to another path."""

from __future__ import annotations

from collections.abc import Iterable

from recoveryd.ledger.file import LedgerFile, column_text, column_value


class KnownStores:
    """The stores in which some failure was handled."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def ids(self) -> list[str]:
        """List the ids of all stores."""
        rows = self._file.read("SELECT store FROM recovery UNION SELECT store FROM handled")
        return [column_text(store) for (store,) in rows]

    def sessions(self, store: str) -> list[str]:
        """List the sessions of a store in which some failure was handled."""
        query = "SELECT session FROM recovery WHERE store = ?1 UNION SELECT session FROM handled WHERE store = ?1"
        return [column_text(session) for (session,) in self._file.read(query, (store,))]

    def places(self) -> dict[str, str]:
        """Return the identity (device and inode) that each store had when it was last seen, by its id."""
        return {
            column_text(store): identity for store, identity in self._file.read("SELECT store, identity FROM place")
        }

    def clients(self) -> dict[str, str]:
        """Return the client of each store, by the store's id: also of one that no configuration names any more."""
        if not self._file.has("client", "place"):  # a ledger that was not brought forward yet, and is only looked into
            return {}
        rows = self._file.read("SELECT store, client FROM place WHERE client IS NOT NULL")
        return {column_text(store): column_text(client) for store, client in rows}

    def place(self, store: str, identity: str, client: str) -> None:
        """Keep the identity of a store, which tells it from a copy, and whose it is."""
        with self._file.write() as db:
            values = (column_value(store), identity, column_value(client))
            db.execute("INSERT OR REPLACE INTO place (store, identity, client) VALUES (?, ?, ?)", values)

    def learn(self, before: str, after: str, sessions: Iterable[str]) -> None:
        """Copy to a store what became of the failures of these sessions in another one; the repairs stay the
        other's.
        """
        rows = [(column_value(after), column_value(before), column_value(session)) for session in sessions]
        if not rows:
            return
        query = """INSERT OR IGNORE INTO handled SELECT ?, session, message, outcome, session_state, rules_version
            FROM handled WHERE store = ? AND session = ?"""
        with self._file.write() as db:
            db.executemany(query, rows)

    def move(self, before: str, after: str, sessions: Iterable[str]) -> None:
        """Move all records of these sessions from a store to another one; what that one knows itself stays."""
        rows = [(column_value(after), column_value(before), column_value(session)) for session in sessions]
        if not rows:
            return
        with self._file.write() as db:
            for table in ("recovery", "resume", "handled"):
                query = f"UPDATE OR IGNORE {table} SET store = ? WHERE store = ? AND session = ?"  # noqa: S608
                db.executemany(query, rows)
