"""Writing lines of a transcript over, while its client may append to it: nothing that was written meanwhile is lost.

The client opens the file by its path for each append (measured on 2.1.330), so a new file is renamed over it. A line
that went into the old file after we read it, is taken over: the old file keeps a name until that is certain.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from recoveryd.clients.claude_code.transcript import parse
from recoveryd.clients.claude_code.transcript_paths import SUFFIX
from recoveryd.core import Change, ConflictError, StoreError, failpoint
from recoveryd.disk import TEMPORARY, flush, tree

MAX_FILE = 1 << 30  # bytes; a longer one is left alone
_OLD = f"{TEMPORARY}old-"  # and the size of what was read of it, and the file's name
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_LATE_S = 0.02  # a client that had opened the old file has written to it by then


def lines_of(raw: bytes, wanted: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Where the lines of these ids stand: the offsets of their first byte and of their newline. StoreError: twice."""
    found: dict[str, tuple[int, int]] = {}
    for uuid in wanted:
        at = raw.find(f'"{uuid}"'.encode())
        while at >= 0:
            start, end = raw.rfind(b"\n", 0, at) + 1, raw.find(b"\n", at)
            end = len(raw) if end < 0 else end
            if found.get(uuid) != (start, end) and (parse(raw[start:end]) or {}).get("uuid") == uuid:
                if uuid in found:
                    raise StoreError(f"Two lines have the id {uuid}; they are left alone.")
                found[uuid] = (start, end)
            at = raw.find(f'"{uuid}"'.encode(), end)
    return found


def apply(root: Path, file: Sequence[str], changes: Mapping[str, Change]) -> None:
    """Write over the lines of these ids, durably, all or none. ConflictError: one is not as it was read. OSError."""
    *folders, name = file
    path = "/".join((str(root), *file))
    with tree.folder(root, *folders) as fd:
        old = opened(fd, name, path)
        try:
            raw = _read(old, path)
            _prepare(fd, name, _edited(raw, changes, path), os.fstat(old))
            _swap(fd, name, old, len(raw), path)
        except BaseException:
            with suppress(OSError):
                os.unlink(_temporary(name), dir_fd=fd)
            raise
        finally:
            os.close(old)


def read(root: Path, file: Sequence[str]) -> bytes:
    """All of a file. FileNotFoundError; StoreError for what is no regular file, or too large; OSError."""
    path = "/".join((str(root), *file))
    with tree.folder(root, *file[:-1]) as fd:
        found = opened(fd, file[-1], path)
    try:
        return _read(found, path)
    finally:
        os.close(found)


def clean(root: Path, file: Sequence[str]) -> int:
    """Remove what a crash left beside a file; lines that only the old file has are taken over. How many; OSError."""
    *folders, name = file
    removed = 0
    with suppress(FileNotFoundError), tree.folder(root, *folders) as fd:
        for left in sorted(tree.listing(fd)):
            size = _size_of(left, name)
            if size is None and left != _temporary(name):
                continue
            if size is not None:
                old = opened(fd, left, left)
                try:
                    _take_over(fd, name, old, size)
                finally:
                    os.close(old)
            failpoint.reach("clean")
            os.unlink(left, dir_fd=fd)
            removed += 1
    return removed


def _swap(fd: int, name: str, old: int, size: int, path: str) -> None:
    failpoint.reach("compare")
    now = os.fstat(old)
    if now.st_size < size or os.stat(name, dir_fd=fd, follow_symlinks=False).st_ino != now.st_ino:
        raise ConflictError(f"{path} was replaced while it was read: the client wrote since.")
    kept = _kept(size, name)
    failpoint.reach("link")
    with suppress(FileExistsError):
        os.link(name, kept, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    failpoint.reach("rename")
    os.rename(_temporary(name), name, src_dir_fd=fd, dst_dir_fd=fd)
    failpoint.reach("folder")
    flush.fsync(fd)
    size = _take_over(fd, name, old, size)
    time.sleep(_LATE_S)
    _take_over(fd, name, old, size)
    failpoint.reach("unlink")
    os.unlink(kept, dir_fd=fd)
    flush.fsync(fd)


def _take_over(fd: int, name: str, old: int, size: int) -> int:
    """Append what stands in the old file behind `size`, unless it is there already; how far that is read now."""
    tail = bytearray()
    while block := os.pread(old, 1 << 20, size + len(tail)):
        tail += block
    if not tail:
        return size
    failpoint.reach("take over")
    new = os.open(name, _APPEND, dir_fd=fd)
    try:
        end = os.fstat(new).st_size
        if end >= len(tail) and os.pread(new, len(tail), end - len(tail)) == tail:
            return size + len(tail)
        flush.write_all(new, bytes(tail))
        flush.fsync(new)
    finally:
        os.close(new)
    return size + len(tail)


def _edited(raw: bytes, changes: Mapping[str, Change], path: str) -> bytes:
    """The file with the lines of `changes` as they are to be."""
    places = lines_of(raw, changes)
    found: list[tuple[int, int, bytes]] = []
    for uuid, change in changes.items():
        start, end = places.get(uuid, (0, 0))
        if uuid not in places or raw[start:end] != change.before or change.after is None:
            raise ConflictError(f"Line {uuid} of {path} is not what was read before: the client wrote since.")
        found.append((start, end, change.after))
    pieces, at = [], 0
    for start, end, after in sorted(found):
        pieces += [raw[at:start], after]
        at = end
    return b"".join([*pieces, raw[at:]])


def _prepare(fd: int, name: str, content: bytes, model: os.stat_result) -> None:
    """Put the new file beside the old one, complete and synced, with its mode and owner."""
    with suppress(FileNotFoundError):  # of a crash: the lock of a recovery keeps others of us away
        os.unlink(_temporary(name), dir_fd=fd)
    failpoint.reach("create")
    file = os.open(_temporary(name), _NEW, 0o600, dir_fd=fd)
    try:
        failpoint.reach("write")
        flush.write_all(file, content)
        with suppress(OSError):  # only root may give a file away
            os.fchown(file, model.st_uid, model.st_gid)
        os.fchmod(file, stat.S_IMODE(model.st_mode))
        failpoint.reach("sync")
        flush.fsync(file)
    finally:
        os.close(file)


def opened(fd: int, name: str, path: str) -> int:
    """A descriptor of a regular file. FileNotFoundError; StoreError for what is none."""
    try:
        file = os.open(name, _READ, dir_fd=fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise StoreError(f"{path} is a symlink or no regular file; it is left alone.") from error
        raise tree.trouble(error, f"read {path}") from error
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        os.close(file)
        raise StoreError(f"{path} is {tree.kind(mode)}, where a file should be; it is left alone.")
    return file


def _read(file: int, path: str) -> bytes:
    size = os.fstat(file).st_size
    if size > MAX_FILE:
        raise StoreError(f"{path} is too large: {size:,} bytes, at most {MAX_FILE:,} are read.")
    found = bytearray()
    while len(found) < size and (block := os.pread(file, min(1 << 24, size - len(found)), len(found))):
        found += block
    return bytes(found)


def _temporary(name: str) -> str:
    return TEMPORARY + name.removesuffix(SUFFIX)  # under any other name the client might take it for a session


def _kept(size: int, name: str) -> str:
    return f"{_OLD}{size}-{name.removesuffix(SUFFIX)}"


def _size_of(left: str, name: str) -> int | None:
    """How much of an old file of `name` was read before it was replaced; None where this is none."""
    size, _, of = left.removeprefix(_OLD).partition("-")
    return int(size) if left.startswith(_OLD) and size.isdigit() and of == name.removesuffix(SUFFIX) else None
