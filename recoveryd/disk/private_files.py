"""Folders and small files that only their owner may read, each written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from recoveryd.core import RecoverydError
from recoveryd.disk.flush import fsync, write_all
from recoveryd.disk.owners import check_owner, foreign
from recoveryd.disk.places import NOT_MOUNTED, dangling_link

_ASIDE, _RANDOM = ".recoveryd-", 5  # how a file that is being written is called, and the bytes of chance behind that
_LOCK = ".recoveryd-lock"
_OF_A_DATABASE = ("-wal", "-shm", "-journal")
_LONG_S = 3600.0  # nothing takes so long to be written
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_folder(path: Path) -> Path:
    """Make a private folder (0700) for recoveryd's own files, or take the permissions of others from the one that is
    there.

    Raises `RecoverydError` when it can't be made, or belongs to another user, or would be made as root in somebody's
    home (sudo keeps some variables).
    """
    hint = "Set XDG_STATE_HOME to a folder of your own."
    try:
        check_owner(path)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (problem := foreign(path)) is not None:
            raise problem
        if path.stat().st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        if link := dangling_link(path):
            raise RecoverydError(f"The state folder {path} can't be made: {link}.", NOT_MOUNTED) from error
        raise RecoverydError(f"The state folder {path} can't be made: {error.strerror or error}.", hint) from error
    return path


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep all others (processes, threads) that ask for the same out of a folder of ours meanwhile. Raises OSError.

    A file in it is locked: a folder can't be opened for writing, and NFS gives no exclusive lock without (flock(2)).
    RefusedError as `check_owner`.
    """
    check_owner(folder)
    path = folder / _LOCK
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if is_at(fd, path):  # else who had it before removed it: another file is the lock by now
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return
        finally:
            os.close(fd)


def is_at(fd: int, path: Path) -> bool:
    """Whether an open file is the one at `path`."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except OSError:
        return False


def write(path: Path, content: bytes, *, mode: int = 0o600, lasting: bool = True) -> None:
    """Replace or make the private file at `path`: a reader sees the old bytes or the new ones, never half of either.

    A symlink at `path` is replaced, not followed. `lasting`: it is on the disk when this returns, whatever happens to
    the machine then. Raises OSError.
    """
    with beside(path, mode=mode, lasting=lasting) as (fd, _):
        write_all(fd, content)


def holds(path: Path, content: bytes) -> bool:
    """Whether a private file has exactly this content; a symlink is none. Raises OSError."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        about = os.fstat(file.fileno())
        return stat.S_ISREG(about.st_mode) and about.st_size == len(content) and file.read() == content


@contextmanager
def beside(path: Path, *, mode: int = 0o600, new: bool = False, lasting: bool = True) -> Iterator[tuple[int, Path]]:
    """Open a private file to fill (descriptor, path), which takes the place of `path` when the block ends without an
    error.

    It is made for this in the same folder, private until it is complete, and gets `mode` then. `new`: nothing is
    replaced, but FileExistsError raised. `lasting` and errors as `write`.
    """
    aside = path.with_name(f"{_ASIDE}{os.urandom(_RANDOM).hex()}")
    fd = os.open(aside, _NEW, 0o600)
    try:
        try:
            yield fd, aside
            os.fchmod(fd, mode)
            if lasting:
                fsync(fd)
        finally:
            os.close(fd)
        if new:
            path.hardlink_to(aside)
            aside.unlink()
        else:
            aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
    if lasting:
        _sync_folder(path.parent)


def remove_left_over(folder: Path) -> None:
    """Remove what `beside` had begun in a folder of ours when its process was killed: a file of this user, under such a
    name, or what SQLite had put beside it. Raises OSError.
    """
    begun = f"{_ASIDE}{'[0-9a-f]' * 2 * _RANDOM}"
    for left in chain.from_iterable(folder.glob(begun + suffix) for suffix in ("", *_OF_A_DATABASE)):
        with suppress(FileNotFoundError):
            found = left.lstat()
            ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
            if ours and found.st_mtime < time.time() - _LONG_S:
                left.unlink()


def _sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has nothing to sync for a folder
            raise
    finally:
        os.close(fd)
