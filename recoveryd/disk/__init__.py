"""Other programs' files, handled with care: read without blocking, written atomically, databases, locks.

Imports `core` alone; knows nothing of sessions.
"""

from __future__ import annotations

from recoveryd.disk import file_transaction, flush, private_files, tree
from recoveryd.disk.file_transaction import TEMPORARY
from recoveryd.disk.lock_notes import REPLACED, LockOwner
from recoveryd.disk.locks import (
    RunNote,
    StoreLock,
    is_left_over,
    lockers,
    recovery_lock,
    watcher,
    watchers,
)
from recoveryd.disk.owners import check_owner, foreign
from recoveryd.disk.places import (
    NOT_MOUNTED,
    UNWRITABLE,
    dangling_link,
    distinct_places,
    free_space,
    group_by_place,
    is_folder,
    is_full,
    is_read_only,
    path_exists,
    real_path,
)
from recoveryd.disk.sqlite import BUSY_S, Database, Files, connect, error_code, in_time, settled
from recoveryd.disk.tree import safe_name

__all__ = [
    "BUSY_S",
    "NOT_MOUNTED",
    "REPLACED",
    "TEMPORARY",
    "UNWRITABLE",
    "Database",
    "Files",
    "LockOwner",
    "RunNote",
    "StoreLock",
    "check_owner",
    "connect",
    "dangling_link",
    "distinct_places",
    "error_code",
    "file_transaction",
    "flush",
    "foreign",
    "free_space",
    "group_by_place",
    "in_time",
    "is_folder",
    "is_full",
    "is_left_over",
    "is_read_only",
    "lockers",
    "path_exists",
    "private_files",
    "real_path",
    "recovery_lock",
    "safe_name",
    "settled",
    "tree",
    "watcher",
    "watchers",
]
