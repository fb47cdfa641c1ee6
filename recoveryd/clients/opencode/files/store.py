"""The store of OpenCode up to 1.1.x: a tree of JSON files, `message/<session>/` and `part/<message>/`.

Which files the client reads, and in which order: its source, and runs of 1.1.53.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from recoveryd.clients.opencode import content as opencode_content
from recoveryd.clients.opencode import generations, ids, records, session_status, store_paths
from recoveryd.clients.opencode.files import replace_ids
from recoveryd.clients.opencode.files.reader import Folder, Reader
from recoveryd.clients.opencode.files.replace_ids import MovedFiles
from recoveryd.clients.opencode.sqlite import schema
from recoveryd.clients.store import About, Content, Generation, SessionStatus, Stamp
from recoveryd.core import Change, DiskError, Edit, Entry, Json, NotFoundError, RefusedError, Session, StoreError
from recoveryd.disk import UNWRITABLE, distinct_places, file_transaction, is_folder, real_path, tree

Listed = tuple[str, int, int, int]  # a name, and the file's mtime in nanoseconds, its size and its inode


class OpencodeFiles:
    """The `Store` of OpenCode's tree of JSON files. `root` is the client's `storage` folder; `clock` gives seconds
    since the epoch.
    """

    watch_files: tuple[Path, ...] = ()
    client = "opencode"
    content: Content = opencode_content
    one_form = True
    kept_open = False
    keyed_by_place = False

    def __init__(
        self,
        root: Path,
        *,
        max_file: int = tree.MAX_FILE,
        max_session: int = records.MAX_SESSION,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.root = real_path(root)
        self.home = real_path(root.parent)
        self.id = str(self.root)
        self.lock_path = self.root
        self.watch_path = self.root / "message"
        self.writes_to = tuple(dict.fromkeys((self.home, self.root)))  # what is cut goes beside the tree
        self._reader = Reader(self.root, max_file, max_session)
        self._clock = clock

    def __repr__(self) -> str:
        return f"OpencodeFiles({self.id!r})"

    def touched(self, names: Sequence[str]) -> Iterable[str | None]:
        """Take `<session>` and `<session>/<message>.json`, both also below a `<project>`; other files are no
        session's.
        """
        *folders, last = names
        if last.endswith(tree.SUFFIX):
            if last.startswith(".") or not folders:
                return ()
            last = folders.pop()
        return (last,) if tree.safe_name(last) and len(folders) < 2 else ()

    def exists(self) -> bool:
        """Whether a tree is there. Beside its database 1.18 keeps other things (diffs) in a folder of this name."""
        if not is_folder(self.root):
            return False
        of_sessions = any(is_folder(self.root / name) for name in ("session", "message", "part"))
        return of_sessions or not any(map(os.path.lexists, store_paths.databases(self.home)))

    def live(self) -> str | None:
        try:
            owner = self.root.stat().st_uid
            database = self._moved_to()
        except FileNotFoundError:
            return f"{self.root} is not there yet."
        except StoreError as error:
            return error.message
        except OSError as error:
            return tree.error_of(error, f"look at {self.root}").message
        if database:
            return f"{self.root} is dead: OpenCode keeps its sessions in {database.name} beside it."
        if owner != os.geteuid():
            return f"{self.root} belongs to another user (uid {owner}); it is left alone."
        for folder in (self.root / "message", self.root / "part"):
            if folder.is_symlink():
                return f"{folder} is a symlink, which is not followed."
            if folder.exists() and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                return f"{folder} {UNWRITABLE}"
        return None

    def forms(self) -> tuple[str, ...]:
        """List the old form: every client with this store sends it."""
        return ("old",)

    def generation(self) -> Generation:
        """Tell whether the client left the tree for a database. StoreError when that can't be told."""
        try:
            return generations.JSON_DEAD if self._moved_to() else generations.JSON
        except OSError as error:
            raise tree.error_of(error, f"look at {self.home}") from error

    def session_ids(self) -> Iterator[str]:
        """List the ids of all folders with messages, of both depths."""
        return (session for session, *_ in self._sessions())

    def fresh(self, known: Mapping[str, str], since_ms: int) -> Iterator[tuple[str, str]]:
        """List each session whose folder has another time than `known`: a message was added, which a rewritten one does
        not show.

        A part that is written over, say cut off by a crash, is seen where a message came since `since_ms`.
        """
        gone = set(known)
        for session, changed, folder in self._sessions():
            gone.discard(session)
            young = changed >= since_ms * 1_000_000  # an old failure is still worth a summary
            parts = self._reader.parts_written(folder) if young else 0
            if known.get(session) != (mark := f"{changed}.{parts}"):
                yield session, mark
        for session in gone:
            yield session, ""

    def written_since(self, since_ms: int) -> Iterator[str]:
        return (session for session, changed, _ in self._sessions() if changed >= since_ms * 1_000_000)

    def _sessions(self) -> Iterator[tuple[str, int, Folder]]:
        """List each session, when its folder changed, in nanoseconds, and the folder. One listing: there may be ten
        thousand.
        """
        seen: set[str] = set()
        for name, changed in self._reader.folders("message"):
            # All of OpenCode's session ids begin so; any other folder has to be opened to tell.
            flat = name.startswith("ses") or tree.json_names(tree.names(self.root, "message", name))
            above = ("message",) if flat else ("message", name)
            for session, time_ns in [(name, changed)] if flat else self._reader.folders(*above):
                if session not in seen:
                    seen.add(session)
                    yield session, time_ns, (*above, session)

    def look(self, session_id: str) -> SessionStatus:
        """Tell whether the session is stuck now: reads messages from the newest back, until one settles it."""
        try:
            where = self._reader.where(session_id)
            with tree.folder(self.root, *where) as fd:

                def read(message_id: str) -> Json | None:
                    return self._reader.message(fd, where, message_id)

                newest = ids.newest_first(tree.json_names(tree.listing(fd)), read, int(self._clock() * 1000))
                revert = partial(self._reader.revert, session_id)
                return session_status.look(self.id, session_id, newest, self._reader.parts, revert)
        except (FileNotFoundError, NotFoundError):
            return SessionStatus()

    def about(self, session_id: str) -> About:
        """Return title, folder and parent. An unknown session is an empty `About`. StoreError."""
        return self._reader.about(session_id)

    def has(self, session_id: str) -> bool:
        """Whether it has a message of the session."""
        return bool(self._reader.greatest_id(session_id))

    def greatest_id(self, session_id: str) -> str:
        return self._reader.greatest_id(session_id)

    def names_tail(self, session_id: str) -> bool:
        """Say no: no client with this store names a tail."""
        del session_id
        return False

    def unreadable(self, session_id: str, *, whole: bool = False) -> bool:
        """Whether a part of its newest messages is no JSON."""
        return self._reader.unreadable(session_id, whole=whole)

    def load(self, session_id: str) -> Session:
        """Load the whole session. StoreError for a message that stays broken, for what is no file, and for too much."""
        return self._reader.load(self.id, session_id)

    def stamp(self, session_id: str) -> Stamp:
        """Return a stamp that changes with every write to a file of the session, and with every file that comes or
        goes.
        """
        messages = self._entries(self._reader.where(session_id))
        about = self._reader.session_file(session_id)
        entries = [*messages, *(self._entries(about[0], about[1] + tree.SUFFIX) if about else ())]
        for message_id in tree.json_names([name for name, *_ in messages]):
            entries += self._entries(("part", message_id))
        return Stamp(max((mtime for _, mtime, *_ in entries), default=0), tuple(entries))

    def strangers(self, session_id: str) -> list[str]:
        """List files that the client takes for a message or a part, with names that none can have; relative to
        `root`.
        """
        where = self._reader.where(session_id)
        messages = tree.json_names(tree.names(self.root, *where))
        found = []
        for folder in [where, *(("part", message_id) for message_id in messages)]:
            names = tree.names(self.root, *folder)
            known = {identifier + tree.SUFFIX for identifier in tree.json_names(names)}
            found += ["/".join((*folder, name)) for name in names if not name.startswith(".") and name not in known]
        return sorted(found)

    def changes(self, session: Session, edits: Sequence[Edit]) -> list[Change]:
        """Make one change a file; what is new gets the ids that the client writes into each, and the mode of a
        neighbour.
        """
        where = self._reader.where(session.id)
        changes = []
        for edit, stored in records.records_of_edits(session, edits):
            if edit.part_id is None:
                named, path = {"id": edit.message_id, "sessionID": session.id}, (*where, edit.message_id)
            else:
                named = {"id": edit.part_id, "sessionID": session.id, "messageID": edit.message_id}
                path = ("part", edit.message_id, edit.part_id)
            before = stored.raw if stored else None
            after = None if edit.after is None else records.dump({**named, **edit.after})
            # The same words in another layout are no reason to write.
            same = stored is not None and stored.data is not None and after == records.dump(stored.data)
            if after != before and not same:
                key = "/".join(path) + tree.SUFFIX
                beside = [edit.message_id, *(message.id for message in session.messages[-1:])]
                mode = self._mode(key, *("/".join((*where, message)) + tree.SUFFIX for message in beside))
                changes.append(Change(key, before, after, mode))
        return changes

    def with_new_ids(self, session: Session, names: Mapping[str, str], keep: Collection[str] = ()) -> list[Change]:
        """Make the same files under the new ids; the session's own file too, where a revert is staged."""
        found = self._reader.session_file(session.id)
        key = "/".join((*found[0], found[1])) + tree.SUFFIX if found else ""
        raw = self.read(key) if found and session.revert else None
        about = None if raw is None else (key, raw)
        return replace_ids.changes(session, self._reader.where(session.id), about, MovedFiles(names, keep, self._mode))

    def apply(self, changes: Sequence[Change]) -> None:
        """Write all of `changes`, durably, or none. Files have no compare-and-swap: an instant is left to the client.

        ConflictError before or while it is written; StoreError for a store that is not live, or can't be written.
        """
        dead = self.live()
        if dead:
            raise DiskError(dead)
        try:
            file_transaction.write_files(self.root, changes)
        except OSError as error:
            raise tree.error_of(error, f"write to {self.root}") from error

    def read(self, key: str) -> bytes | None:
        """Read one file, by its path relative to `root`."""
        return file_transaction.read(self.root, key, self._reader.max_file)

    def read_all(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self.read(key) for key in keys]

    def located(self, changes: Sequence[Change]) -> list[Change]:
        return list(changes)

    def undo_obstacle(self, entry: Entry, changes: Sequence[Change]) -> RefusedError | None:
        """Refuse where a revert was staged since, to an id that would go."""
        return opencode_content.undo_obstacle(entry, changes, lambda: self.load(entry.session).revert)

    def clean(self, changes: Sequence[Change]) -> int:
        """Remove the temporary files that a crash left in the folders of `changes`."""
        try:
            return file_transaction.remove_temporary(self.root, (change.key for change in changes))
        except OSError as error:
            raise tree.error_of(error, f"clean up in {self.root}") from error

    def _moved_to(self) -> Path | None:
        """Find the database beside the tree that the client keeps its sessions in now.

        One of another channel may be used beside it: only if it was written to since, and has the session that the tree
        was last written for: it takes all of them over.
        """
        own, *_ = named = store_paths.databases(self.home)
        there = {path: real_path(path) for path in named if os.path.lexists(path)}  # asked often, and few are there
        if own in there and _written(there[own]) and schema.keeps_sessions(there[own]):
            return there[own]
        beside = [real for path, real in there.items() if path != own and _written(real)]
        found = ((changed, session) for session, changed, _ in self._sessions()) if beside else ()
        last, newest = max(found, default=(0, ""))
        messages = tree.json_names(tree.names(self.root, *self._reader.where(newest))) if newest else []
        return next((path for path in beside if _written(path) > last and schema.has_messages(path, messages)), None)

    def _entries(self, folder: tuple[str, ...], only: str | None = None) -> list[Listed]:
        entries = []
        try:
            with tree.folder(self.root, *folder) as fd:
                # A file that went away leaves no trace but the time of its folder.
                for name in [only] if only else [".", *sorted(tree.listing(fd))]:
                    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    entries.append((name, found.st_mtime_ns, found.st_size, found.st_ino))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise tree.error_of(error, f"look at {self.root.joinpath(*folder)}") from error
        return entries

    def _mode(self, *keys: str) -> int | None:
        """Return the permission bits of the first of these files that is there."""
        for key in keys:
            with suppress(OSError):
                return stat.S_IMODE(os.lstat(f"{self.root}/{key}").st_mode)
        return None


def _written(database: Path) -> int:
    """Return when a database was last written to, in nanoseconds since the epoch; 0 when it is not there."""
    files = (database, Path(f"{database}-wal"))
    return max((file.stat().st_mtime_ns for file in files if os.path.lexists(file)), default=0)


def find_stores(data_dirs: Sequence[Path], env: Mapping[str, str]) -> list[OpencodeFiles]:
    """List the JSON trees, the client's own place first; also those that do not exist yet.

    `data_dirs` are further places: a data folder of OpenCode (`.../opencode`) or its `storage` folder itself.
    """
    roots = [f if f.name == "storage" else f / "storage" for f in store_paths.data_folders(env, data_dirs)]
    return [OpencodeFiles(root) for root in distinct_places(roots)]
