"""Which running Claude Code has a session open: it notes so in `sessions/<pid>.json` beside its projects."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from recoveryd.disk import tree

_NAME = re.compile(r"([1-9][0-9]{0,8})\.json")  # a process, within what every system numbers them by
_JOB = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")  # a word that a shell takes as it is

_DEAD = ([b"Z"], [b"X"])  # the states of a process that ended, and that nobody waited for (in a container, say)


def open_since(home: Path, session: str) -> float | None:
    """Tell since when, in seconds since the epoch, a running Claude Code has this session open; None when none has.

    Of several the one that was started first.
    """
    return min((_since(note) for note in _notes_of(home, session)), default=None)


def background_job(home: Path, session: str) -> str:
    """Name the job by which a Claude Code has this session open in the background (2.1.330: `--bg`, `/bg`), where that
    was started first; "" else. No terminal ends it, only `claude stop` of that job.
    """
    first = min(_notes_of(home, session), key=_since, default={})
    job = first.get("jobId") if first.get("kind") == "bg" else None
    return job if isinstance(job, str) and _JOB.fullmatch(job) else ""


def _notes_of(home: Path, session: str) -> Iterator[dict[str, object]]:
    """List what the processes that run noted of this session. Only the notes are read, not the keys beside them."""
    with suppress(OSError):
        for entry in os.scandir(home / "sessions"):
            named = _NAME.fullmatch(entry.name)
            if named is not None:
                note = _note(home, entry.name)
                if note.get("sessionId") == session and _runs(int(named[1]), note.get("procStart")):
                    yield note


def _since(note: Mapping[str, object]) -> float:
    at = note.get("startedAt")
    return at / 1000 if isinstance(at, (int, float)) and 0 < at < 1e15 else 0.0


def _note(home: Path, name: str) -> dict[str, object]:
    try:
        with tree.folder(home, "sessions") as fd:
            data = json.loads(tree.read(fd, name, f"{home}/sessions/{name}", 1 << 16))
    except Exception:  # a note that can't be read tells nothing
        return {}
    return data if isinstance(data, dict) else {}


def _runs(pid: int, start: object) -> bool:
    """Whether the process runs that the note is of: a number may be used again."""
    try:
        os.kill(pid, 0)
        told = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except PermissionError:
        return False  # another user's: the note is old
    except OSError:
        return not Path("/proc/self/stat").exists() and _alive(pid)
    if told[:1] in _DEAD:
        return False
    return not isinstance(start, str) or len(told) < 20 or told[19].decode() == start


def _alive(pid: int) -> bool:
    """Whether a process lives, where no /proc tells more."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
