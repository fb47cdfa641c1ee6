"""The lines of a file that only grows: read forward, read backward from the end, one looked up by its place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from recoveryd.core import StoreError

MAX_LINE = 64 * 1024 * 1024  # bytes; what is longer is not read
_BLOCK = 1 << 20
_TAIL = 1 << 16
HEAD = 512  # bytes of a line by which its type is told
_MARK = 1 << 10  # bytes before a place by which it is known again: lines have ids and times
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """A whole line of a file that only grows: where it begins, and its bytes without the newline."""

    offset: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """Where a whole line of a file that only grows begins and ends, its newline left out, and its first bytes."""

    offset: int
    end: int
    head: bytes

    def read(self, fd: int) -> bytes:
        """Read the line. OSError."""
        return os.pread(fd, self.end - self.offset, self.offset)


class Known(Protocol):
    """Up to which byte (`end`) the file of a number was read, and the `mark` of what stands before that."""

    @property
    def inode(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def mark(self) -> bytes: ...


def forward(fd: int, path: str, *, most: int | None = None, torn: bool = False) -> Iterator[Line]:
    """Read a file of lines forward: every whole line, or those in the first `most` bytes. What comes behind the last
    newline may still be being written: it comes, too, where `torn` is asked for.

    StoreError for a line of more than MAX_LINE bytes; OSError.
    """
    offset, at, rest = 0, 0, bytearray()
    while (most is None or at < most) and (block := os.pread(fd, min(_BLOCK, most or _BLOCK), at)):
        at += len(block)
        rest += block
        *lines, tail = rest.split(b"\n") if b"\n" in block else (rest,)
        for line in lines:
            _within(line, path, offset)
            yield Line(offset, bytes(line))
            offset += len(line) + 1
        rest = tail
        _within(rest, path, offset)
    if torn and rest:
        yield Line(offset, bytes(rest))


def backward(fd: int, start: int, end: int) -> Iterator[Place]:
    """Read a file of lines backward: every whole line between `start` and `end`, the last one first; no more than a
    block is held. OSError.
    """
    newline = -1  # where the line in hand ends
    at = end
    while at > start:
        size = min(_TAIL, at - start)
        at -= size
        block = os.pread(fd, size, at)
        cut = len(block)
        while (found := block.rfind(b"\n", 0, cut)) >= 0:
            if newline >= 0 and newline > at + found + 1:
                yield Place(at + found + 1, newline, os.pread(fd, min(HEAD, newline - at - found - 1), at + found + 1))
            newline, cut = at + found, found
    if newline > start:
        yield Place(start, newline, os.pread(fd, min(HEAD, newline - start), start))


def line_at(fd: int, offset: int, path: str) -> bytes | None:
    """Read the line of a file that begins at `offset`; None where none does. StoreError for one that is too long;
    OSError.
    """
    if offset and os.pread(fd, 1, offset - 1) != b"\n":
        return None
    found = bytearray()
    while block := os.pread(fd, _TAIL if not found else _BLOCK, offset + len(found)):
        cut = block.find(b"\n")
        found += block[:cut] if cut >= 0 else block
        _within(found, path, offset)
        if cut >= 0:
            return bytes(found)
    return None


def read_back(
    fd: int, start: int, end: int, tell: Callable[[Place], T | None], enough: Callable[[list[T]], bool] | None
) -> tuple[list[T], int]:
    """Read a file of lines backward, and return what the lines between `start` and `end` tell, the oldest first, and
    where the last of them ends. OSError.

    They are read from the last one back, until `enough` says of what they told, the newest first, that it settles all;
    all of them without it.
    """
    told: list[T] = []
    last = start
    for place in backward(fd, start, end):
        last = max(last, place.end + 1)
        one = tell(place)
        if one is not None:
            told.append(one)
            if enough is not None and enough(told):
                break
    return told[::-1], last


def mark(fd: int, end: int) -> bytes:
    """Return a digest of what stands right before the byte `end` of a file. OSError."""
    return hashlib.blake2b(os.pread(fd, min(end, _MARK), max(0, end - _MARK)), digest_size=8).digest()


def grew(fd: int, found: os.stat_result, known: Known) -> bool:
    """Whether a file is the one that was read, with nothing but more behind it. One that was restored, or brought by
    another machine, may be longer and have the number of the old one. OSError.
    """
    if found.st_ino != known.inode or found.st_size <= known.end:
        return (found.st_ino, found.st_size) == (known.inode, known.end)
    return mark(fd, known.end) == known.mark


def keep_time(fd: int, found: os.stat_result) -> None:
    """Give an open file whose lines were edited the time that it was `found` with: clients list their sessions by it,
    and the newest is not the one that was repaired. OSError.
    """
    os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))


def _within(line: bytearray, path: str, offset: int) -> None:
    """Refuse a line that is not read. StoreError."""
    if len(line) > MAX_LINE:
        raise StoreError(f"{path} has a line of more than {MAX_LINE:,} bytes (at byte {offset:,}); it is left alone.")


def line_time(timestamp: object) -> int:
    """Read the time of a line of a file ("2026-11-22T05:27:44.584Z"), in milliseconds since the epoch; 0 where it is
    none.
    """
    if not isinstance(timestamp, str):
        return 0
    try:
        at = datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0
    return int(at * 1000) if 0 < at < 1e12 else 0
