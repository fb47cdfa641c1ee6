"""What the file of a lock says: who has it. Only notes; the lock is what counts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from recoveryd.core import __version__

# Why a `run` repairs nothing that is not the configuration (`LockOwner.idle`).
REPLACED = (
    "its program was upgraded or removed; it goes on as the new one, or ends where there is none for five minutes"
)


@dataclass(frozen=True, slots=True)
class LockOwner:
    """Who holds a lock: process id, since when (seconds since the epoch), version of recoveryd, what for.

    Of a `run`, `doing` is how it was started ("service", "terminal", "program"), `stores` are those it watches, and
    `idle` is why it repairs nothing; "" when it repairs. `late` and `unusable`, of its `RunNote` alone: by store, in a
    sentence, why what is written there is noticed once a minute only, and why it can repair nothing there.
    """

    pid: int
    since: float
    version: str = __version__
    doing: str = ""
    stores: tuple[str, ...] = ()
    idle: str = ""
    late: Mapping[str, str] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        when = time.localtime(self.since)
        today = when[:3] == time.localtime()[:3]
        return f"pid {self.pid}, since {time.strftime('%H:%M' if today else '%Y-%m-%d %H:%M', when)}"


def write_note(fd: int, holder: LockOwner) -> None:
    """Write the note. Errors are swallowed: the lock is what counts, and a full disk must not stop anything here."""
    with suppress(OSError):
        os.truncate(fd, 0)
        os.pwrite(fd, json.dumps(asdict(holder)).encode(), 0)


def read_note(path: Path) -> LockOwner | None:
    """Read a note; None when there is none, it is half written, or its process is gone (a crash left it)."""
    try:
        data = json.loads(path.read_bytes())
        stores = tuple(map(str, data.get("stores", ())))
        late, unusable = (
            {str(store): str(why) for store, why in data.get(of, {}).items()} for of in ("late", "unusable")
        )
        said = str(data["version"]), str(data["doing"]), stores, str(data.get("idle", "")), late, unusable
        holder = LockOwner(int(data["pid"]), float(data["since"]), *said)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    return holder if _alive(holder.pid) else None


def _alive(pid: int) -> bool:
    if pid <= 0:  # for kill() those are groups
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # another user's
    except (OSError, OverflowError):
        return False
    return True
