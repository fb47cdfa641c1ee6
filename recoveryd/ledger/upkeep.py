"""Keeping the ledger: what it holds, and what a user wants gone from it for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from recoveryd.core.errors import BusyError, NotFoundError, RefusedError
from recoveryd.core.model import CUT_OFF, Entry, Kind, Outcome
from recoveryd.ledger.file import KINDS, put, text
from recoveryd.ledger.images import droppable
from recoveryd.ledger.ledger import Ledger

FORGOTTEN = "Forgotten at the user's wish."
# Older rows, and those of a forced undo, don't say whose title they have: there the same words have to do.
_UNTITLED = """UPDATE recovery SET title = '' WHERE root = ?1 OR (ifnull(root, '') = '' AND title IN
    (SELECT title FROM recovery WHERE session = ?1 OR root = ?1))"""


@dataclass(frozen=True, slots=True)
class Ended:
    """One recovery in figures. `time`: seconds since the epoch; `seconds`: None where it was not recorded."""

    kind: Kind | None
    outcome: Outcome
    time: float
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Held:
    """A recovery with images: how many, their bytes, and whether they hold what exists nowhere else (None: unknown)."""

    entry: Entry
    images: int
    size: int
    sole: bool | None


class Upkeep(Ledger):
    """A ledger, and what only the commands ask of it."""

    def ended(self) -> list[Ended]:
        """All recoveries, oldest first."""
        seconds = "seconds" if self._has("seconds") else "NULL"  # one that was not brought forward yet
        rows = self._read(f"SELECT kind, outcome, time, {seconds} FROM recovery ORDER BY seq")  # noqa: S608
        return [Ended(KINDS.get(kind or ""), Outcome(outcome), at, took) for kind, outcome, at, took in rows]

    def busiest(self, recoveries: int) -> list[tuple[str, str]]:
        """Store and session of those with at least so many recoveries that wrote something."""
        query = "SELECT store, session FROM recovery WHERE edits > 0 GROUP BY store, session HAVING count(*) >= ?"
        return [(text(store), text(session)) for store, session in self._read(query, (recoveries,))]

    def conflicts(self) -> list[Entry]:
        """Recoveries that the client wrote over, newest first."""
        return self._entries("WHERE outcome = ? ORDER BY seq DESC", Outcome.CONFLICT)

    def held(self, session: str | None = None) -> list[Held]:
        """The recoveries that have images, oldest first."""
        rows = self._read(
            "SELECT id, sole, count(*), sum(ifnull(length(before), 0) + ifnull(length(after), 0))"
            " FROM recovery JOIN image USING (seq) WHERE session = ifnull(?, session) GROUP BY seq ORDER BY seq",
            (session,),
        )
        found = ((self.find(name), sole, n, size) for name, sole, n, size in rows)
        return [Held(e, n, size, None if sole is None else bool(sole)) for e, sole, n, size in found if e is not None]

    def image_bytes(self) -> int:
        """Of all images together."""
        query = "SELECT total(ifnull(length(before), 0) + ifnull(length(after), 0)) FROM image"
        return int(self._read(query)[0][0])

    def beyond(self, keep_days: float, keep_mb: float, now: float, *, all_content: bool = False) -> list[Held]:
        """The recoveries whose images are beyond the limits, as `Ledger.prune` has them; see `clear`.

        `all_content`: also those with content that now exists nowhere else.
        """
        finished = self._finished()
        if all_content:
            finished = [images.may_go() for images in finished]
        gone = {self._name(seq) for seq in droppable(finished, keep_days, keep_mb, now)}
        return [held for held in self.held() if held.entry.id in gone]

    def clear(self, names: Sequence[str]) -> None:
        """Take the images of these recoveries out, and out of the file. Their rows stay, and what counts as handled."""
        with self._write():
            self._drop_images(map(self._number, names))
        self._shred()

    def forgettable(self, session: str) -> list[Entry]:
        """All recoveries of a session, newest first; none where only those of its subagents have its title.

        NotFoundError when there is nothing; RefusedError when one was cut off: its images are what brings it to an end.
        """
        entries = self._entries("WHERE session = ? ORDER BY seq DESC", session)
        if not entries and not self._entries("WHERE root = ? LIMIT 1", session):
            hint = "`recoveryd history` lists them."
            if (meant := self.find(session)) is not None:
                hint = f"That is the id of a recovery; its session is {meant.session}."
            raise NotFoundError(f"The ledger has nothing of a session {session}.", hint)
        for entry in entries:
            if entry.outcome in CUT_OFF:
                hint = "Start `recoveryd run` once: it brings it to an end, and then this can be forgotten."
                raise RefusedError(f"{entry.id} of this session is under way, or was cut off by a crash.", hint)
        return entries

    def forget(self, session: str) -> list[Entry]:
        """Take out all that a session said: images, title (also where its subagents are told under it), details.

        Its keys stay, so that it is not repaired again, and digests: what was healed is still known as healed.
        """
        entries = self.forgettable(session)
        with self._write() as db:
            self._drop_images(self._number(entry.id) for entry in entries)
            db.execute(_UNTITLED, (put(session),))
            query = "UPDATE recovery SET title = '', detail = ?, sole = NULL WHERE session = ?"
            db.execute(query, (FORGOTTEN, put(session)))
        self._shred()
        return entries

    def _name(self, seq: int) -> str:
        return str(self._read("SELECT id FROM recovery WHERE seq = ?", (seq,))[0][0])

    def _number(self, name: str) -> int:
        return int(self._read("SELECT seq FROM recovery WHERE id = ?", (name,))[0][0])

    def _shred(self) -> None:
        """Write the file anew, without a byte of what was deleted, and empty the WAL. BusyError when that can't be.

        `secure_delete` alone leaves what an older recoveryd, without it, once deleted.
        """
        self._read("PRAGMA temp_store = MEMORY")  # else all that stays would stand in a file in /tmp meanwhile
        try:
            self._read("VACUUM")
            busy = self._read("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        except BusyError:
            busy = True
        if busy:
            raise BusyError(
                "It is deleted, but another process reads the ledger, so its bytes may still be in the file.",
                "Run the same command again in a moment.",
            )


def integrity(db: sqlite3.Connection) -> str:
    """What `PRAGMA quick_check` finds wrong; "" when nothing is."""
    found = [str(line) for (line,) in db.execute("PRAGMA quick_check(3)")]
    return "" if found == ["ok"] else "; ".join(found)
