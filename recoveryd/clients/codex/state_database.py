"""What Codex's own database says of a thread: the file that it is in (`state_5.sqlite`, seen on 0.169.0). Only read."""

from __future__ import annotations

import re
from pathlib import Path

from recoveryd.core import RecoverydError
from recoveryd.disk import Database

_NAME = re.compile(r"state_(\d{1,6})\.sqlite")
_BUSY_S = 0.2  # it is asked beside a repair, which goes on without an answer


def moved_to(home: Path, thread: str, path: str) -> str | None:
    """Ask Codex's state database for the file that a thread is in, where that is there and another one than `path`.

    None, too, where the database says nothing: it is locked, damaged, missing, or of a form that is not known.
    """
    try:
        newest = max((int(found[1]), file) for file in home.iterdir() if (found := _NAME.fullmatch(file.name)))[1]
        database = Database(newest, busy_s=_BUSY_S, user="Codex")
        asked = "SELECT rollout_path FROM threads WHERE id = ?"
        row = database.read(lambda db: db.execute(asked, (thread,)).fetchone())
        said = row[0] if row else None
        return said if isinstance(said, str) and not Path(said).samefile(path) else None
    except (RecoverydError, OSError, ValueError):  # no such file or database, a path with a NUL in it
        return None
