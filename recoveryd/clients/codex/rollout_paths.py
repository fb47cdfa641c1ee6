"""Where Codex keeps its threads: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, and `archived_sessions/`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from recoveryd.clients.home_setting import home_setting
from recoveryd.disk import is_folder, real_path

SESSIONS, ARCHIVE, LOCKS = "sessions", "archived_sessions", "thread-writer-locks"
DEPTH = 3  # folders: year, month, day
_PACKED = ".zst"  # behind the name of one that was compressed (seen on 0.169.0)
_THREAD = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# Once its user took turns back, a thread goes on in a file with one more id in its name (seen on 0.169.0).
_ROLLOUT = re.compile(rf"rollout-[0-9T-]{{1,40}}-({_THREAD})(?:_({_THREAD}))?\.jsonl")
_IS_THREAD = re.compile(_THREAD)


def homes(env: Mapping[str, str], configured: Sequence[Path] = ()) -> list[Path]:
    """List the folders of Codex, each once: its own (`CODEX_HOME`, else `~/.codex`) first, then those configured."""
    named = env.get("CODEX_HOME", "")
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    found = [Path(named) if Path(named).is_absolute() else home / ".codex", *(path.expanduser() for path in configured)]
    return list(dict.fromkeys(map(real_path, found)))


def places(env: Mapping[str, str], configured: Sequence[Path] = ()) -> list[Path]:
    """List the folders with rollouts, be they there or not."""
    return [home / SESSIONS for home in homes(env, configured)]


def there(env: Mapping[str, str], configured: Sequence[Path] = ()) -> list[Path]:
    """List the homes of Codex that this machine has."""
    return [home for home in homes(env, configured) if is_folder(home)]


def thread_of(name: str) -> str | None:
    """Return the thread whose rollout has this file name; None for any other file."""
    found = _ROLLOUT.fullmatch(name)
    return found[1] if found else None


def packed_thread_of(name: str) -> str | None:
    """Return the thread whose rollout, compressed by Codex, has this file name; None for any other file."""
    return thread_of(name.removesuffix(_PACKED)) if name.endswith(_PACKED) else None


def leading_out(root: Path, roots: Sequence[Path]) -> list[Path]:
    """List the folders of years, months and days of `root` that are symlinks out of all `roots`, with rollouts behind
    them. Raises nothing.
    """
    links = ((link, real_path(link)) for link in _links(root, DEPTH))
    return [link for link, real in links if not any(map(real.is_relative_to, roots)) and _holds(link)]


def _links(folder: Path, deeper: int) -> Iterator[Path]:
    with suppress(OSError):
        for path in sorted(path for path in folder.iterdir() if path.name.isdecimal()):
            if path.is_symlink():
                yield path
            elif deeper > 1:
                yield from _links(path, deeper - 1)


def _holds(link: Path) -> bool:
    with suppress(OSError):
        return any(thread_of(name) for _, _, names in os.walk(link) for name in names)
    return False


def file_of(name: str) -> str:
    """Return the id by which a rollout of this file name is known among those of its thread: the last in it; "" for any
    other file.
    """
    found = _ROLLOUT.fullmatch(name)
    return (found[2] or found[1]) if found else ""


def program(homes: Sequence[Path]) -> str:
    """Name the program as it finds the threads of one of its `homes`."""
    return f"{home_setting('CODEX_HOME', homes, '.codex')}codex"


def resume(homes: Sequence[Path], thread: str, *, archived: bool) -> str:
    """Make the command that opens a thread; one that is archived is refused before (0.169.0)."""
    codex = program(homes)
    first = f"{codex} unarchive {thread} && " if archived else ""
    return f"{first}{codex} resume {thread}"


def is_thread(text: str) -> bool:
    """Whether this can be the id of a thread of Codex."""
    return _IS_THREAD.fullmatch(text) is not None
