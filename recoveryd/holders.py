"""Whether a process of the client still has a store, so that what looks cut off there may be under way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recoveryd.stores.base import Store

if TYPE_CHECKING:
    import psutil

_CLIENT = "opencode"
_HOSTS = (_CLIENT, "bun", "node")  # what the client's process may be called
_REMEMBERED_S = 1.0  # one look at all processes does for many sessions


class Holders:
    """Tells whether a turn that was not ended may still be under way; `minutes` without a write are waited for."""

    def __init__(self, minutes: float, clock: Callable[[], float] = time.time) -> None:
        self._seconds = minutes * 60
        self._clock = clock
        self._looked: dict[str, tuple[float, str | None]] = {}

    def under_way(self, store: Store, session: str) -> str | None:
        """Why a turn of this session may be under way, in words; None when it can't be."""
        age = self._clock() - store.stamp(session).newest_mtime_ns / 1e9
        if age < self._seconds:
            return f"it was written to {max(age, 0) / 60:.0f} minutes ago, so its turn may be running"
        at, who = self._looked.get(store.id, (float("-inf"), None))
        if time.monotonic() - at > _REMEMBERED_S:
            who = holder(store.watch_files)
            self._looked[store.id] = time.monotonic(), who
        return f"{who} has its store, so its turn may be running" if who else None


def holder(files: Sequence[Path]) -> str | None:
    """Who has the store, in words; None when nobody does. `files` are its databases, none for a tree of files.

    Of this user's processes: any that has one of `files` open, and any that is called like the client. One that can't
    be looked into counts, unless its name tells that it is something else.
    """
    import psutil

    names = {str(file) for file in files}
    for process in psutil.process_iter():
        try:
            with process.oneshot():
                if process.pid != os.getpid() and process.uids().effective == os.geteuid():
                    said = _has(process, names)
                    if said:
                        return f"{said} (pid {process.pid})"
        except psutil.NoSuchProcess:
            continue
        except psutil.Error:
            return f"a process that can't be looked at (pid {process.pid})"
    return None


def _has(process: psutil.Process, names: set[str]) -> str | None:
    import psutil

    if process.status() == psutil.STATUS_ZOMBIE:
        return None  # it has ended
    called = process.name().lower()
    if _CLIENT in called or (not names and called in _HOSTS and _runs_client(process)):
        return "a running OpenCode"
    if not names:
        return None
    try:
        opened = {file.path for file in process.open_files()}
    except (psutil.AccessDenied, OSError):
        return "a process that can't be looked into" if any(host in called for host in _HOSTS) else None
    return "a process that has it open" if opened & names else None


def _runs_client(process: psutil.Process) -> bool:
    import psutil

    try:
        return any(_CLIENT in Path(word).name.lower() for word in process.cmdline())
    except (psutil.AccessDenied, OSError):
        return True
