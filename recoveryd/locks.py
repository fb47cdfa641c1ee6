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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from recoveryd import __version__
from recoveryd.errors import BusyError, DiskError, NotFoundError, StoreError

_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a lock: process id, since when (seconds since the epoch), version of recoveryd, what for.

    Of a `run`, `doing` is how it was started ("service", "terminal", "program"), and `stores` are those it watches.
    """

    pid: int
    since: float
    version: str = __version__
    doing: str = ""
    stores: tuple[str, ...] = ()

    def __str__(self) -> str:
        when = time.localtime(self.since)
        today = when[:3] == time.localtime()[:3]
        return f"pid {self.pid}, since {time.strftime('%H:%M' if today else '%Y-%m-%d %H:%M', when)}"


class StoreLock:
    """That one `run` watches a store: held on the store's own folder, so two state folders don't make it two.

    `store` is named in messages and in the note; `folder` must exist. Databases in one folder share the lock, so the
    note is the folder's, and says which of them are watched (`watch`).
    """

    def __init__(self, folder: Path, state_dir: Path, store: str) -> None:
        self.folder = folder
        self.store = store
        self._note = _note(state_dir, str(folder), "run.json")
        self._holder: Holder | None = None
        self._fd = -1

    def acquire(self) -> None:
        """Raises `BusyError` with who has it, `NotFoundError` when there is no such folder, `StoreError`."""
        fd = _open_folder(self.folder)
        try:
            taken = _try_lock(fd, self.folder)
            if taken:
                self._holder = Holder(os.getpid(), time.time(), doing=_started(), stores=(self.store,))
                _write_note(self._note, self._holder)
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

    def watch(self, store: str) -> None:
        """Say that this store is watched under this lock, too."""
        if self._holder is not None and store not in self._holder.stores:
            self._holder = replace(self._holder, stores=(*self._holder.stores, store))
            _write_note(self._note, self._holder)

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


def watcher(state_dir: Path, folder: Path) -> Holder | None:
    """Which `run` holds the lock of `folder`, by its note; None if none does.

    A note that a crash left is believed no longer once the kernel says that its process holds no lock on the folder.
    """
    holder = _read_note(_note(state_dir, str(folder), "run.json"))
    if holder is not None and (pids := lockers(folder)) is not None and holder.pid not in pids:
        return None
    return holder


def stale(state_dir: Path, folder: Path) -> bool:
    """Whether a crash left a note. It does no harm: the next `run` writes over it."""
    return _note(state_dir, str(folder), "run.json").exists() and watcher(state_dir, folder) is None


def lockers(folder: Path) -> set[int] | None:
    """The processes that hold a lock on a folder; None where the kernel does not tell (macOS, another namespace).

    Told by the inode's number alone: some file systems tell `stat` another device than they tell here (proc_locks(5)).
    """
    try:
        inode = str(folder.stat().st_ino)
        found = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return None
    held = [words for words in found if words[1] == "FLOCK"]  # a second word "->": one that waits
    return {int(words[4]) for words in held if words[5].rpartition(":")[2] == inode}


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


def _started() -> str:
    """How this process was started: systemd says which process it started itself (systemd.exec(5))."""
    if os.environ.get("SYSTEMD_EXEC_PID") == str(os.getpid()) or "recoveryd" in os.environ.get("XPC_SERVICE_NAME", ""):
        return "service"
    with suppress(OSError):
        return "terminal" if os.isatty(0) else "program"
    return "program"


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
        stores = tuple(map(str, data.get("stores", ())))
        holder = Holder(int(data["pid"]), float(data["since"]), str(data["version"]), str(data["doing"]), stores)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
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
