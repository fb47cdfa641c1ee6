"""Ask the kernel about folders: which one is at a path, how many are watched, and how many may be."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

# What inotify means by these errors, and what to do.
_REASONS = {
    errno.ENOSPC: "inotify watch limit reached, raise fs.inotify.max_user_watches",
    errno.EMFILE: "inotify instance limit reached, raise fs.inotify.max_user_instances",
}
_LATE_S = 0.2
_DELETE_SELF = 0x400  # inotify(7)
_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
_INSTANCES = _LIMIT.with_name("max_user_instances")


def why_not_watched(error: OSError) -> str:
    """Tell the user why a folder is not watched."""
    return _REASONS.get(error.errno or 0) or error.strerror or str(error)


def folder_identity(path: str) -> tuple[int, int] | None:
    """Return what tells a watched folder from another one of the same name; None when it is not there, or no folder."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


@contextmanager
def held_open(path: str) -> Iterator[tuple[int, int]]:
    """Keep a folder that is to be watched open, and yield its `identity`, which no other folder can get meanwhile.
    OSError when there is none.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        yield found.st_dev, found.st_ino
    finally:
        os.close(fd)


def shortage(roots: Sequence[str], others: int) -> str | None:
    """Tell the user if the kernel watches fewer folders than `roots` with all below them, and `others`, need; else "".

    watchdog 7 says nothing when the limit stops it.
    """
    for pause in (_LATE_S, 0.0):  # one that was just made is watched a moment later
        wanted = others + sum(count_folders(root) for root in roots)
        watched = count_watches()
        if watched is None or watched >= wanted:
            return None
        time.sleep(pause)
    if why_refused(["/"]) is None:
        return f"{watched} of {wanted} folders are watched; what is written in the others is noticed once a minute."
    limit = _LIMIT.read_text().strip() if _LIMIT.exists() else "unknown"
    return (
        f"inotify watch limit reached: {wanted} folders, {watched} watched;"
        f" raise fs.inotify.max_user_watches (now {limit})."
    )


def count_folders(path: str) -> int:
    """Count the folders that a recursive watch of `path` needs."""
    return sum(1 for _ in all_folders(path))


def all_folders(path: str) -> Iterator[str]:
    """Yield the folders that a recursive watch of `path` needs: itself, and all below it."""
    yield path
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                # Two links mean no folder inside, on most file systems: that saves opening each.
                leaf = entry.stat(follow_symlinks=False).st_nlink == 2
                yield from (entry.path,) if leaf else all_folders(entry.path)


def count_watches() -> int | None:
    """Count the folders that this process watches; None where the kernel does not tell."""
    if sys.platform != "linux":
        return None
    total = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(descriptor.readlink()) == "anon_inode:inotify":
                total += (Path("/proc/self/fdinfo") / descriptor.name).read_bytes().count(b"\ninotify ")
    return total


def watch_limits() -> tuple[int | None, int | None]:
    """Return the kernel's limits: how many folders a user may watch, and with how many inotify instances; None where
    the kernel does not tell.
    """
    found: list[int | None] = []
    for file in (_LIMIT, _INSTANCES):
        try:
            found.append(int(file.read_text()))
        except (OSError, ValueError):
            found.append(None)
    return found[0], found[1]


def why_refused(paths: Iterable[str]) -> OSError | None:
    """Tell why the kernel does not watch all of these folders now; None when it does. They are watched for that, and
    let go at once: the kernel does not tell what other programs have used up.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, "inotify_init1", None) is None:
        return None
    fd = libc.inotify_init1(os.O_CLOEXEC)
    if fd < 0:
        return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        for path in paths:
            if libc.inotify_add_watch(fd, os.fsencode(path), _DELETE_SELF) < 0 and ctypes.get_errno() == errno.ENOSPC:
                return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)
    return None
