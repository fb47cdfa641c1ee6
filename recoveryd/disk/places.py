"""Tell where paths lead, which of them to the same place on the disk, by whatever links, and whether that has room."""

from __future__ import annotations

import errno
import math
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

UNWRITABLE = "can't be written to: check its owner and mode, and that its disk is not read-only."
NOT_MOUNTED = "Is its disk mounted? If that is gone for good, remove the symlink."
_ROOM = 32_768  # bytes; SQLite maps as much beside a database in WAL mode


def real_path(path: Path) -> Path:
    """Follow the symlinks of a path, as far as they lead anywhere. Raises nothing: one may lead round in a circle, or
    to a disk that does not answer.
    """
    return Path(os.path.realpath(path))


def path_exists(path: str | Path) -> bool | None:
    """Whether anything has this path, be it a symlink that leads nowhere; None where that can't be told: a folder above
    it may not be entered, or its disk does not answer.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return None
    return True


def is_folder(path: Path) -> bool:
    """Whether a folder is there. Of what can't be looked at (a mount that is dead, say) that is not known: False."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises there


def dangling_link(path: Path) -> str:
    """Tell, in a part of a sentence, of the symlink by which a path leads to nothing, as where a disk is not mounted;
    "" where none does. What may not be looked at counts as none.
    """
    place = next(place for place in (path, *path.parents) if os.path.lexists(place))
    if os.path.exists(place) or not os.path.islink(place):  # noqa: PTH110, PTH114 - Path raises where it may not look
        return ""
    return f"the symlink {place} leads to {os.readlink(place)}, which is not there"  # noqa: PTH115 - as it is written


def is_read_only(folder: Path) -> bool:
    """Whether the disk of a folder, as it is mounted there, takes no writes. Of what can't be looked at: False."""
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def free_space(folder: Path) -> float:
    """Count the bytes that may be written to the disk of a folder, for root with what is kept from others; endless on
    one that tells no size.
    """
    return _free(os.statvfs(folder), root=not os.geteuid())


def _free(disk: os.statvfs_result, *, root: bool) -> float:
    blocks = max(disk.f_bavail, disk.f_bfree if root else 0)
    return blocks * disk.f_frsize if disk.f_blocks else math.inf


def is_full(folder: Path, *, by_write: bool = False) -> bool:
    """Whether the disk of a folder has no room for our own files: a database that is opened takes as much beside it.

    Root may use what is kept from others, but not all of it, and how much only a write tells: of a file without a name,
    which is gone at once. So is it with a quota: `by_write` asks for that, too.
    """
    try:
        disk = os.statvfs(folder)
        if _free(disk, root=not os.geteuid()) < _ROOM:
            return True
        if not by_write and _free(disk, root=False) >= _ROOM:
            return False
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
