"""Sessions that OpenCode's ids left behind: ids start again near zero every 2^36 ms, last in August 2026.

An older client sorts messages by id alone. In a session with messages from before, each new prompt then stands before
the old answers, and the client stores it without ever calling the model (runs of 1.1.53 and 1.2.1). Counted are ids, so
a session that was healed (`wrapped_ids`) is none any more.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from recoveryd.errors import StoreError
from recoveryd.stores import opencode
from recoveryd.stores.base import Generation, Store
from recoveryd.stores.database import Database, in_time

_SESSIONS = "SELECT count(DISTINCT session_id) FROM message WHERE id > ? AND id < 'msg_g'"


def before_wrap(store: Store, generation: Generation, now_ms: int, seconds: float) -> tuple[int, bool]:
    """How many sessions have messages from before the last wrap, and whether all were looked at in so many seconds."""
    deadline = time.monotonic() + seconds
    latest = f"msg_{(now_ms + opencode.DAY_MS) * 4096 % 2**48:012x}~"  # the ids of now lie below it
    if generation is Generation.JSON:
        return _in_tree(store.root, latest, deadline)
    if generation in (Generation.SQLITE, Generation.SQLITE_EVENTS):
        return _in_database(store.root, latest, deadline)
    return 0, True


def _in_tree(root: Path, latest: str, deadline: float) -> tuple[int, bool]:
    found = 0
    try:
        with os.scandir(root / "message") as folders:
            for folder in folders:
                if time.monotonic() > deadline:
                    return found, False
                if folder.is_dir(follow_symlinks=False):
                    found += any(latest < name < "msg_g" for name in os.listdir(folder.path))  # noqa: PTH208 - names
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"{root} can't be read: {error.strerror or error}.") from error
    return found, True


def _in_database(path: Path, latest: str, deadline: float) -> tuple[int, bool]:
    def work(db: sqlite3.Connection) -> tuple[int, bool]:
        found = in_time(db, deadline, lambda: int(db.execute(_SESSIONS, (latest,)).fetchone()[0]))
        return found or 0, found is not None

    return Database(path).read(work)
