"""Tell where paths lead, which of them to the same place on the disk, by whatever links, and whether that has room."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

_ROOM = 32_768  # bytes; SQLite maps as much beside a database in WAL mode


def real_path(path: Path) -> Path:
    """Follow the symlinks of a path, as far as they lead anywhere. Raises nothing: one may lead round in a circle, or
    to a disk that does not answer.
    """
    return Path(os.path.realpath(path))


def is_folder(path: Path) -> bool:
    """Whether a folder is there. Of what can't be looked at (a mount that is dead, say) that is not known: False."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises there


def is_full(folder: Path, *, by_write: bool = False) -> bool:
    """Whether the disk of a folder has no room for our own files: a database that is opened takes as much beside it.

    Some tell no size. Root may use what is kept from others, but not all of it, and how much only a write tells: of a
    file without a name, which is gone at once. So is it with a quota: `by_write` asks for that, too.
    """
    try:
        disk = os.statvfs(folder)
        room = not disk.f_blocks or disk.f_bavail * disk.f_frsize >= _ROOM
        if room and not by_write:
            return False
        if not room and (os.geteuid() or disk.f_bfree * disk.f_frsize < _ROOM):
            return True
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return file.write(bytes(_ROOM)) < _ROOM
    except OSError as error:  # else nobody knows
        return error.errno in (errno.ENOSPC, errno.EDQUOT)


def group_by_place(paths: Iterable[Path]) -> list[list[Path]]:
    """Group paths by the place that they lead to."""
    found: dict[Path, list[Path]] = {}
    for path in paths:
        found.setdefault(real_path(path), []).append(path)
    return list(found.values())


def distinct_places(paths: Iterable[Path]) -> list[Path]:
    """List the paths that lead to different places, each as it was named first."""
    return [first for first, *_ in group_by_place(paths)]
