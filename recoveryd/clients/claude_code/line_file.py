"""Writing lines of a transcript over, while its client may append to it: nothing that was written meanwhile is lost.

The client opens the file by its path for each append (measured on 2.1.330), so a new file is renamed over it. A line
that went into the old file after we read it, is taken over: the old file keeps a name until that is certain.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recoveryd.clients import json_lines
from recoveryd.clients.claude_code.transcript import parse
from recoveryd.clients.claude_code.transcript_paths import SUFFIX
from recoveryd.core import BusyStoreError, Change, ConflictError, StoreError, failpoint
from recoveryd.disk import TEMPORARY, flush, tree

MAX_FILE = 1 << 32  # bytes; a longer one is left alone
_PIECE = 1 << 20
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"\\]+)"')
_OLD = f"{TEMPORARY}old-"  # and the size of what was read of it, and the file's name
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_LATE_S = 0.02  # a client that had opened the old file has written to it by then, where the system tells nothing
_WRITERS_S = 2.0
_UNKNOWN = -1
_SIGNALS, _LEASE = (getattr(fcntl, name, _UNKNOWN) for name in ("F_SETSIG", "F_SETLEASE"))  # of Linux alone


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line of Claude Code's file begins and where its newline is, and what stands between."""

    start: int
    end: int
    raw: bytes


def lines_of(fd: int, path: str, wanted: Collection[str]) -> dict[str, Place]:
    """Find where the lines of these ids are in a transcript's file. No more than a line is held, but for those.
    StoreError: an id is on two.
    """
    found: dict[str, Place] = {}
    for line in json_lines.forward(fd, path, torn=True):
        uuid = _named(line.raw, wanted)
        if uuid is None:
            continue
        if uuid in found:
            raise StoreError(f"Two lines have the id {uuid}; they are left alone.")
        found[uuid] = Place(line.offset, line.offset + len(line.raw), line.raw)
    return found


def _named(raw: bytes, wanted: Collection[str]) -> str | None:
    """Tell which of these ids a line has; most lines are not parsed for it."""
    if not any(said[1].decode("utf-8", "replace") in wanted for said in _UUID.finditer(raw)):
        return None
    uuid = (parse(raw) or {}).get("uuid")
    return uuid if isinstance(uuid, str) and uuid in wanted else None


def write_lines(root: Path, file: Sequence[str], changes: Mapping[str, Change]) -> None:
    """Write over lines of a transcript, by their ids: durably, all or none. ConflictError: one is not as it was read.
    BusyStoreError: another program has it open to write. OSError.
    """
    *folders, name = file
    path = "/".join((str(root), *file))
    with tree.folder(root, *folders) as fd:
        old = opened(fd, name, path)
        try:
            size = os.fstat(old).st_size
            _prepare(fd, name, _edited(old, size, changes, path), os.fstat(old))
            _swap(fd, name, old, size, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(_temporary(name), dir_fd=fd)
            raise
        finally:
            os.close(old)


def read_lines(root: Path, file: Sequence[str], wanted: Collection[str]) -> dict[str, bytes]:
    """Read lines of a transcript by their ids. FileNotFoundError; StoreError for what is no regular file, or too large;
    OSError.
    """
    path = "/".join((str(root), *file))
    with tree.folder(root, *file[:-1]) as fd:
        found = opened(fd, file[-1], path)
    try:
        return {uuid: place.raw for uuid, place in lines_of(found, path, wanted).items()}
    finally:
        os.close(found)


def clean(root: Path, file: Sequence[str], now: Sequence[str]) -> int:
    """Remove what a crash left where a transcript's file of lines was; lines that only the old file has are taken over
    into the one that it is `now`. How many; OSError.
    """
    *folders, name = file
    removed = 0
    with suppress(FileNotFoundError), tree.folder(root, *folders) as fd, tree.folder(root, *now[:-1]) as home:
        for left in sorted(tree.listing(fd)):
            size = _size_of(left, name)
            if size is None and left != _temporary(name):
                continue
            if size is not None:
                old = opened(fd, left, left)
                try:
                    _take_over(home, name, old, size)
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
    tells = _tells_writers(fd, _temporary(name))
    if not _let_writers_end(old, tells):
        raise BusyStoreError(f"{path} is open in a program that may write to it.", "Close it there, and try again.")
    kept = _kept(size, name)
    failpoint.reach("link")
    with suppress(FileExistsError):
        os.link(name, kept, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    try:
        failpoint.reach("rename")
        os.rename(_temporary(name), name, src_dir_fd=fd, dst_dir_fd=fd)
    except BaseException:
        with suppress(OSError):  # the old file has its own name still, and needs no second one
            if os.stat(name, dir_fd=fd).st_ino == os.stat(kept, dir_fd=fd).st_ino:
                os.unlink(kept, dir_fd=fd)
        raise
    failpoint.reach("folder")
    flush.fsync(fd)
    size = _take_over(fd, name, old, size)
    _let_writers_end(old, tells)
    _take_over(fd, name, old, size)
    failpoint.reach("unlink")
    os.unlink(kept, dir_fd=fd)
    flush.fsync(fd)


def _let_writers_end(file: int, tells: bool) -> bool:
    """Wait until nobody has a file open to write to it; False where somebody has for two seconds. Where nothing
    `tells`, this waits for a moment.
    """
    deadline = time.monotonic() + _WRITERS_S
    while tells:
        if _leased(file):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    time.sleep(_LATE_S)
    return True


def _tells_writers(fd: int, name: str) -> bool:
    """Whether the file system tells who writes: it gives a lease of a file that nobody else has. Linux does; a share
    of the network may refuse every lease as if somebody wrote.
    """
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    try:
        return _leased(file)
    finally:
        os.close(file)


def _leased(file: int) -> bool:
    """Whether the system gives a lease of a file, which is given back at once: not while it is open to be written."""
    try:
        fcntl.fcntl(file, _SIGNALS, signal.SIGURG)  # tells of who opens it meanwhile; nobody heeds that signal
        fcntl.fcntl(file, _LEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, _LEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True


def _take_over(fd: int, name: str, old: int, size: int) -> int:
    """Append what is in the old file behind `size`, unless it is there already; return how far that is read now."""
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


def _edited(old: int, size: int, changes: Mapping[str, Change], path: str) -> Iterator[bytes]:
    """Go through the file up to `size`, with the lines of `changes` as they are to be, piece by piece. ConflictError,
    OSError.
    """
    places = lines_of(old, path, changes)
    for uuid, change in changes.items():
        place = places.get(uuid)
        if place is None or place.raw != change.before or place.end > size or change.after is None:
            raise ConflictError(f"Line {uuid} of {path} is not what was read before: the client wrote since.")
    at = 0
    for uuid, place in sorted(places.items(), key=lambda item: item[1].start):
        yield from _pieces(old, at, place.start, path)
        yield changes[uuid].after or b""
        at = place.end
    yield from _pieces(old, at, size, path)


def _pieces(file: int, start: int, end: int, path: str) -> Iterator[bytes]:
    while start < end:
        piece = os.pread(file, min(_PIECE, end - start), start)
        if not piece:
            raise ConflictError(f"{path} became shorter while it was read: the client wrote since.")
        yield piece
        start += len(piece)


def _prepare(fd: int, name: str, content: Iterable[bytes], model: os.stat_result) -> None:
    """Put the new file beside the old one, complete and synced, with its mode, owner and time."""
    with suppress(FileNotFoundError):  # of a crash: the lock of a recovery keeps others of us away
        os.unlink(_temporary(name), dir_fd=fd)
    failpoint.reach("create")
    file = os.open(_temporary(name), _NEW, 0o600, dir_fd=fd)
    try:
        failpoint.reach("write")
        for piece in content:
            flush.write_all(file, piece)
        with suppress(OSError):  # only root may give a file away
            os.fchown(file, model.st_uid, model.st_gid)
        os.fchmod(file, stat.S_IMODE(model.st_mode))
        json_lines.keep_time(file, model)  # of `--continue`, which takes the newest
        failpoint.reach("sync")
        flush.fsync(file)
    finally:
        os.close(file)


def opened(fd: int, name: str, path: str) -> int:
    """Open a transcript's file of lines, if it is a regular one; return its descriptor. FileNotFoundError; StoreError
    for what is none, or too large.
    """
    file = tree.opened(fd, name, path)
    size = os.fstat(file).st_size
    if size > MAX_FILE:
        os.close(file)
        raise StoreError(f"{path} is too large: {size:,} bytes, at most {MAX_FILE:,} are read.")
    return file


def _temporary(name: str) -> str:
    return TEMPORARY + name.removesuffix(SUFFIX)  # under any other name the client might take it for a session


def _kept(size: int, name: str) -> str:
    return f"{_OLD}{size}-{name.removesuffix(SUFFIX)}"


def _size_of(left: str, name: str) -> int | None:
    """Return how much of an old file of `name` was read before it was replaced; None where this is none."""
    size, _, of = left.removeprefix(_OLD).partition("-")
    return (
        int(size)
        if left.startswith(_OLD) and size.isascii() and size.isdecimal() and of == name.removesuffix(SUFFIX)
        else None
    )
