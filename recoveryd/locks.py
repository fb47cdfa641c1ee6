"""One daemon a store, one recovery at a time. The kernel frees a lock with its process; notes only say who has it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from recoveryd import __version__
from recoveryd.errors import BusyError, DiskError, NotFoundError, StoreError

_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a lock: process id, since when (seconds since the epoch), version of recoveryd, what for."""

    pid: int
    since: float
    version: str = __version__
    doing: str = ""

    def __str__(self) -> str:
        when = time.localtime(self.since)
        today = when[:3] == time.localtime()[:3]
        return f"pid {self.pid}, since {time.strftime('%H:%M' if today else '%Y-%m-%d %H:%M', when)}"


class StoreLock:
    """That one `run` watches a store: held on the store's own folder, so two state folders don't make it two.

    `store` names the store in messages and in the name of the note; `folder` must exist.
    """

    def __init__(self, folder: Path, state_dir: Path, store: str) -> None:
        self.folder = folder
        self.store = store
        self._note = _note(state_dir, store, "run.json")
        self._fd = -1

    def acquire(self) -> None:
        """Raises `BusyError` with who has it, `NotFoundError` when there is no such folder, `StoreError`."""
        fd = _open_folder(self.folder)
        try:
            taken = _try_lock(fd, self.folder)
            if taken:
                _write_note(self._note, Holder(os.getpid(), time.time()))
        except BaseException:
            os.close(fd)
            raise
        if not taken:
            os.close(fd)
            who = _read_note(self._note)
            raise BusyError(
                f"recoveryd is already watching {self.store} ({who or 'it does not say which process'}).",
                "Stop that one first. `undo` and `scan --repair` work beside it.",
            )
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            with suppress(OSError):
                self._note.unlink()
            os.close(self._fd)
            self._fd = -1

    def holds(self) -> bool:
        """Whether the folder at the path is still the locked one. A folder that was replaced has to be locked anew."""
        try:
            here, locked = self.folder.stat(), os.fstat(self._fd)
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == (locked.st_dev, locked.st_ino)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def watcher(state_dir: Path, store: str) -> Holder | None:
    """Which `run` watches a store, for `status`; None if none does."""
    return _read_note(_note(state_dir, store, "run.json"))


def watchers(state_dir: Path) -> list[Holder]:
    """Every `run` that watches a store and keeps its notes here."""
    found = [_read_note(note) for note in sorted(state_dir.glob("*.run.json"))]
    return [holder for holder in found if holder is not None]


@contextmanager
def recovery_lock(state_dir: Path, store: str, timeout: float = 10.0, doing: str = "a recovery") -> Iterator[None]:
    """The short lock that recoveries, `undo` and `scan --repair` share for a store. Waits up to `timeout` seconds.

    Raises `BusyError` with who has it, `StoreError`.
    """
    # Never removed: whoever waits on a file that was unlinked would lock what nobody else sees.
    path = _note(state_dir, store, "lock")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DiskError(f"The lock {path} can't be made: {error.strerror or error}.") from error
    try:
        deadline, wait = time.monotonic() + timeout, _FIRST_WAIT
        while not _try_lock(fd, path):
            left = deadline - time.monotonic()
            if left <= 0:
                who = _read_note(path)
                said = f"{who.doing} ({who})" if who else "another process"
                raise BusyError(f"{store} is being repaired by {said}.", "Try again in a moment.")
            time.sleep(min(wait, left))
            wait = min(wait * 2, _LONGEST_WAIT)
        with suppress(OSError):  # the lock is what counts, not the note: a full disk must not stop a recovery here
            os.truncate(fd, 0)
            os.pwrite(fd, _json(Holder(os.getpid(), time.time(), doing=doing)), 0)
        try:
            yield
        finally:
            os.truncate(fd, 0)
    finally:
        os.close(fd)


def _note(state_dir: Path, store: str, suffix: str) -> Path:
    name = hashlib.blake2s(store.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return state_dir / f"{name}.{suffix}"


def _open_folder(folder: Path) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f"There is no folder {folder} to lock.") from error
    except OSError as error:
        raise StoreError(f"{folder} can't be locked: {error.strerror or error}.") from error


def _try_lock(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise StoreError(f"{path} can't be locked: {error.strerror or error}.") from error
    return True


def _json(holder: Holder) -> bytes:
    return json.dumps(asdict(holder)).encode()


def _write_note(path: Path, holder: Holder) -> None:
    aside = path.with_name(f".{path.name}.{holder.pid}")
    with suppress(OSError):
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, _json(holder))
        finally:
            os.close(fd)
        aside.replace(path)


def _read_note(path: Path) -> Holder | None:
    """None when there is none, it is half written, or its process is gone (a crash left it)."""
    try:
        data = json.loads(path.read_bytes())
        holder = Holder(int(data["pid"]), float(data["since"]), str(data["version"]), str(data["doing"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return holder if _alive(holder.pid) else None


def _alive(pid: int) -> bool:
    if pid <= 0:  # for kill() those are groups
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # another user's
    except (OSError, OverflowError):
        return False
    return True
