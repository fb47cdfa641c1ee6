"""Write whole, and wait until it is on the disk: file by file, or for the whole file system where that is shorter."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recoveryd.disk import tree

MANY = 64  # writes; from there on one wait for the whole file system is shorter than one for each


@dataclass(frozen=True, slots=True)
class Disk:
    """Flushes writes: `sync` puts a file or folder on the disk, or leaves it to the next `barrier`, behind which all is
    there.
    """

    root: Path
    at_once: bool

    def sync(self, fd: int) -> None:
        """Put an open file or folder on the disk, unless `barrier` will. Raises OSError."""
        if not self.at_once:
            fsync(fd)

    def barrier(self) -> None:
        """Wait until all that was written before is on the disk. Raises OSError when the disk reports an error."""
        if self.at_once:
            with tree.folder(self.root) as fd:
                _syncfs(fd)


def disk(root: Path, writes: int) -> Disk:
    """Choose how that many writes below `root` are flushed to the disk."""
    return Disk(root, writes >= MANY and sys.platform == "linux")


def write_all(fd: int, content: bytes) -> None:
    """Write all of `content` to the file that is open, however many calls that takes. Raises OSError."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def fsync(fd: int) -> None:
    """Put one open file on the disk, past the drive's own cache where the system can. Raises OSError."""
    if sys.platform == "darwin":
        import fcntl

        # There fsync() leaves the data in the drive's cache. Not every file system has the stronger one.
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
    os.fsync(fd)


def _syncfs(fd: int) -> None:
    """Call syncfs(2), which Python lacks: sync the file system of `fd` and raise its errors (since Linux 5.8)."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(fd):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
