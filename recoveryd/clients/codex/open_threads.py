"""Whether a client has a thread open: it holds a lock on a file of the thread's name, which goes when it is closed.

The file is made, or its time set, when the thread is loaded (measured on 0.169.0, also after a kill): what a client
knows of the thread is what stood there then, and what it wrote itself since.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

_LOCKS = Path("/proc/locks")


def open_since(lock: Path) -> float | None:
    """Tell when a client opened the thread of this lock, in seconds since the epoch; None when nobody has it open."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        return found.st_mtime if _held(fd, found.st_ino) else None
    finally:
        os.close(fd)


def _held(fd: int, inode: int) -> bool:
    """Ask the system where it tells: to try the lock would be in the way of a client that takes it then."""
    if sys.platform == "linux" and _LOCKS.exists():
        lines = (line.split() for line in _LOCKS.read_text(encoding="ascii").splitlines())
        return any("FLOCK" in line and any(word.endswith(f":{inode}") for word in line) for line in lines)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False
