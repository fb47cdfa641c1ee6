"""Lines of a file written over where they stand, each in its own length: the file keeps its number, its size and every
other byte, also while another program has it open and appends to it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from recoveryd.clients import json_lines
from recoveryd.core import Change, ConflictError, StoreError, failpoint
from recoveryd.disk import flush

Placed = tuple[int, Change]  # where its line begins


def write_in_place(fd: int, path: str, changes: Sequence[Placed]) -> None:
    """Write lines of a rollout over where they stand: every change, durably, or none.

    ConflictError: a line is not its `before` any more. StoreError: it would not keep its length. What can't be written
    whole is put back; a crash in the middle leaves lines that `finish` knows.
    """
    for offset, change in changes:
        before, after = change.before, change.after
        if before is None or after is None or len(before) != len(after) or b"\n" in after:
            raise StoreError(f"A line of {path} (at byte {offset:,}) can't be written in another length.")
        if json_lines.line_at(fd, offset, path) != before:
            raise ConflictError(f"{path} is not what was read before (at byte {offset:,}): the client wrote since.")
    written: list[Placed] = []
    found = os.fstat(fd)
    try:
        for offset, change in changes:
            if change.before != change.after:
                written.append((offset, change))
                failpoint.reach("write line")
                write(fd, offset, change.after or b"")
        failpoint.reach("sync lines")
        _end(fd, found)
    except BaseException:
        for offset, change in written:
            write(fd, offset, change.before or b"")
        _end(fd, found)
        raise


def _end(fd: int, found: os.stat_result) -> None:
    """Put what was written on the disk. The file's time is that of the client's own last write, as it was `found`."""
    if os.fstat(fd).st_size == found.st_size:  # else the client appended meanwhile
        json_lines.keep_time(fd, found)
    flush.fsync(fd)


def finish(fd: int, path: str, changes: Sequence[Placed]) -> int:
    """Put the before-image where a crash left a rollout's line that is half of each image. Returns how many lines."""
    torn, found = 0, os.fstat(fd)
    for offset, change in changes:
        if is_half(fd, path, (offset, change)):
            failpoint.reach("take line back")
            write(fd, offset, change.before or b"")
            torn += 1
    if torn:
        _end(fd, found)
    return torn


def is_half(fd: int, path: str, placed: Placed) -> bool:
    """Whether a rollout's line is as a crash leaves it that cut off its change: half of each image."""
    offset, change = placed
    now = json_lines.line_at(fd, offset, path)
    return now is not None and is_torn(now, change.before or b"", change.after or b"")


def is_torn(now: bytes, before: bytes, after: bytes) -> bool:
    """Whether a rollout's line, cut off while it was written in place, is neither image, and each of its bytes is that
    of one of them.
    """
    if now in (before, after) or not len(now) == len(before) == len(after):
        return False
    return all(byte in both for byte, *both in zip(now, before, after, strict=True))


def is_image(now: bytes | None, change: Change) -> bool:
    """Whether a rollout's line is what a change found or wrote, or, after a crash, half of each."""
    before, after = change.before or b"", change.after or b""
    return now is not None and (now in (before, after) or is_torn(now, before, after))


def write(fd: int, offset: int, line: bytes) -> None:
    """Write all of a rollout's `line` in its place, at `offset`. OSError."""
    done = 0
    while done < len(line):
        done += os.pwrite(fd, line[done:], offset + done)
