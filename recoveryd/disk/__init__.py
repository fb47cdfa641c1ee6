"""Other programs' files, handled with care: read without blocking, written atomically, databases, locks.

Imports `core` alone; knows nothing of sessions.
"""

from __future__ import annotations

from recoveryd.disk import atomic, private, tree
from recoveryd.disk.atomic import TEMPORARY
from recoveryd.disk.locks import Holder, StoreLock, lockers, recovery_lock, stale, watcher, watchers
from recoveryd.disk.sqlite import BUSY_S, Database, Files, in_time, settled
from recoveryd.disk.tree import valid_id

__all__ = [
    "BUSY_S",
    "TEMPORARY",
    "Database",
    "Files",
    "Holder",
    "StoreLock",
    "atomic",
    "in_time",
    "lockers",
    "private",
    "recovery_lock",
    "settled",
    "stale",
    "tree",
    "valid_id",
    "watcher",
    "watchers",
]
