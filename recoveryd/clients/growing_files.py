"""What stores have in common whose sessions are a growing file of lines each, in folders of one root."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from recoveryd.clients.store import Stamp
from recoveryd.core import Change, Entry, NotFoundError, RefusedError, StoreError
from recoveryd.disk import UNWRITABLE, is_folder, is_read_only, real_path, tree

Found = TypeVar("Found", bound=Hashable)  # where a session's file is, as its client names it


class GrowingFiles(ABC, Generic[Found]):
    """The half of a `Store` that asks nothing of what the lines say. `root` is the folder that the client keeps.

    `others` are further names of it, in homes that share their sessions by symlinks. `needs` are the permissions
    without which it is left alone, and `lacks` says so; `noun` is what a file is called.
    """

    watch_files: tuple[Path, ...] = ()
    needs = os.R_OK | os.X_OK
    lacks = "can't be read: check its owner and mode."
    noun: str

    def __init__(self, root: Path, others: Sequence[Path] = ()) -> None:
        self.root = real_path(root)
        self.id = str(self.root)
        # What the client keeps beside it is in the folder of its name, also where that is a symlink.
        self.home, *self._other_homes = dict.fromkeys(real_path(path.parent) for path in (root, *others))
        self.lock_path = self.root
        self.watch_path = self.root
        self._files: dict[str, Found] = {}  # sessions and where they are

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    @abstractmethod
    def _list(self) -> dict[str, Found]:
        """List all sessions, and keep where they are. StoreError."""

    @abstractmethod
    def _find(self, session_id: str) -> Found:
        """Tell where a session is. NotFoundError, StoreError."""

    @abstractmethod
    def _path(self, found: Found) -> str:
        """Tell the whole path of what was found."""

    @abstractmethod
    def _missing(self, session_id: str) -> NotFoundError:
        """Say that there is no such session."""

    @property
    def homes(self) -> tuple[Path, ...]:
        """All folders of its client that have these sessions."""
        return (self.home, *self._other_homes)

    def exists(self) -> bool:
        return is_folder(self.root)

    def live(self) -> str | None:
        try:
            owner = self.root.stat().st_uid
        except FileNotFoundError:
            return f"{self.root} is not there yet."
        except OSError as error:
            return tree.error_of(error, f"look at {self.root}").message
        if owner != os.geteuid():
            return f"{self.root} belongs to another user (uid {owner}); it is left alone."
        if not os.access(self.root, self.needs):
            return f"{self.root} {self.lacks}"
        return f"{self.root} {UNWRITABLE}" if is_read_only(self.root) or self._is_closed() else None

    def _is_closed(self) -> bool:
        """Whether neither the folder nor any file may be written to; one that is written in place needs no folder."""
        if os.access(self.root, os.W_OK):
            return False
        with suppress(StoreError):  # told by whoever reads it
            return not any(os.access(self._path(found), os.W_OK) for found in self._list().values())
        return False

    def session_ids(self) -> Iterator[str]:
        """List all sessions but those whose file is empty yet."""
        for name, found in list(self._list().items()):
            with suppress(NotFoundError):
                if self._stat(name, found).st_size:
                    yield name

    def fresh(self, known: Mapping[str, str], since_ms: int) -> Iterator[tuple[str, str]]:
        """List each session whose file has another time or size than `known`."""
        del since_ms
        gone = set(known)
        for name, found in list(self._list().items()):  # what is gone by now is forgotten on the way
            gone.discard(name)
            with suppress(NotFoundError):
                status = self._stat(name, found)
                mark = f"{status.st_ctime_ns}.{status.st_size}"  # a repair keeps the other time
                if known.get(name) != mark:
                    yield name, mark
        for name in gone:
            yield name, ""

    def written_since(self, since_ms: int) -> Iterator[str]:
        for name, found in list(self._list().items()):
            with suppress(NotFoundError):
                status = self._stat(name, found)
                if status.st_size and status.st_mtime_ns >= since_ms * 1_000_000:
                    yield name

    def has(self, session_id: str) -> bool:
        try:
            self._find(session_id)
        except NotFoundError:
            return False
        return True

    def stamp(self, session_id: str) -> Stamp:
        found = self._find(session_id)
        status = self._stat(session_id, found)
        return Stamp(status.st_mtime_ns, (found, status.st_ino, status.st_size, status.st_ctime_ns))

    def located(self, changes: Sequence[Change]) -> list[Change]:
        return list(changes)

    def undo_obstacle(self, entry: Entry, changes: Sequence[Change]) -> RefusedError | None:
        del entry, changes
        return None

    @staticmethod
    def _own(fd: int, path: str) -> None:
        """Refuse an open file of somebody else, as a whole store of theirs is refused. StoreError."""
        owner = os.fstat(fd).st_uid
        if owner != os.geteuid():
            raise StoreError(f"{path} belongs to another user (uid {owner}); it is left alone.")

    def _stat(self, session_id: str, found: Found) -> os.stat_result:
        try:
            return os.lstat(self._path(found))
        except FileNotFoundError:
            self._files.pop(session_id, None)
            raise self._missing(session_id) from None
        except OSError as error:
            raise tree.error_of(error, f"look at the {self.noun} of {session_id}") from error
