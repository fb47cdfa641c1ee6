"""Tell what the ledger holds, prune it, and remove for good what a user wants gone from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace

from recoveryd.core import CUT_OFF, BusyError, Change, Entry, NotFoundError, Outcome, RefusedError, command_line
from recoveryd.ledger.file import KINDS, column_text, column_value
from recoveryd.ledger.images import DAY_S, Images, digest, droppable
from recoveryd.ledger.ledger import Ledger
from recoveryd.ledger.stats import EndedRecovery

_BYTES = "ifnull(sum(ifnull(length(before), 0) + ifnull(length(after), 0)), 0)"
FORGOTTEN = "Forgotten at the user's wish."
# Older rows, also those of a forced undo, don't say whose title they have: there the same words have to do.
_TITLED = """(root = ?1 OR (ifnull(root, '') = '' AND title IN
    (SELECT title FROM recovery WHERE session = ?1 OR root = ?1)))"""
_UNTITLED = f"UPDATE recovery SET title = '' WHERE {_TITLED}"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Held:
    """A recovery with images: how many, and their bytes."""

    entry: Entry
    images: int
    size: int


class Upkeep:
    """What `ledger` holds, for how long, and the removal of it.

    `sole` is asked about recoveries of an older recoveryd, whose rows do not say whether they hold content that exists
    nowhere else; it gets the id of their store. Without it their images are kept. `quoting`: whether the titles of a
    store's sessions, by its id, are words of theirs, which go as their other content does.
    """

    def __init__(
        self,
        ledger: Ledger,
        sole: Callable[[str, Sequence[Change]], bool] | None = None,
        quoting: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._ledger = ledger
        self._file = ledger.file
        self._sole = sole
        self._quoting = quoting

    def ended(self) -> list[EndedRecovery]:
        """List all recoveries, oldest first, without what a forced undo wrote over: it is no recovery of its own."""
        seconds = "seconds" if self._file.has("seconds") else "NULL"  # one that was not brought forward yet
        columns = f"kind, outcome, time, {seconds}, store, session"
        rows = self._file.read(f"SELECT {columns} FROM recovery WHERE rules_version > 0 ORDER BY seq")  # noqa: S608
        return [
            EndedRecovery(KINDS.get(kind or ""), Outcome(outcome), at, took, column_text(store), column_text(session))
            for kind, outcome, at, took, store, session in rows
        ]

    def newest(self, outcomes: Container[Outcome]) -> list[Entry]:
        """Return the newest recovery of each session where it ended in one of these ways, newest first; what a forced
        undo wrote over is none.
        """
        own = "SELECT max(seq) FROM recovery WHERE rules_version > 0 GROUP BY store, session"
        newest = f"WHERE seq IN ({own}) ORDER BY seq DESC"
        return [entry for entry in self._file.entries(newest) if entry.outcome in outcomes]

    def busiest(self, recoveries: int) -> list[tuple[str, str]]:
        """List store and session of those with at least so many recoveries that wrote something."""
        query = "SELECT store, session FROM recovery WHERE edits > 0 GROUP BY store, session HAVING count(*) >= ?"
        return [(column_text(store), column_text(session)) for store, session in self._file.read(query, (recoveries,))]

    def wrote(self, since: int, until: int) -> bool:
        """Whether anything was repaired, or put back, between two moments (milliseconds since the epoch)."""
        undone = "OR undone * 1000 BETWEEN ?1 AND ?2" if self._file.has("undone") else ""
        query = f"SELECT 1 FROM recovery WHERE edits > 0 AND (time * 1000 BETWEEN ?1 AND ?2 {undone}) LIMIT 1"  # noqa: S608
        return bool(self._file.read(query, (since, until)))

    def written(self, session: str, since: int) -> list[Entry]:
        """List the recoveries that wrote to a session, or were undone there, since a moment (milliseconds since the
        epoch), in whichever store, newest first.
        """
        undone = "OR undone * 1000 >= ?2" if self._file.has("undone") else ""
        when = f"(time * 1000 >= ?2 {undone})"
        return self._file.entries(f"WHERE session = ?1 AND edits > 0 AND {when} ORDER BY seq DESC", session, since)

    def conflicts(self) -> list[Entry]:
        """List the recoveries that the client wrote over, newest first."""
        return self._file.entries("WHERE outcome = ? ORDER BY seq DESC", Outcome.CONFLICT)

    def held(self, session: str | None = None) -> list[Held]:
        """List the recoveries that have images, oldest first."""
        rows = self._file.read(
            f"SELECT id, count(*), {_BYTES}"  # noqa: S608
            " FROM recovery JOIN image USING (seq) WHERE session = ifnull(?, session) GROUP BY seq ORDER BY seq",
            (session,),
        )
        found = ((self._ledger.find(name), n, size) for name, n, size in rows)
        return [Held(entry, n, size) for entry, n, size in found if entry is not None]

    def image_bytes(self) -> int:
        """Add up the bytes of all images."""
        return int(self._file.read(f"SELECT {_BYTES} FROM image")[0][0])  # noqa: S608

    def prune(self, keep_days: float, keep_mb: float, now: float) -> int:
        """Drop images of finished recoveries, older than `keep_days` or the oldest beyond `keep_mb` (10^6 bytes).

        Not those with content that now exists nowhere else. The images of a recovery go together or not at all, so that
        `undo` is whole. Returns how many recoveries lost theirs; their rows, and what counts as handled, stay. Titles
        that are words of a session go by the same limits.
        """
        gone = droppable(self._finished(), keep_days, keep_mb, now)
        titled = self._quoted(keep_days, now, gone)
        if gone or titled:
            with self._file.write() as db:
                _drop_images(db, gone)
                _drop_titles(db, titled)
            self._file.read("PRAGMA incremental_vacuum")
            self._file.read("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(gone)

    def beyond(self, keep_days: float, keep_mb: float, now: float, *, all_content: bool = False) -> list[Held]:
        """List the recoveries whose images are beyond the limits, as `prune` has them; see `clear`.

        `all_content`: also those with content that now exists nowhere else.
        """
        finished = self._finished()
        if all_content:
            finished = [replace(images, held=not images.size) for images in finished]
        gone = {self._name(seq) for seq in droppable(finished, keep_days, keep_mb, now)}
        return [held for held in self.held() if held.entry.id in gone]

    def kept_beyond(self, keep_days: float, keep_mb: float, now: float, gone: Iterable[str]) -> int:
        """Count the recoveries that are beyond the limits once the images of `gone` went, and stay, as of `prune`.

        Those of the others count against `keep_mb` with theirs here, and are none of them: they go by themselves.
        """
        went = {self._number(name) for name in gone}
        left = [images for images in self._finished() if images.size and images.seq not in went]
        beyond = set(droppable((replace(images, held=False) for images in left), keep_days, keep_mb, now))
        return sum(images.held for images in left if images.seq in beyond)

    def quoted(self, keep_days: float, now: float, gone: Iterable[str] = ()) -> list[str]:
        """List the recoveries whose titles are words of a session, and beyond the limit or of those whose images go
        (`gone`); see `clear`.
        """
        return [self._name(seq) for seq in self._quoted(keep_days, now, list(map(self._number, gone)))]

    def clear(self, names: Sequence[str], titles: Sequence[str] = ()) -> None:
        """Remove the images of these recoveries and the titles of those, also from the bytes of the file. Their rows
        stay, and count as handled.
        """
        with self._file.write() as db:
            _drop_images(db, map(self._number, names))
            _drop_titles(db, map(self._number, titles))
        self._shred()

    def forgettable(self, session: str) -> list[Entry]:
        """List all recoveries of a session, newest first; none where only those of its subagents have its title.

        Raises NotFoundError when there is nothing; RefusedError when one was cut off: its images are what brings it to
        an end.
        """
        entries = self._file.entries("WHERE session = ? ORDER BY seq DESC", session)
        if not entries and not self._file.entries("WHERE root = ? LIMIT 1", session):
            hint = f"`{command_line('history')}` lists what it has."
            if (meant := self._ledger.find(session)) is not None:
                hint = f"That is the id of a recovery; its session is {meant.session}."
            raise NotFoundError(f"The ledger has nothing of a session {session}.", hint)
        for entry in entries:
            if entry.outcome in CUT_OFF:
                hint = f"`{command_line('restart')}` brings that to an end, and then this can be forgotten."
                raise RefusedError(f"{entry.id} of this session is under way, or was cut off by a crash.", hint)
        return entries

    def titled(self, session: str) -> list[str]:
        """List the recoveries of other sessions, its subagents', that `forget` takes its title from, oldest first."""
        query = f"SELECT id FROM recovery WHERE title != '' AND session != ?1 AND {_TITLED} ORDER BY seq"  # noqa: S608
        return [name for (name,) in self._file.read(query, (column_value(session),))]

    def forget(self, session: str) -> list[Entry]:
        """Remove all content of a session: images, title (also where its subagents are told under it), details.

        Its keys and digests stay, so that it is not repaired again, and what was healed is still known as healed.
        """
        entries = self.forgettable(session)
        with self._file.write() as db:
            _drop_images(db, [self._number(entry.id) for entry in entries])
            db.execute(_UNTITLED, (column_value(session),))
            query = "UPDATE recovery SET title = '', detail = ?, sole = NULL WHERE session = ?"
            db.execute(query, (FORGOTTEN, column_value(session)))
        self._shred()
        return entries

    def _finished(self) -> list[Images]:
        """List each finished recovery, oldest first; one without images has none to lose. What is found out on the way
        is kept.
        """
        rows = self._file.read(
            f"SELECT seq, id, store, time, sole, count(position), {_BYTES}"  # noqa: S608
            " FROM recovery LEFT JOIN image USING (seq) WHERE outcome NOT IN (?, ?) GROUP BY seq ORDER BY seq",
            CUT_OFF,
        )
        untold = [(seq, name, column_text(store)) for seq, name, store, _, sole, n, _ in rows if n and sole is None]
        told = {seq: self._sole(store, self._ledger.changes(name)) for seq, name, store in untold if self._sole}
        if told:
            with self._file.write() as db:
                pairs = [(sole, seq) for seq, sole in told.items()]
                db.executemany("UPDATE recovery SET sole = ? WHERE seq = ?", pairs)
        return [
            Images(seq, at, size, not n or told.get(seq, sole is None or bool(sole)))
            for seq, _, _, at, sole, n, size in rows
        ]

    def _quoted(self, keep_days: float, now: float, gone: Container[int]) -> list[int]:
        rows = self._file.read(
            "SELECT seq, store, time FROM recovery WHERE title != '' AND outcome NOT IN (?, ?) ORDER BY seq", CUT_OFF
        )
        mine = {store for store in {column_text(store) for _, store, _ in rows} if self._quoting(store)}
        old = now - keep_days * DAY_S
        return [seq for seq, store, at in rows if column_text(store) in mine and (at < old or seq in gone)]

    def _name(self, seq: int) -> str:
        return str(self._file.read("SELECT id FROM recovery WHERE seq = ?", (seq,))[0][0])

    def _number(self, name: str) -> int:
        return int(self._file.read("SELECT seq FROM recovery WHERE id = ?", (name,))[0][0])

    def _shred(self) -> None:
        """Write the file anew, without a byte of what was deleted, and empty the WAL. Raises BusyError when that can't
        be.

        `secure_delete` alone leaves what an older recoveryd, without it, once deleted.
        """
        self._file.read("PRAGMA temp_store = MEMORY")  # else all that stays would stand in a file in /tmp meanwhile
        try:
            self._file.read("VACUUM")
            busy = self._file.read("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        except BusyError:
            busy = True
        if busy:
            raise BusyError(
                "It is deleted, but another process reads the ledger, so its bytes may still be in the file.",
                "Run the same command again in a moment.",
            )


def _drop_titles(db: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Take out the titles of recoveries, within a transaction."""
    db.executemany("UPDATE recovery SET title = '' WHERE seq = ?", ((number,) for number in numbers))


def _drop_images(db: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Delete the images of a recovery, within a transaction. Of a healed one digests stay, to tell whether it still
    stands.
    """
    db.create_function("digest", 1, digest, deterministic=True)
    trace = """INSERT OR REPLACE INTO trace SELECT seq, position, key, digest(after) FROM image
        WHERE seq = ? AND seq IN (SELECT seq FROM recovery WHERE outcome = 'healed')"""
    for number in numbers:
        db.execute(trace, (number,))
        db.execute("DELETE FROM image WHERE seq = ?", (number,))
