"""The store of OpenCode from 1.2 on: a SQLite database with a row for each message and part.

Its tables, and what the client makes of them: runs of 1.2.1 and 1.18.33.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from recoveryd.clients.opencode import content as opencode_content
from recoveryd.clients.opencode import generations, records, store_paths
from recoveryd.clients.opencode.sqlite import replace_ids, rows, schema, transaction
from recoveryd.clients.opencode.sqlite.cursor import Cursor
from recoveryd.clients.opencode.sqlite.reader import RowReader
from recoveryd.clients.store import About, Content, Generation, SessionStatus, Stamp, is_hidden
from recoveryd.core import BusyStoreError, Change, DiskError, Edit, Entry, Message, RefusedError, Session, StoreError
from recoveryd.disk import BUSY_S, UNWRITABLE, Database, distinct_places, is_folder, real_path, tree


class OpencodeSqlite:
    """The `Store` of one database of OpenCode. `path` is the file; `clock` gives seconds since the epoch; `data` is the
    data folder of a client whose database may be elsewhere.
    """

    content: Content = opencode_content
    one_form = False
    kept_open = False  # its folder is watched for writes
    keyed_by_place = False

    def __init__(
        self,
        path: Path,
        *,
        max_row: int = tree.MAX_FILE,
        max_session: int = records.MAX_SESSION,
        busy_s: float = BUSY_S,
        clock: Callable[[], float] = time.time,
        client: str = "opencode",
        title: str = records.TITLE,
        data: Path | None = None,
    ) -> None:
        self.client = client
        self.root = real_path(path)
        self.id = str(self.root)
        self.lock_path = self.watch_path = self.root.parent
        self._beside, self._data = real_path(path.parent), data
        self.watch_files = (self.root, Path(f"{self.root}-wal"))
        self._clock = clock
        self._database = Database(self.root, max_row=max_row, busy_s=busy_s, user=title)
        self._tables = schema.Tables(self._database)
        self._reader = RowReader(self.id, client, self._database, self._tables, max_session)
        self._cursor = Cursor(self._database, self._tables, clock)

    def __repr__(self) -> str:
        return f"OpencodeSqlite({self.id!r})"

    @property
    def home(self) -> Path:
        """The client's data folder. A variable may name a database anywhere; its log tells where the client is."""
        return self._beside if self._data is None or is_folder(self._beside / "log") else self._data

    @property
    def writes_to(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.root.parent, self.home)))

    def touched(self, names: Sequence[str]) -> Iterable[str | None]:
        """Take a write to the WAL or to the database itself for one to all sessions: it doesn't tell whose it is."""
        return (None,) if names in [(file.name,) for file in self.watch_files] else ()

    def exists(self) -> bool:
        """Whether there is a database. An empty file is one that nothing was ever kept in."""
        try:
            found = self.root.lstat()
        except OSError:
            return False
        return found.st_size > 0 or not stat.S_ISREG(found.st_mode)

    def live(self) -> str | None:
        """Tell why the store can't be edited, in a sentence; None when it can. BusyStoreError."""
        if not self.exists() and not is_hidden(self):
            return f"{self.root} is not there yet."
        try:
            owner = self._database.check().st_uid
            if owner != os.geteuid():
                return f"{self.root} belongs to another user (uid {owner}); it is left alone."
            for path in (self.root, Path(f"{self.root}-wal"), Path(f"{self.root}-shm"), self.root.parent):
                if path.exists() and not os.access(path, os.R_OK | os.W_OK):
                    return f"{path} {UNWRITABLE}"
            return schema.why_not_edited(self._database.read(self._tables.schema), self.root)
        except BusyStoreError:
            raise
        except StoreError as error:
            return error.in_a_line

    def forms(self) -> tuple[str, ...]:
        """List the wire form of the client that made the tables."""
        return ("new",) if self._reader.schema().events else ("paged",)

    def generation(self) -> Generation:
        """Tell the generation by the tables that are there."""
        found = self._database.read(self._tables.schema)
        if found.foreign:
            return generations.OPENCODE_2
        if found.unknown:
            return generations.UNKNOWN
        return generations.SQLITE_EVENTS if found.events else generations.SQLITE

    def session_ids(self) -> Iterator[str]:
        """List the ids of all sessions that have messages."""
        return self._reader.session_ids()

    def fresh(self, known: Mapping[str, str], since_ms: int) -> Iterator[tuple[str, str]]:
        """List sessions written to since the last call; at the first, those with messages made since `since_ms`."""
        del known  # the place is kept in memory: a mark of each session could only be had by reading all of them
        yield from ((session, "") for session in self._cursor.fresh(since_ms))

    def written_since(self, since_ms: int) -> Iterator[str]:
        return iter(self._reader.sessions_since(since_ms, int(self._clock() * 1000)))

    def look(self, session_id: str) -> SessionStatus:
        """Tell whether the session is stuck now: reads messages from the newest back, until one settles it."""
        return self._reader.look(session_id)

    def about(self, session_id: str) -> About:
        """Return title, folder and parent. An unknown session is an empty `About`."""
        return self._reader.about(session_id)

    def has(self, session_id: str) -> bool:
        """Whether it has a message of the session."""
        return bool(self._reader.greatest_id(session_id))

    def greatest_id(self, session_id: str) -> str:
        return self._reader.greatest_id(session_id)

    def names_tail(self, session_id: str) -> bool:
        return self._reader.names_tail(session_id)

    def unreadable(self, session_id: str, *, whole: bool = False) -> bool:
        """Whether a part of its newest messages is no JSON."""
        return self._reader.unreadable(session_id, whole=whole)

    def load(self, session_id: str) -> Session:
        """Load the whole session. StoreError for a message that is no JSON, and for too much; NotFoundError."""
        return self._reader.load(session_id)

    def stamp(self, session_id: str) -> Stamp:
        """Return a stamp that changes with every write to the session."""
        return self._reader.stamp(session_id)

    def strangers(self, session_id: str) -> list[str]:
        """Return nothing: a row is a record, or of no session."""
        del session_id
        return []

    def changes(self, session: Session, edits: Sequence[Edit]) -> list[Change]:
        """Make one change a row, ordered so that no part is ever without its message.

        A message that goes takes its parts with it, so these are set aside first, each with its image.
        """
        now = int(self._clock() * 1000)
        found: list[Change] = []
        for edit, stored in records.records_of_edits(session, _with_parts(session, edits)):
            table, identifier = ("message", edit.message_id) if edit.part_id is None else ("part", edit.part_id)
            before = stored.raw if stored else None
            if edit.after is None:
                after = None
            else:
                text = rows.text_of(table, edit.after)
                # The same words in another layout are no reason to write.
                if stored is not None and stored.data is not None and text == rows.text_of(table, stored.data):
                    continue
                row = rows.row_of_image(table, before) if before else _new_row(session, edit, now)
                after = rows.row_image({**row, "time_updated": now, "data": text})
            if after != before:
                found.append(Change(rows.row_key(table, identifier), before, after))
        return sorted(found, key=lambda change: 1 if change.key.startswith("part/") else 0 if change.after else 2)

    def with_new_ids(self, session: Session, names: Mapping[str, str], keep: Collection[str] = ()) -> list[Change]:
        """Make the same rows under the new ids; the session's own row too, where a revert is staged."""
        about = self.read(rows.row_key("session", session.id)) if session.revert else None
        return replace_ids.changes(session, about, names, keep)

    def apply(self, changes: Sequence[Change]) -> None:
        """Write all of `changes` in one transaction, or none. BusyStoreError when another writer doesn't let go."""
        dead = self.live()
        if dead:
            raise DiskError(dead)
        transaction.write_rows(self._database, changes)

    def read(self, key: str) -> bytes | None:
        """Read one row, by its table and id, as JSON of its columns."""
        return self._reader.images([key])[0]

    def read_all(self, keys: Sequence[str]) -> list[bytes | None]:
        return self._reader.images(keys)

    def located(self, changes: Sequence[Change]) -> list[Change]:
        return list(changes)

    def undo_obstacle(self, entry: Entry, changes: Sequence[Change]) -> RefusedError | None:
        """Refuse where a revert was staged since, to an id that would go."""
        return opencode_content.undo_obstacle(entry, changes, lambda: self.load(entry.session).revert)

    def clean(self, changes: Sequence[Change]) -> int:
        """Remove nothing: SQLite takes back what a crash cut off."""
        for change in changes:
            rows.split_key(change.key)
        return 0


def _with_parts(session: Session, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Add to `edits` all the parts of each message that goes; last, as the last edit of a record counts."""
    yield from edits
    gone = {edit.message_id: edit for edit in edits if edit.part_id is None and edit.after is None}
    for message in session.messages:
        if message.id in gone:
            yield from (Edit(message.id, part.id, None, gone[message.id].action) for part in message.parts)


def _new_row(session: Session, edit: Edit, now: int) -> rows.Row:
    """Make the columns of a row that is not there yet."""
    assert edit.after is not None
    times = {"session_id": session.id, "time_created": now, "time_updated": now, "data": ""}
    if edit.part_id is not None:
        return {"id": edit.part_id, "message_id": edit.message_id, **times}
    return {"id": edit.message_id, **times, "time_created": Message(edit.message_id, edit.after).created}


def find_stores(
    data_folders: Sequence[Path], databases: Sequence[Path], env: Mapping[str, str]
) -> list[OpencodeSqlite]:
    """List the databases, each once: OpenCode's own, which may still come, other channels', those named."""
    found = []
    named = env.get("OPENCODE_DB", "")
    if named and named != ":memory:" and "\0" not in named:
        found.append(data_folders[0] / named)
    for folder in data_folders:
        own, *others = store_paths.databases(folder)
        found += [own, *(path for path in others if os.path.lexists(path))]
    found += [path.expanduser() for path in databases]
    return [OpencodeSqlite(path, data=data_folders[0]) for path in distinct_places(found)]
