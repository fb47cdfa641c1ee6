"""Find the files of a session in OpenCode's JSON tree, and read them while the client may be writing them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from recoveryd.clients import javascript
from recoveryd.clients.opencode import records
from recoveryd.clients.store import About
from recoveryd.core import PAGE, Json, Message, NotFoundError, Part, Session, StoreError
from recoveryd.disk import tree

RETRIES = 3
RETRY_S = 0.02  # the client truncates a file and writes it a moment later

Folder = tuple[str, ...]


class Reader:
    """Reads the sessions of OpenCode's tree of JSON files below `root`; files up to `max_file`, each up to the weight
    `max_session`.
    """

    def __init__(self, root: Path, max_file: int, max_session: int) -> None:
        self.root = root
        self.max_file = max_file
        self.max_session = max_session

    def folders(self, *below: str) -> Iterator[tuple[str, int]]:
        """List the folders with a name that can be an id, and when each changed, in nanoseconds; symlinks are left
        out.
        """
        try:
            with os.scandir(self.root.joinpath(*below)) as entries:
                for entry in entries:
                    if tree.safe_name(entry.name) and entry.is_dir(follow_symlinks=False):
                        with suppress(FileNotFoundError):
                            yield entry.name, entry.stat(follow_symlinks=False).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise tree.error_of(error, f"list {self.root.joinpath(*below)}") from error

    def where(self, session_id: str) -> Folder:
        """Find the folder of a session's messages: `message/<session>`, in older trees
        `message/<project>/<session>`.
        """
        if tree.safe_name(session_id):
            if os.path.lexists(f"{self.root}/message/{session_id}"):
                return ("message", session_id)
            for project, _ in self.folders("message"):
                if os.path.lexists(self.root / "message" / project / session_id):
                    return ("message", project, session_id)
        raise NotFoundError(f"There is no session {session_id!r} in {self.root}.")

    def session_file(self, session_id: str) -> tuple[Folder, str] | None:
        """Find folder and id of `session/<project>/<session>.json`; None when the client has none."""
        for project, _ in self.folders("session"):
            if os.path.lexists(f"{self.root}/session/{project}/{session_id}{tree.SUFFIX}"):
                return ("session", project), session_id
        return None

    def message(self, fd: int, folder: Folder, message_id: str) -> Json | None:
        """Read one message from its open folder; None when it is gone. StoreError when it stays broken."""
        path = self.path(folder, message_id)
        name = message_id + tree.SUFFIX
        for attempt in range(RETRIES + 1):
            if attempt:
                time.sleep(RETRY_S)
            try:
                data = records.parse(tree.read(fd, name, path, self.max_file), path)
            except FileNotFoundError:
                return None
            if data is not None:
                return data
        raise no_json(path)

    def about(self, session_id: str) -> About:
        """Read title, folder and parent of a session. An unknown session is an empty `About`. StoreError."""
        data = self._record(session_id)
        return About(_text(data, "title"), _text(data, "directory"), _text(data, "parentID") or None)

    def revert(self, session_id: str) -> Json | None:
        """Read what is kept of a revert that is staged in a session; None where none is. StoreError."""
        return _revert(self._record(session_id))

    def _record(self, session_id: str) -> Json:
        """Read the session's own file; {} where there is none."""
        found = self.session_file(session_id) if tree.safe_name(session_id) else None
        if found is None:
            return {}
        try:
            with tree.folder(self.root, *found[0]) as fd:
                return self.message(fd, *found) or {}
        except FileNotFoundError:
            return {}

    def path(self, folder: Folder, record: str) -> str:
        """Name a record for a person: its path."""
        return f"{self.root}/{'/'.join(folder)}/{record}{tree.SUFFIX}"

    def greatest_id(self, session_id: str) -> str:
        """Return the id of its messages that sorts last, from the names of its files; "" when there is none."""
        with suppress(NotFoundError):
            return max(tree.json_names(tree.names(self.root, *self.where(session_id))), default="")
        return ""

    def parts(self, message_id: str) -> Iterator[Json | None]:
        """Read the parts of a message, one after the other, as they are now; None for one that is no JSON object."""
        with suppress(FileNotFoundError), tree.folder(self.root, "part", message_id) as fd:
            for part_id in tree.json_names(tree.listing(fd)):
                path = self.path(("part", message_id), part_id)
                yield records.parse(tree.read(fd, part_id + tree.SUFFIX, path), path)

    def parts_written(self, folder: Folder) -> int:
        """Return when a part of the newest messages in a folder was last written, in nanoseconds; 0 where that can't be
        told.
        """
        newest = 0
        with suppress(OSError, StoreError), tree.folder(self.root, "part") as parts:
            with tree.folder(self.root, *folder) as messages:
                names = sorted(tree.listing(messages))[-PAGE:]
            for message in (name.removesuffix(tree.SUFFIX) for name in names):
                if os.access(message, os.F_OK, dir_fd=parts):  # asked of all messages of a day: it has to be cheap
                    newest = max(newest, self._newest_in(message))
        return newest

    def _newest_in(self, message_id: str) -> int:
        with suppress(FileNotFoundError), os.scandir(f"{self.root}/part/{message_id}") as parts:
            return max((part.stat(follow_symlinks=False).st_mtime_ns for part in parts), default=0)
        return 0

    def unreadable(self, session_id: str, *, whole: bool) -> bool:
        """Whether a part of its newest messages, or of the `whole` session, is no JSON."""
        with suppress(NotFoundError):
            ids = tree.json_names(tree.names(self.root, *self.where(session_id)))
            return any(map(self._holds_unreadable, reversed(ids if whole else ids[-PAGE:])))
        return False

    def _holds_unreadable(self, message_id: str) -> bool:
        files = _Records(self)
        files.read_folder(("part", message_id))
        files.settle()
        return any(data is None for _, data in files.found.values())

    def load(self, store: str, session_id: str) -> Session:
        """Load a session; it is read again from the start when a file vanished under the reading."""
        for _ in range(RETRIES):
            files = _Records(self)
            session = self._assemble(files, store, session_id)
            if not files.vanished:
                break
        return session

    def _assemble(self, files: _Records, store: str, session_id: str) -> Session:
        where = self.where(session_id)
        ids = files.read_folder(where)
        parts = {message: files.read_folder(("part", message)) for message in ids}
        about = self.session_file(session_id)
        if about:
            files.read_file(*about)
        files.settle()
        data = files.data(*about) if about else {}
        return Session(
            store=store,
            id=session_id,
            messages=tuple(files.message(where, id_, parts[id_]) for id_ in ids if (where, id_) in files.found),
            title=_text(data, "title"),
            directory=_text(data, "directory"),
            parent=_text(data, "parentID") or None,
            revert=_revert(data),
        )


class _Records:
    """The files of one session, each as its bytes and what they say; None when that is no JSON object."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._weight = 0
        self.vanished = False
        self.found: dict[tuple[Folder, str], tuple[bytes, Json | None]] = {}

    def read_folder(self, folder: Folder) -> list[str]:
        """Read every record of a folder. Returns their ids, in the order of the client."""
        try:
            with tree.folder(self._reader.root, *folder) as fd:
                ids = tree.json_names(tree.listing(fd))
                for record in ids:
                    self._read(fd, folder, record)
        except FileNotFoundError:
            return []
        return ids

    def read_file(self, folder: Folder, record: str) -> None:
        try:
            with tree.folder(self._reader.root, *folder) as fd:
                self._read(fd, folder, record)
        except FileNotFoundError:
            self._gone(folder, record)

    def settle(self) -> None:
        """Read what is no JSON again, a few times: it may have been half written."""
        for _ in range(RETRIES):
            broken = [key for key, (_, data) in self.found.items() if data is None]
            if not broken:
                return
            time.sleep(RETRY_S)
            for folder, record in broken:
                self.read_file(folder, record)

    def data(self, folder: Folder, record: str) -> Json:
        """Return what a record says that has to be JSON. StoreError when it is not."""
        _, data = self.found.get((folder, record), (b"", {}))
        if data is None:
            raise no_json(self._reader.path(folder, record))
        return data

    def message(self, folder: Folder, message: str, parts: list[str]) -> Message:
        here = ("part", message)
        stored = [
            Part(part, message, data, raw)
            for part in parts
            if (here, part) in self.found
            for raw, data in [self.found[here, part]]
        ]
        # The client sorts by the id inside; it is the name of the file unless somebody made the file by hand.
        stored.sort(key=lambda part: javascript.code_unit_order(_text(part.data or {}, "id") or part.id))
        return Message(message, self.data(folder, message), tuple(stored), self.found[folder, message][0])

    def _read(self, fd: int, folder: Folder, record: str) -> None:
        path = self._reader.path(folder, record)
        try:
            raw = tree.read(fd, record + tree.SUFFIX, path, self._reader.max_file)
        except FileNotFoundError:
            self._gone(folder, record)
            return
        known, _ = self.found.get((folder, record), (b"", None))
        if known == raw != b"":
            return
        self._weight += javascript.weight_in_memory(raw) - javascript.weight_in_memory(known)
        if self._weight > self._reader.max_session:
            limit = self._reader.max_session
            raise StoreError(f"The session of {path} is too large: it may take {limit:,} bytes of memory.")
        part = folder[0] == "part"  # of which a null stops the client
        self.found[folder, record] = (
            raw,
            records.parse_part(raw, path, null=None) if part else records.parse(raw, path),
        )

    def _gone(self, folder: Folder, record: str) -> None:
        self.found.pop((folder, record), None)
        self.vanished = True


def no_json(path: str) -> StoreError:
    """Make the error for a file that was read from OpenCode's tree and is no JSON."""
    return StoreError(f"{path} is no JSON object.", "Restore the file, or move it out of the store.")


def _revert(data: Json) -> Json | None:
    revert = data.get("revert")
    return revert if isinstance(revert, dict) else None


def _text(data: Json, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
