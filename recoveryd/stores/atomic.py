"""Writing a set of files so that all of them change, or none: never half a file, never a name the client trips over."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from recoveryd.errors import ConflictError, StoreError
from recoveryd.model import Change
from recoveryd.stores import tree

# The client reads every file whose name does not begin with a dot.
TEMPORARY = ".recoveryd-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def _no_step(name: str) -> None:
    """Called before each step with its name; tests put a crash or a fault in its place."""


step: Callable[[str], None] = _no_step


def read(root: Path, key: str, limit: int = tree.MAX_FILE) -> bytes | None:
    """The bytes of one record below `root`, None when it is not there. StoreError as `tree.read`, and for a bad key."""
    *folders, name = tree.split(key)
    try:
        with tree.folder(root, *folders) as fd:
            return tree.read(fd, name, f"{root}/{key}", limit)
    except FileNotFoundError:
        return None


def apply(root: Path, changes: Sequence[Change]) -> None:
    """Write every change, durably, or leave every record as it was.

    ConflictError: a record is not its `before` any more; StoreError: it can't be written. Both name the file.
    """
    if len({change.key for change in changes}) != len(changes):
        raise StoreError("One record was to be changed twice at once.")
    for change in changes:
        _compare(root, change)
    changes = [change for change in changes if change.before != change.after]
    made: list[tuple[str, ...]] = []
    try:
        # All that needs space on the disk comes first, while nothing is changed yet.
        for change in changes:
            if change.after is not None:
                _prepare(root, change, made)
        for change in changes:
            _swap(root, change)
        _sync(root, changes)
    except BaseException as error:
        lost = _put_back(root, changes, made)
        if lost:
            reason = error.message if isinstance(error, StoreError) else repr(error)
            raise StoreError(f"{reason} What was written before could not be put back: {', '.join(lost)}.") from error
        raise


def clean(root: Path, keys: Iterable[str]) -> int:
    """Remove the temporary files that a crash left in the folders of `keys`; only regular files of this user."""
    removed = 0
    for folders in {tree.split(key)[:-1] for key in keys}:
        with suppress(FileNotFoundError), tree.folder(root, *folders) as fd:
            for name in tree.listing(fd):
                if not name.startswith(TEMPORARY):
                    continue
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                    os.unlink(name, dir_fd=fd)
                    removed += 1
    return removed


def _aside(name: str) -> str:
    """The name that new content has beside the record `name`; a name may have 255 bytes at the most."""
    return TEMPORARY + (name if len(name) < 200 else hashlib.sha256(name.encode()).hexdigest())


def _now(root: Path, change: Change) -> bytes | None:
    """The record as it is, whatever limit it was loaded with."""
    return read(root, change.key, max(tree.MAX_FILE, *(len(image or b"") for image in (change.before, change.after))))


def _compare(root: Path, change: Change) -> None:
    if _now(root, change) != change.before:
        raise ConflictError(f"{root / change.key} is not what was read before: the client wrote since.")


def _prepare(root: Path, change: Change, made: list[tuple[str, ...]]) -> None:
    """Put the new content beside the record, complete and synced."""
    assert change.after is not None
    *folders, name = tree.split(change.key)
    try:
        _make_folders(root, folders, made)
        with tree.folder(root, *folders) as fd:
            with suppress(FileNotFoundError):  # of a crash: the lock of a recovery keeps others of us away
                os.unlink(_aside(name), dir_fd=fd)
            step("create")
            file = os.open(_aside(name), _NEW, 0o600, dir_fd=fd)
            try:
                _fill(file, change.after)
                _dress(file, fd, name, change.mode)
                step("sync")
                _fsync(file)
            finally:
                os.close(file)
    except OSError as error:
        raise tree.trouble(error, f"write {root / change.key}") from error


def _make_folders(root: Path, folders: Sequence[str], made: list[tuple[str, ...]]) -> None:
    for depth in range(1, len(folders) + 1):
        above, name = folders[: depth - 1], folders[depth - 1]
        with tree.folder(root, *above) as fd, suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=fd)
            made.append(tuple(folders[:depth]))
            os.chmod(name, stat.S_IMODE(os.fstat(fd).st_mode), dir_fd=fd)
            _fsync(fd)


def _fill(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def _dress(file: int, fd: int, name: str, mode: int | None) -> None:
    """Mode and owner of the record that is replaced; of its folder, where there is none yet."""
    try:
        model = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        model = os.fstat(fd)
        mode = 0o600 if mode is None else mode
    with suppress(OSError):  # only root may give a file away; a foreign group is the worst that is left
        os.fchown(file, model.st_uid, model.st_gid)
    os.fchmod(file, stat.S_IMODE(model.st_mode) if mode is None else mode)


def _swap(root: Path, change: Change) -> None:
    *folders, name = tree.split(change.key)
    step("compare")
    _compare(root, change)
    try:
        with tree.folder(root, *folders) as fd:
            if change.after is not None:
                step("rename")
                os.rename(_aside(name), name, src_dir_fd=fd, dst_dir_fd=fd)
            elif change.before is not None:
                step("unlink")
                os.unlink(name, dir_fd=fd)
    except OSError as error:
        raise tree.trouble(error, f"write {root / change.key}") from error


def _sync(root: Path, changes: Iterable[Change]) -> None:
    """Make renames and removals durable; a folder that lost its last record goes too."""
    folders = {tree.split(change.key)[:-1]: change for change in changes}
    for names, change in folders.items():
        try:
            step("folder")
            with tree.folder(root, *names) as fd:
                _fsync(fd)
            if any(c.after is None and tree.split(c.key)[:-1] == names for c in changes):
                _drop_folder(root, names)
        except OSError as error:
            raise tree.trouble(error, f"write {root / change.key}") from error


def _drop_folder(root: Path, names: tuple[str, ...]) -> None:
    """Remove a folder below another one if it is empty. The client makes it again when it needs it."""
    if len(names) < 2:
        return
    with tree.folder(root, *names[:-1]) as fd:
        try:
            os.rmdir(names[-1], dir_fd=fd)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EACCES, errno.EPERM}:
                raise
        else:
            _fsync(fd)


def _put_back(root: Path, changes: Sequence[Change], made: Iterable[tuple[str, ...]]) -> list[str]:
    """Take back what was written already, where it is still ours. Returns the keys for which that failed."""
    lost = []
    for change in reversed(changes):
        try:
            if _now(root, change) == change.after != change.before:
                if change.before is not None:
                    _prepare(root, change.reversed(), [])
                _swap(root, change.reversed())
                _sync(root, [change.reversed()])
            _discard(root, change.key)
        except Exception:  # whatever it is, the other records are still to be put back; the caller names this one
            lost.append(change.key)
    for names in reversed(list(made)):
        with suppress(OSError):
            _drop_folder(root, names)
    return lost


def _discard(root: Path, key: str) -> None:
    *folders, name = tree.split(key)
    with suppress(FileNotFoundError), tree.folder(root, *folders) as fd:
        os.unlink(_aside(name), dir_fd=fd)


def _fsync(fd: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # There fsync() leaves the data in the drive's cache. Not every file system has the stronger one.
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
    os.fsync(fd)
