"""Read a folder tree that other programs write: nothing outside of it, regular files only, and without ever
blocking.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recoveryd.core import DiskError, StoreError, UnknownKeyError

MAX_FILE = 64 * 1024 * 1024  # bytes
SUFFIX = ".json"
_RECORD = re.compile(r"[A-Za-z0-9_-]+\.json")
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # its owner may move it and leave a symlink behind
_FOLDER = _ROOT | os.O_NOFOLLOW
# A FIFO that nobody writes to would hold up an ordinary open for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_SENTENCES = {
    errno.ENOSPC: ("the disk is full", "Free some space; it is tried again then."),
    errno.EDQUOT: ("the disk quota is used up", "Free some space; it is tried again then."),
    errno.EACCES: ("permission is denied", "Check the owner and the mode of the file and of its folder."),
    errno.EPERM: ("the system does not allow it", "Check the owner and the attributes of the file and of its folder."),
    errno.EROFS: ("the file system is read-only", "Mount it writable, or leave this store out."),
    errno.EMFILE: ("too many files are open", "Raise the limit of open files (ulimit -n)."),
    errno.EFBIG: ("the limit of a file's size is reached", "Raise it (ulimit -f), or free some space."),
    errno.EIO: ("the disk reports an error", "Check the disk before anything else is written to it."),
}


# What lies there has to change, or it stays so.
_LASTING = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL})


def error_of(error: OSError, what: str) -> StoreError:
    """Turn an errno of reading a tree into an error with a sentence. `what` could not be done ("read /a/b"). DiskError
    for what may pass.
    """
    reason, hint = _SENTENCES.get(error.errno or 0, (error.strerror or str(error), ""))
    kind = StoreError if error.errno in _LASTING else DiskError
    return kind(f"Can't {what}: {reason}.", hint)


def split_key(key: str) -> tuple[str, ...]:
    """Cut the path of a file below a tree's root into folders and a file name. Raises StoreError for a key that could
    lead anywhere else.
    """
    *folders, name = key.split("/")
    if not folders or not _RECORD.fullmatch(name) or not all(map(safe_name, folders)):
        raise UnknownKeyError(f"{key!r} is no record of this store.")
    return (*folders, name)


@contextmanager
def folder(root: Path, *names: str) -> Iterator[int]:
    """Open a folder of a tree, below `root`, as a descriptor. Raises FileNotFoundError; StoreError for a symlink or
    what is no folder.
    """
    path = "/".join((str(root), *names[:1]))
    fd = _open_folder(path, None, path, _FOLDER if names else _ROOT)
    try:
        for name in names[1:]:
            path = f"{path}/{name}"
            deeper = _open_folder(name, fd, path)
            os.close(fd)
            fd = deeper
        yield fd
    finally:
        os.close(fd)


def _open_folder(name: str, above: int | None, path: str, flags: int = _FOLDER) -> int:
    try:
        return os.open(name, flags, dir_fd=above)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise error_of(error, f"open {path}") from error
        what = file_kind(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
        raise StoreError(f"{path} is {what}, where a folder should be; it is left alone.") from error


def listing(fd: int) -> list[str]:
    """List the names in a folder of a tree that is open, unsorted."""
    return os.listdir(fd)


def names(root: Path, *below: str) -> list[str]:
    """List the names in a folder of a tree, unsorted; nothing when it is not there."""
    try:
        with folder(root, *below) as fd:
            return listing(fd)
    except FileNotFoundError:
        return []


def json_names(found: list[str]) -> list[str]:
    """Name the JSON files among the names in a folder of a tree, without their ending, sorted by code unit."""
    return sorted([name[: -len(SUFFIX)] for name in found if _RECORD.fullmatch(name)])


def read(fd: int, name: str, path: str, limit: int = MAX_FILE) -> bytes:
    """Read all of a regular file in a tree, `name` in the folder `fd`; errors name it as `path`.

    Raises FileNotFoundError; StoreError for a symlink, a folder, a device, and for more than `limit` bytes.
    """
    file = opened(fd, name, path)
    try:
        return _read_all(file, path, limit)
    except OSError as error:
        raise error_of(error, f"read {path}") from error
    finally:
        os.close(file)


def opened(fd: int, name: str, path: str, access: int = os.O_RDONLY) -> int:
    """Open a regular file in a tree, `name` in the folder `fd`: a descriptor, to be closed. Nothing is followed or
    waited for.

    Raises FileNotFoundError; StoreError for a symlink, a folder, a device, and for what may not be opened.
    """
    try:
        file = os.open(name, access | _FILE, dir_fd=fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        odd = {errno.ELOOP: "a symlink", errno.ENXIO: "no regular file", errno.EISDIR: "a folder"}
        if error.errno in odd:
            what = odd[error.errno]
            raise StoreError(f"{path} is {what}, where a file should be; it is left alone.") from error
        raise error_of(error, f"open {path}") from error
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        os.close(file)
        raise StoreError(f"{path} is {file_kind(mode)}, where a file should be; it is left alone.")
    return file


def _read_all(file: int, path: str, limit: int) -> bytes:
    found = os.fstat(file)
    size, chunks = 0, []
    # One byte more than the size: a file that did not grow is read in one call.
    ask = found.st_size + 1
    while size <= limit >= found.st_size:
        chunk = os.read(file, ask)
        chunks.append(chunk)
        size += len(chunk)
        if len(chunk) < ask:
            return b"".join(chunks)
        ask = 1 << 20
    raise StoreError(f"{path} is too large: {max(size, found.st_size):,} bytes, at most {limit:,} are read.")


def file_kind(mode: int) -> str:
    """Name what a file in a tree is, by its mode: "a folder", "a symlink", "a named pipe"."""
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symlink", stat.S_IFIFO: "a named pipe", stat.S_IFREG: "a file"}
    return kinds.get(stat.S_IFMT(mode), "no regular file")


_ID = re.compile(r"[A-Za-z0-9_-]+")


def safe_name(text: str) -> bool:
    """Whether a text from elsewhere may be the name of a file or folder in a tree."""
    return _ID.fullmatch(text) is not None
