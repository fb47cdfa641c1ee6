"""Find the clients that run on this machine, and who uses a store, by their processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from recoveryd.clients.opencode.store_paths import data_folder_of, is_data_folder_of
from recoveryd.clients.store import Store

if TYPE_CHECKING:
    import psutil

NAMES = frozenset({"opencode", "opencode-cli"})  # the second is the one that the desktop application brings
_CLIENT = "opencode"
_HOSTS = (_CLIENT, "bun", "node")  # what the client's process may be called
_REACHED = {"127.0.0.1": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::1": "[::1]", "::": "127.0.0.1"}  # noqa: S104


@dataclass(frozen=True, slots=True)
class Listener:
    """A process of OpenCode that listens: its address (`http://127.0.0.1:4096`), the folder that it works in, and its
    data folder.

    What is unknown is "", and 0 for the process.
    """

    url: str
    home: str = ""
    data: str = ""
    pid: int = 0

    def may_have(self, store: str) -> bool:
        """Whether it may use the store at this path; not one that keeps its sessions in another folder."""
        return not self.data or is_data_folder_of(Path(self.data), Path(store))


def is_client(name: str, argv: Sequence[str], names: Collection[str] = NAMES) -> bool:
    """Whether a process is OpenCode, by its name or by what it was started as. npm's binary begins with a dot."""
    started = PurePath(argv[0]).name if argv else ""
    return any(word.removeprefix(".").removesuffix(".exe") in names for word in (name, started))


def listeners() -> list[Listener]:
    """List the processes of this user's OpenCodes that listen on loopback, each address once. Raises nothing."""
    return list({found.url: found for found in _found()}.values())


def with_sessions(names: Collection[str]) -> Iterator[tuple[int, float]]:
    """List the user's own TUIs and runs of clients of these names: each process, and when it began."""
    import psutil

    for process in psutil.process_iter():
        try:
            mine = process.uids().effective == os.geteuid() and process.name() != "node"  # npm's script only waits
            if mine and is_client(process.name(), argv := process.cmdline(), names) and _has_sessions(argv):
                yield process.pid, process.create_time()
        except (psutil.Error, OSError):
            continue


def _has_sessions(argv: Sequence[str]) -> bool:
    """Whether it works in a folder from its start; other commands show what another one does, or wait to be asked."""
    word = argv[1] if len(argv) > 1 else ""
    return word in ("", "run") or word[0] in "-./~"


def _found() -> Iterator[Listener]:
    import psutil  # late: it is needed only once a session is stuck

    for process in psutil.process_iter():
        try:
            # The cheap question first: there may be thousands of processes, and few are clients.
            if process.uids().effective == os.geteuid() and is_client(process.name(), process.cmdline()):
                yield from _listening(process)
        except (psutil.Error, OSError):
            continue  # it ended, or may not be looked at


def _listening(process: Any) -> Iterator[Listener]:
    for connection in process.net_connections("tcp"):
        if connection.status == "LISTEN" and connection.laddr.ip in _REACHED:
            url = f"http://{_REACHED[connection.laddr.ip]}:{connection.laddr.port}"
            yield Listener(url, process.cwd(), _data(process), process.pid)


def _data(process: Any) -> str:
    """Return the data folder of a process; "" where its environment does not tell all of it, or names other files than
    ours.
    """
    import psutil

    try:
        env = process.environ()
        folder = data_folder_of(env)
        return "" if folder is None or env.get("OPENCODE_DB") or has_files_of_its_own(process) else str(folder)
    except (psutil.AccessDenied, OSError):
        return ""


def has_files_of_its_own(process: Any) -> bool:
    """Whether a process has a mount namespace of its own: there its paths and its environment name other files."""
    where = "/proc/{}/ns/mnt"
    return sys.platform == "linux" and os.readlink(where.format(process.pid)) != os.readlink(where.format("self"))  # noqa: PTH115


def first_process_using(store: Store) -> str | None:
    """Name a process that has the store, in words; None when none has."""
    return next((who for who, _ in processes_using(store)), None)


def processes_using(store: Store) -> Iterator[tuple[str, int]]:
    """List all processes that have the store: in words, and by the process id; 0 where that can't be told.

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
        if client and (has_files_of_its_own(process) or _leads(process, store)):
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
    folder = data_folder_of(process.environ())
    return folder is None or is_data_folder_of(folder, store.root)
