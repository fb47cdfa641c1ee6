"""Whether a process of the client still has a store, so that what looks cut off there may be under way."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
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
            who = holder(store)
            self._looked[store.id] = time.monotonic(), who
        return f"{who} has its store, so its turn may be running" if who else None


def holder(store: Store) -> str | None:
    """Who has the store, in words; None when nobody does.

    Of this user's processes: any that has its database open, and any client whose environment leads it there, or that
    sees other files than we do (a container); and any client of another user. What
    can't be looked into counts, unless its name tells that it is something else; where nothing can be looked into (as
    in the user namespace of `install --strict`), no name is trusted for a database.
    """
    import psutil

    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid():
                continue
            said = _has(process, store) if process.uids().effective == os.geteuid() else _of_another_user(process)
            if said:
                return f"{said} (pid {process.pid})"
        except psutil.NoSuchProcess:
            continue
        except psutil.Error:
            return f"a process that can't be looked at (pid {process.pid})"
    return "one of the processes, none of which can be looked into," if store.watch_files and _blind() else None


def _of_another_user(process: psutil.Process) -> str | None:
    """Root's client, say, may use the same files."""
    return "an OpenCode of another user" if _CLIENT in process.name().lower() else None


def _blind() -> bool:
    """Whether this user has other processes, and not one of them can be looked into. Our own children tell nothing."""
    import psutil

    others = 0
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, OSError):
            try:
                mine = process.pid == os.getpid() or process.ppid() == os.getpid()
                if mine or process.uids().effective != os.geteuid() or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                process.environ()
            except psutil.AccessDenied:
                others += 1
            else:
                return False
    return others > 0


def _has(process: psutil.Process, store: Store) -> str | None:
    import psutil

    if process.status() == psutil.STATUS_ZOMBIE:
        return None  # it has ended
    name = process.name().lower()
    hosts = any(host in name for host in _HOSTS)
    try:
        client = hosts and _CLIENT in " ".join([name, *process.cmdline()[:3]]).lower()
        if client and (_elsewhere(process) or _leads(process, store)):
            return "a running OpenCode"
        opened = {file.path for file in process.open_files()} if store.watch_files else set()
    except (psutil.AccessDenied, OSError):
        return "a process that can't be looked into" if hosts else None
    return "a process that has it open" if opened & {str(file) for file in store.watch_files} else None


def _elsewhere(process: psutil.Process) -> bool:
    """Whether it has a mount namespace of its own: there its paths and its environment name other files."""
    where = "/proc/{}/ns/mnt"
    return sys.platform == "linux" and os.readlink(where.format(process.pid)) != os.readlink(where.format("self"))  # noqa: PTH115


def _leads(process: psutil.Process, store: Store) -> bool:
    """Whether the client's environment says that its data are where this store is; when it does not say, they are."""
    said = process.environ()
    base, home = said.get("XDG_DATA_HOME", ""), said.get("HOME", "")
    if not Path(base).is_absolute() and not home:
        return True
    folder = Path(base) if Path(base).is_absolute() else Path(home) / ".local" / "share"
    data = folder / "opencode"
    return store.root.parent == data.resolve() or store.root == (data / "storage").resolve()
