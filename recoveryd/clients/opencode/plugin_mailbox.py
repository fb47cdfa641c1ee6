"""Ask the plugin that a client has loaded: by a file for each question, which the answer stands beside a moment later.

All of it lies in one private folder below the state. Whoever can write there is this user, and may do as much to the
client without us.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recoveryd.core import json_of
from recoveryd.disk import private_files
from recoveryd.settings import paths

if TYPE_CHECKING:
    from recoveryd.clients.http import Answer

FORMAT = 1  # of the files
_NAME = re.compile(r"(([1-9][0-9]{0,9})-[0-9a-f]{12})\.json")
_LONGEST = 1 << 16  # bytes of a file
_POLL_S = 0.01
_ROUNDED_S = 2.0  # by which the system may be wrong about when a process began


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a mailbox tells of a plugin that a running OpenCode has loaded: for which folder, and what it finds missing
    in the client.
    """

    key: str
    client: str
    pid: int
    directory: str
    plugin: str  # the checksum of its text
    missing: tuple[str, ...]


def folder() -> Path:
    """Return the folder of the mailbox: of the files between plugins and recoveryd. Made by `recoveryd plugin
    install`.
    """
    return paths.state_dir() / "plugin"


def loaded(client: str, place: Path | None = None) -> list[Loaded]:
    """List, by the mailbox, the plugins that running clients of this name have loaded. Raises nothing."""
    place = folder() if place is None else place
    try:
        names = [path for path in sorted(place.iterdir()) if _NAME.fullmatch(path.name)] if _ours(place) else []
    except OSError:
        return []
    found = [one for path in names if (one := _read(path)) is not None]
    return [one for one in found if one.client == client]


def prune(place: Path | None = None) -> None:
    """Remove what clients that ended have left in the mailbox. Raises nothing."""
    place = folder() if place is None else place
    with suppress(OSError):
        for path in list(place.iterdir()) if _ours(place) else ():
            pid = path.name.partition("-")[0]
            if pid.isdecimal() and _began(int(pid)) is None:
                path.unlink(missing_ok=True)


def ask(
    key: str,
    method: str,
    path: str,
    *,
    deadline: float,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    place: Path | None = None,
) -> Answer | None:
    """Ask by the mailbox: have a plugin call its client; None when no answer came by `deadline` (`time.monotonic()`).
    Raises nothing.

    A question that is taken up is answered once; nobody takes it up after the deadline.
    """
    place = folder() if place is None else place
    name = f"{key}.{os.urandom(6).hex()}"
    question, answer = place / f"{name}.ask", place / f"{name}.answer"
    until = int((time.time() + deadline - time.monotonic()) * 1000)
    said = {"version": FORMAT, "until": until, "method": method, "path": path, "query": query or {}, "body": body}
    try:
        private_files.write(question, json.dumps(said).encode(), lasting=False)
        while time.monotonic() < deadline:
            if (found := _object(answer)) is not None:
                return _answer(found)
            time.sleep(_POLL_S)
    except OSError:
        pass  # the folder is gone: so is recoveryd, soon
    finally:
        for file in (question, answer):
            with suppress(OSError):
                file.unlink(missing_ok=True)
    return None


def _answer(found: Mapping[str, Any]) -> Answer | None:
    from recoveryd.clients.http import Answer  # late: an idle daemon asks nobody

    code = found.get("status")
    return Answer(code, found.get("data")) if isinstance(code, int) and found.get("version") == FORMAT else None


def _read(path: Path) -> Loaded | None:
    """Read the sign of life in a file, of a process that lives; else None."""
    found, named = _object(path), _NAME.fullmatch(path.name)
    if found is None or named is None or found.get("version") != FORMAT or found.get("pid") != int(named[2]):
        return None
    client, directory, plugin = (found.get(name) for name in ("client", "directory", "plugin"))
    started, missing, began = found.get("started"), found.get("missing"), _began(int(named[2]))
    if not (isinstance(client, str) and isinstance(directory, str) and isinstance(plugin, str)):
        return None
    if not isinstance(started, (int, float)) or began is None or (began - _ROUNDED_S) * 1000 > started:
        return None  # it ended, and its number is another process's by now
    words = tuple(word for word in missing if isinstance(word, str)) if isinstance(missing, list) else ()
    return Loaded(named[1], client, int(named[2]), directory, plugin, words)


def _began(pid: int) -> float | None:
    """Tell when a process began, in seconds since the epoch; None where there is none."""
    import psutil  # late: only where a plugin was loaded

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _ours(place: Path) -> bool:
    seen = place.lstat()
    return stat.S_ISDIR(seen.st_mode) and _private(seen)


def _private(seen: os.stat_result) -> bool:
    return seen.st_uid == os.geteuid() and not seen.st_mode & 0o077


def _object(path: Path) -> dict[str, Any] | None:
    """Read the JSON object in a small file that is this user's alone; None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        seen = os.fstat(fd)
        small = stat.S_ISREG(seen.st_mode) and _private(seen) and seen.st_size <= _LONGEST
        said = json_of(os.read(fd, _LONGEST)) if small else None
    finally:
        os.close(fd)
    return said if isinstance(said, dict) else None
