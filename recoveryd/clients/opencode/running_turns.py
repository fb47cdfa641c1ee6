"""Tell whether a turn that looks cut off may still run: a process of the client has the store, or writes were
recent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from recoveryd.clients.opencode import processes
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.store import Store
from recoveryd.core import Message, Session

if TYPE_CHECKING:
    import psutil

_CLIENT = "opencode"
_HOSTS = (_CLIENT, "bun", "node")  # what the client's process may be called
_REMEMBERED_S = 1.0  # one look at all processes does for many sessions
PROVIDER_S = (
    600.0  # a provider that says nothing is given up after 300 s (1.18.33, by its source; 1.1 if it is told to)
)


class RunningTurns:
    """Tells whether a turn that was not ended may still be under way; `minutes` without a write are waited for."""

    def __init__(self, minutes: float, clock: Callable[[], float] = time.time) -> None:
        self._seconds = minutes * 60
        self._clock = clock
        self._looked: dict[str, tuple[float, str | None]] = {}

    def under_way(self, store: Store, session: str) -> str | None:
        """Tell why a turn of this session may still run, in words; None when it can't."""
        age = self._clock() - store.stamp(session).newest_mtime_ns / 1e9
        if age < self._seconds:
            return f"it was written to {max(age, 0) / 60:.0f} minutes ago, so its turn may be running"
        at, who = self._looked.get(store.id, (float("-inf"), None))
        if time.monotonic() - at > _REMEMBERED_S:
            who = first_process_using(store)
            self._looked[store.id] = time.monotonic(), who
        return f"{who} has its store, so its turn may be running" if who else None

    def at_work(self, store: Store, session: Session, server: OpencodeServer) -> str | None:
        """Tell why the client may be at work in a session, in words; None when it can't be.

        It can't where no answer is open: it stores one before it asks a provider. Nor where each process that has the
        store listens, and says that nothing runs. Else it may wait for a provider, `PROVIDER_S`; and a tool may run for
        as long as it likes.
        """
        opened = _open_answers(session)
        if not opened:
            return None
        age = self._clock() - store.stamp(session.id).newest_mtime_ns / 1e9
        if age >= PROVIDER_S and not any(message.parts for message in opened):
            return None
        folders = {session.directory, *(_folder(message) for message in opened)}
        for who, pid in processes_using(store):
            if not pid or not server.idle(pid, session.id, folders):
                return f"{who} has its store and does not say that it is idle, so its turn may be running"
        return None


def _open_answers(session: Session) -> list[Message]:
    """List the answers that were neither ended nor refused, behind the newest one that was ended."""
    found = []
    for message in sorted(session.messages, key=lambda message: message.by_time, reverse=True):
        if message.role != "assistant" or message.error is not None:
            continue
        if message.completed:
            break
        found.append(message)
    return found


def _folder(message: Message) -> str:
    """Return the folder that the client worked in for this message."""
    path = message.data.get("path")
    folder = path.get("cwd") if isinstance(path, Mapping) else None
    return folder if isinstance(folder, str) else ""


def first_process_using(store: Store) -> str | None:
    """Name a process that has the store, in words; None when none has."""
    return next((who for who, _ in processes_using(store)), None)


def processes_using(store: Store) -> Iterator[tuple[str, int]]:
    """List all who have the store: in words, and by the process id; 0 where that can't be told.

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
                yield f"{said} (pid {process.pid})", process.pid
        except psutil.NoSuchProcess:
            continue
        except psutil.Error:
            yield f"a process that can't be looked at (pid {process.pid})", process.pid
    if store.watch_files and _blind():
        yield "one of the processes, none of which can be looked into,", 0


def _of_another_user(process: psutil.Process) -> str | None:
    """Name a client of another user, who may use the same files (root, say); None for any other process."""
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
        if _only_waits(process):
            return None
        client = hosts and _CLIENT in " ".join([name, *process.cmdline()[:3]]).lower()
        if client and (processes.has_files_of_its_own(process) or _leads(process, store)):
            return "a running OpenCode"
        opened = {file.path for file in process.open_files()} if store.watch_files else set()
    except (psutil.AccessDenied, OSError):
        return "a process that can't be looked into" if hosts else None
    return "a process that has it open" if opened & {str(file) for file in store.watch_files} else None


def _only_waits(process: psutil.Process) -> bool:
    """Whether a process is npm's script, which starts the client and waits for it: the client counts for itself."""
    if process.name() != "node" or Path(*process.cmdline()[1:2]).name != _CLIENT:
        return False
    return any(_CLIENT in child.name() for child in process.children())


def _leads(process: psutil.Process, store: Store) -> bool:
    """Whether the client's environment says that its data are where this store is; when it does not say, they are."""
    folder = processes.data_folder(process.environ())
    return folder is None or processes.leads(folder, store.root)
