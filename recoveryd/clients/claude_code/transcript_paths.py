"""Where Claude Code keeps its transcripts, and which file is which session's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from recoveryd.clients.claude_code.settings import ClaudeCodeSettings
from recoveryd.disk import is_folder, real_path, tree

PROJECTS = "projects"
SUBAGENTS = "subagents"
SUFFIX = ".jsonl"
DEEPEST = 6  # names of a transcript: `<project>/<session>/subagents/workflows/<run>/agent-….jsonl` (2.1.330)
_AGENT = "agent-"  # beside those lies the workflow's own journal
_NAME = re.compile(r"[A-Za-z0-9_-]+\.jsonl")
_FOLDER = re.compile(r"[A-Za-z0-9_-]+")
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

Found = tuple[str, ...]  # the names below `projects`, the file's last


def homes(env: Mapping[str, str], configured: Sequence[Path] = ()) -> list[Path]:
    """List Claude Code's configuration folders, each once: the one of its environment first, then those that are
    configured.
    """
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    named = env.get("CLAUDE_CONFIG_DIR", "")
    own = Path(named) if Path(named).is_absolute() else home / ".claude"
    return list(dict.fromkeys(real_path(folder.expanduser()) for folder in (own, *configured)))


def places(env: Mapping[str, str], configured: Sequence[Path] = ()) -> list[Path]:
    """List the folders with transcripts, be they there or not."""
    return [home / PROJECTS for home in homes(env, configured)]


def there(env: Mapping[str, str], settings: ClaudeCodeSettings) -> bool:
    """Whether this machine has sessions of Claude Code, or is told of some."""
    return bool(settings.config_dirs) or any(is_folder(home / PROJECTS) for home in homes(env))


def session_of(names: Sequence[str]) -> str | None:
    """Return the session of a file below `projects`: `<project>/<session>.jsonl`, or a subagent's own, which lies in
    folders of its workflow where it has one.

    No name but a UUID is a session's: the client lists and goes on with no other (2.1.332 on `<session>-backup.jsonl`),
    so what has one was put there by its user.
    """
    if not is_transcript(names) or not _SESSION.fullmatch(names[1].removesuffix(SUFFIX)):
        return None
    return names[-1].removesuffix(SUFFIX)


def is_transcript(names: Sequence[str]) -> bool:
    """Whether a file below `projects` is where a transcript may be, whatever the session in its name is called."""
    if not names or not _NAME.fullmatch(names[-1]) or not all(map(_FOLDER.fullmatch, names[:-1])):
        return False
    if len(names) == 2:
        return True
    if not 4 <= len(names) <= DEEPEST or names[2] != SUBAGENTS:
        return False
    return len(names) == 4 or names[-1].startswith(_AGENT)


def parent_of(found: Found) -> str | None:
    """Return the session whose subagent wrote this transcript."""
    return found[1] if len(found) >= 4 else None


def listed(root: Path, folders: Found = (), deeper: int = DEEPEST - 1) -> Iterator[Found]:
    """List the files in and below a folder of `root`. What is no project's or session's folder is passed over.
    StoreError.
    """
    below: list[str] = []
    try:
        with tree.folder(root, *folders) as fd, os.scandir(fd) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX):
                    yield (*folders, entry.name)
                elif deeper and _may_hold(folders, entry.name) and entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise tree.error_of(error, f"list {root}") from error
    for name in below:
        yield from listed(root, (*folders, name), deeper - 1)


def leading_out(root: Path, roots: Sequence[Path]) -> list[Path]:
    """List the projects of `root` that are symlinks to folders in which transcripts lie, outside of all `roots`. Raises
    nothing.
    """
    found = []
    with suppress(OSError):
        for link in sorted(path for path in root.iterdir() if path.is_symlink() and tree.safe_name(path.name)):
            target = real_path(link)
            with suppress(OSError):
                outside = not any(map(target.is_relative_to, roots))
                if outside and any(session_of((link.name, name)) for name in os.listdir(target)):  # noqa: PTH208 - names
                    found.append(link)
    return found


def _may_hold(folders: Found, name: str) -> bool:
    return tree.safe_name(name) and (len(folders) != 2 or name == SUBAGENTS)


def nearness(folder: str, directory: str) -> int:
    """Tell how surely a project's folder is that of a directory, or of one above it: the more of its name is that of
    the directory (all but letters and digits written as "-"; 2.1.332). 0: it is another's.
    """
    name = re.sub(r"[^A-Za-z0-9]", lambda found: "--" if found[0] > "\uffff" else "-", directory)
    return len(folder) if f"{name}-".startswith(f"{folder}-") else 0
