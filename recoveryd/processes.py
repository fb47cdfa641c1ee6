"""The clients that run on this machine, found by their processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

_NAMES = frozenset({"opencode", "opencode-cli"})  # the second is the one that the desktop application brings
_REACHED = {"127.0.0.1": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::1": "[::1]", "::": "127.0.0.1"}  # noqa: S104


@dataclass(frozen=True, slots=True)
class Listener:
    """A client that listens: its address (`http://127.0.0.1:4096`), and the folder that it works in; "" if unknown."""

    url: str
    home: str = ""


def is_client(name: str, argv: Sequence[str]) -> bool:
    """Whether a process is OpenCode, by its name or by what it was started as. npm's binary begins with a dot."""
    started = PurePath(argv[0]).name if argv else ""
    return any(word.removeprefix(".").removesuffix(".exe") in _NAMES for word in (name, started))


def listeners() -> list[Listener]:
    """The user's own clients that listen on loopback, each address once. Raises nothing."""
    return list({found.url: found for found in _found()}.values())


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
            yield Listener(f"http://{_REACHED[connection.laddr.ip]}:{connection.laddr.port}", process.cwd())
