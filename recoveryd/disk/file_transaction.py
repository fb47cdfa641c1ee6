"""Write a set of files so that all of them change, or none: never half a file, never a name the client reads by
mistake.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from recoveryd.core import Change, ConflictError, StoreError, failpoint
from recoveryd.disk import flush, tree
from recoveryd.disk.flush import Disk

# The client reads every file whose name does not begin with a dot.
TEMPORARY = ".recoveryd-"
_LONGEST_NAME = 255  # bytes; names of records are ASCII
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def _temporary(name: str) -> str:
    """Name the file for a record's new content until it is complete; never longer than a file system takes."""
    if len(TEMPORARY) + len(name) <= _LONGEST_NAME:
        return TEMPORARY + name
    return TEMPORARY + hashlib.blake2s(name.encode()).hexdigest()


def read(root: Path, key: str, limit: int = tree.MAX_FILE) -> bytes | None:
    """Read, before a transaction writes it, a file below `root`; None where it is not there. Raises StoreError as
    `tree.read`, and for a bad key.
    """
    *folders, name = tree.split_key(key)
    try:
        with tree.folder(root, *folders) as fd:
            return tree.read(fd, name, f"{root}/{key}", limit)
    except FileNotFoundError:
        return None


def write_files(root: Path, changes: Sequence[Change]) -> None:
    """Write a set of files: every change, durably, or leave every file as it was.

    ConflictError: a record is not its `before` any more; StoreError: it can't be written. Both name the file.
    """
    if len({change.key for change in changes}) != len(changes):
        raise StoreError("One record was to be changed twice at once.")
    for change in changes:
        _compare(root, change)
    changes = [change for change in changes if change.before != change.after]
    made: list[tuple[str, ...]] = []
    disk = flush.disk(root, len(changes))
    try:
        # All that needs space on the disk comes first, while nothing is changed yet.
        for change in changes:
            if change.after is not None:
                _prepare(root, change, made, disk)
        disk.barrier()
        for change in changes:
            _swap(root, change)
        _sync(root, changes, disk)
        disk.barrier()
    except BaseException as error:
        lost = _put_back(root, changes, made, disk)
        if lost:
            reason = error.message if isinstance(error, StoreError) else repr(error)
            raise StoreError(f"{reason} What was written before could not be put back: {', '.join(lost)}.") from error
        raise


def remove_temporary(root: Path, keys: Iterable[str]) -> int:
    """Remove the temporary files that a crash left in the folders of `keys`; only regular files of this user.

    A folder in which nothing is left goes too: a crash may have come right behind its making.
    """
    removed = 0
    for folders in {tree.split_key(key)[:-1] for key in keys}:
        with suppress(FileNotFoundError), tree.folder(root, *folders) as fd:
            for name in tree.listing(fd):
                if not name.startswith(TEMPORARY):
                    continue
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                    failpoint.reach("clean")
                    os.unlink(name, dir_fd=fd)
                    removed += 1
            if not tree.listing(fd):
                _drop_folder(root, folders, flush.disk(root, 1))
    return removed


def _now(root: Path, change: Change) -> bytes | None:
    """Read the record as it is, whatever limit it was loaded with."""
    return read(root, change.key, max(tree.MAX_FILE, *(len(image or b"") for image in (change.before, change.after))))


def _compare(root: Path, change: Change) -> None:
    if _now(root, change) != change.before:
        raise ConflictError(f"{root / change.key} is not what was read before: the client wrote since.")


def _prepare(root: Path, change: Change, made: list[tuple[str, ...]], disk: Disk) -> None:
    """Write the new content into a temporary file beside the record, complete and synced."""
    assert change.after is not None
    *folders, name = tree.split_key(change.key)
    try:
        _make_folders(root, folders, made, disk)
        with tree.folder(root, *folders) as fd:
            with suppress(FileNotFoundError):  # of a crash: the lock of a recovery keeps others of us away
                os.unlink(_temporary(name), dir_fd=fd)
            failpoint.reach("create")
            file = os.open(_temporary(name), _NEW, 0o600, dir_fd=fd)
            try:
                failpoint.reach("write")
                flush.write_all(file, change.after)
                _dress(file, fd, name, change.mode)
                failpoint.reach("sync")
                disk.sync(file)
            finally:
                os.close(file)
    except OSError as error:
        raise tree.error_of(error, f"write {root / change.key}") from error


def _make_folders(root: Path, folders: Sequence[str], made: list[tuple[str, ...]], disk: Disk) -> None:
    for depth in range(1, len(folders) + 1):
        above, name = folders[: depth - 1], folders[depth - 1]
        with tree.folder(root, *above) as fd, suppress(FileExistsError):
            failpoint.reach("mkdir")
            os.mkdir(name, 0o700, dir_fd=fd)
            made.append(tuple(folders[:depth]))
            os.chmod(name, stat.S_IMODE(os.fstat(fd).st_mode), dir_fd=fd)
            disk.sync(fd)


def _dress(file: int, fd: int, name: str, mode: int | None) -> None:
    """Give a new file the mode and owner of the record that it replaces, or of its folder where there is none yet."""
    try:
        model = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        model = os.fstat(fd)
        mode = 0o600 if mode is None else mode
    with suppress(OSError):  # only root may give a file away; a foreign group is the worst that is left
        os.fchown(file, model.st_uid, model.st_gid)
    os.fchmod(file, stat.S_IMODE(model.st_mode) if mode is None else mode)


def _swap(root: Path, change: Change) -> None:
    *folders, name = tree.split_key(change.key)
    failpoint.reach("compare")
    _compare(root, change)
    try:
        with tree.folder(root, *folders) as fd:
            if change.after is not None:
                failpoint.reach("rename")
                os.rename(_temporary(name), name, src_dir_fd=fd, dst_dir_fd=fd)
            elif change.before is not None:
                failpoint.reach("unlink")
                os.unlink(name, dir_fd=fd)
    except OSError as error:
        raise tree.error_of(error, f"write {root / change.key}") from error


def _sync(root: Path, changes: Iterable[Change], disk: Disk) -> None:
    """Make renames and removals durable; a folder that lost its last record goes too."""
    folders, emptier = {}, set()
    for change in changes:
        names = tree.split_key(change.key)[:-1]
        folders[names] = change
        if change.after is None:
            emptier.add(names)
    for names, change in folders.items():
        try:
            failpoint.reach("folder")
            with tree.folder(root, *names) as fd:
                disk.sync(fd)
            if names in emptier:
                _drop_folder(root, names, disk)
        except OSError as error:
            raise tree.error_of(error, f"write {root / change.key}") from error


def _drop_folder(root: Path, names: tuple[str, ...], disk: Disk) -> None:
    """Remove a folder below another one if it is empty. The client makes it again when it needs it."""
    if len(names) < 2:
        return
    with tree.folder(root, *names[:-1]) as fd:
        try:
            failpoint.reach("rmdir")
            os.rmdir(names[-1], dir_fd=fd)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EACCES, errno.EPERM}:
                raise
        else:
            disk.sync(fd)


def _put_back(root: Path, changes: Sequence[Change], made: Iterable[tuple[str, ...]], disk: Disk) -> list[str]:
    """Take back what was written already, where it is still ours. Returns the keys for which that failed."""
    lost = []
    for change in reversed(changes):
        try:
            if _now(root, change) == change.after != change.before:
                if change.before is not None:
                    _prepare(root, change.reversed(), [], disk)
                _swap(root, change.reversed())
                _sync(root, [change.reversed()], disk)
        except Exception:  # whatever it is, the other records are still to be put back; the caller names this one
            lost.append(change.key)
        with suppress(OSError, StoreError):  # else `remove_temporary` does
            _discard(root, change.key)
    for names in reversed(list(made)):
        with suppress(OSError):
            _drop_folder(root, names, disk)
    with suppress(OSError):
        disk.barrier()
    return lost


def _discard(root: Path, key: str) -> None:
    *folders, name = tree.split_key(key)
    with suppress(FileNotFoundError), tree.folder(root, *folders) as fd:
        os.unlink(_temporary(name), dir_fd=fd)
