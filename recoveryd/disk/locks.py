"""One daemon a store, one recovery at a time. The kernel frees a lock with its process; notes only say who has it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from recoveryd.core import BusyError, DiskError, NotFoundError, RecoverydError, StoreError, __version__, command_line
from recoveryd.disk import private_files
from recoveryd.disk.lock_notes import LockOwner, read_note, write_note

_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.1
_TRIES = 100  # to lock a file that is still there then; each lost one is a lock that another process gave back


class StoreLock:
    """That one `run` of this user watches a store. Held on a file in the folder `place`, which is made private: who can
    read the store can't hold the lock.

    The file is named for the device and the number of the store's `folder`, so every path to it is the same lock.
    Databases in one folder share it; the note in the file says which of them are watched (`watch`). `store` is named
    in messages.
    """

    def __init__(self, folder: Path, place: Path, store: str) -> None:
        self.folder = folder
        self.store = store
        self._place = place
        self._file = place
        self._holder: LockOwner | None = None
        self._fd = -1

    def acquire(self) -> None:
        """Take the lock. Raises `BusyError` with who has it, `NotFoundError` when there is no such folder,
        `RecoverydError`.
        """
        self._file = _run_file(self._place, self.folder)
        private_files.make_folder(self._place)
        fd = _take(self._file)
        if fd is None:
            who = read_note(self._file)
            raise BusyError(
                f"recoveryd is already watching {self.store} ({who or 'it does not say which process'}).",
                f"Stop that one first (`{command_line('stop')}`, or Ctrl-C where it runs). `undo` and `scan --repair` "
                "work beside it.",
            )
        self._fd = fd
        self._holder = LockOwner(os.getpid(), time.time(), doing=_started(), stores=(self.store,))
        write_note(fd, self._holder)

    def watch(self, store: str, idle: str = "") -> None:
        """Say that this store is watched under this lock, too, and why nothing is repaired (`idle`), if that is so."""
        known = self._holder
        if known is not None and (store not in known.stores or idle != known.idle):
            self._holder = replace(known, stores=tuple(dict.fromkeys((*known.stores, store))), idle=idle)
            write_note(self._fd, self._holder)

    def release(self) -> None:
        """Give the lock back, and remove its file. Nothing happens when it is not held."""
        if self._fd >= 0:
            _give_back(self._fd, self._file)
            self._fd = -1

    def holds(self) -> bool:
        """Whether what was locked is still the lock of the folder at the path, which may have been replaced."""
        try:
            here, locked = _run_file(self._place, self.folder).stat(), os.fstat(self._fd)
        except (OSError, RecoverydError):
            return False
        return (here.st_dev, here.st_ino) == (locked.st_dev, locked.st_ino)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class RunNote:
    """That a `run` of this user is there, also while there is no store to lock: a note in the folder `place`."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._file = _note(place, f"process {os.getpid()}", "daemon.json")
        self._since = time.time()
        self._fd = -1

    def say(
        self,
        stores: Iterable[str],
        idle: str,
        late: Mapping[str, str] | None = None,
        unusable: Mapping[str, str] | None = None,
    ) -> None:
        """Write which stores it watches or waits for, why nothing is repaired (`idle`), what is `late`, and what is
        `unusable`. Raises nothing: the locks of the stores tell of it, too.
        """
        with suppress(RecoverydError):
            private_files.make_folder(self._place)
            if self._fd < 0:
                self._remove_left_over()
            taken = _take(self._file) if self._fd < 0 else self._fd
            if taken is not None:
                self._fd = taken
                told = late or {}, unusable or {}
                write_note(
                    taken, LockOwner(os.getpid(), self._since, __version__, _started(), tuple(stores), idle, *told)
                )

    def _remove_left_over(self) -> None:
        """Remove the notes of processes that a crash ended: nobody holds them."""
        for file in self._place.glob("*.daemon.json"):
            if (fd := _take(file)) is not None:
                _give_back(fd, file)

    def release(self) -> None:
        """Remove the note."""
        if self._fd >= 0:
            _give_back(self._fd, self._file)
            self._fd = -1


def watcher(place: Path, folder: Path) -> LockOwner | None:
    """Name the `run` that has the lock of a folder, by its note; None if none does."""
    try:
        return _believed(_run_file(place, folder))
    except RecoverydError:
        return None


def is_left_over(place: Path, folder: Path) -> bool:
    """Whether a crash left the note of a lock. The next `run` writes over it."""
    try:
        file = _run_file(place, folder)
        return file.stat().st_size > 0 and _believed(file) is None
    except (OSError, RecoverydError):
        return False


def lockers(place: Path, folder: Path) -> set[int] | None:
    """List the processes that hold the lock of a folder; None where the kernel does not tell."""
    try:
        return _lockers(_run_file(place, folder))
    except RecoverydError:
        return None


def watchers(place: Path) -> list[LockOwner]:
    """List every `run` of this user once, also those that have no store to watch yet."""
    notes = (*sorted(place.glob("*.run.json")), *sorted(place.glob("*.daemon.json")))
    found = [holder for file in notes if (holder := _believed(file)) is not None]
    return list({holder.pid: holder for holder in found}.values())


def _believed(file: Path) -> LockOwner | None:
    """Return who a note names; a note that a crash left is believed no longer once the kernel says so."""
    holder = read_note(file)
    if holder is not None and (pids := _lockers(file)) is not None and holder.pid not in pids:
        return None
    return holder


def _lockers(file: Path) -> set[int] | None:
    """List the processes that hold a lock on a file; None where the kernel does not tell (macOS, another namespace).

    Told by the inode's number alone: some file systems tell `stat` another device than they tell here (proc_locks(5)).
    """
    try:
        found = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        inode = str(file.stat().st_ino)
    except FileNotFoundError:
        return set() if Path("/proc/locks").exists() else None
    except OSError:
        return None
    held = [words for words in found if words[1] == "FLOCK"]  # a second word "->": one that waits
    return {int(words[4]) for words in held if words[5].rpartition(":")[2] == inode}


@contextmanager
def recovery_lock(
    folder: Path, place: Path, store: str, timeout: float = 10.0, doing: str = "a recovery"
) -> Iterator[None]:
    """Hold the short lock that recoveries, `undo` and `scan --repair` share for the stores of a `folder`.

    Held in `place`, as `StoreLock`, whatever state folder each of them uses. Waits up to `timeout` seconds. `store` is
    named in messages. Raises `BusyError` with who has it, `StoreError`.
    """
    try:
        path = _lock_file(place, folder, "lock")
    except NotFoundError:  # a store that is gone: nobody can write to it, and what is asked of it says so
        path = _note(place, store, "lock")
    private_files.make_folder(place)
    deadline, wait = time.monotonic() + timeout, _FIRST_WAIT
    while (fd := _take(path)) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            who = read_note(path)
            said = f"{who.doing} ({who})" if who else "another process"
            raise BusyError(f"{store} is being repaired by {said}.", "Try again in a moment.")
        time.sleep(min(wait, left))
        wait = min(wait * 2, _LONGEST_WAIT)
    try:
        write_note(fd, LockOwner(os.getpid(), time.time(), doing=doing))
        yield
    finally:
        _give_back(fd, path)


def _note(place: Path, of: str, suffix: str) -> Path:
    name = hashlib.blake2s(of.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return place / f"{name}.{suffix}"


def _run_file(place: Path, folder: Path) -> Path:
    return _lock_file(place, folder, "run.json")


def _lock_file(place: Path, folder: Path, suffix: str) -> Path:
    """Name the lock for the device and the number of the folder, so every path to it is the same lock."""
    try:
        found = folder.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f"There is no folder {folder} to lock.") from error
    except OSError as error:
        raise StoreError(f"{folder} can't be locked: {error.strerror or error}.") from error
    if not stat.S_ISDIR(found.st_mode):
        raise NotFoundError(f"There is no folder {folder} to lock.")
    return _note(place, f"{found.st_dev}:{found.st_ino}", suffix)


def _take(path: Path) -> int | None:
    """Lock the file at `path`, made if it is not there. Returns its descriptor, or None while another process has it.

    Whoever gives a lock back removes its file (`_give_back`). So a file that is no longer at `path` once it is locked
    is no lock: two processes could each have one of those. The file that is there by then is tried instead.
    """
    for _ in range(_TRIES):
        fd = _open(path)
        try:
            taken = _try_lock(fd, path)
            current = private_files.is_at(fd, path)
        except BaseException:
            os.close(fd)
            raise
        if taken and current:
            return fd
        os.close(fd)
        if current:
            return None
    raise DiskError(f"The lock {path} can't be held: another program removes it again and again.")


def _give_back(fd: int, path: Path) -> None:
    """Remove the file of a lock that is held, then let go of it: nobody else removes it while it is held."""
    try:
        with suppress(OSError):
            os.truncate(fd, 0)  # the note, if the file has to stay
            if private_files.is_at(fd, path):
                path.unlink()
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DiskError(f"The lock {path} can't be made: {error.strerror or error}.") from error


def _try_lock(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise StoreError(f"{path} can't be locked: {error.strerror or error}.") from error
    return True


def _started() -> str:
    """Tell how this process was started: systemd says which process it started itself (systemd.exec(5))."""
    if os.environ.get("SYSTEMD_EXEC_PID") == str(os.getpid()) or "recoveryd" in os.environ.get("XPC_SERVICE_NAME", ""):
        return "service"
    with suppress(OSError):
        return "terminal" if os.isatty(0) else "program"
    return "program"
