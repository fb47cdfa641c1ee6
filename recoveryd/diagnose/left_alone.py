"""Tell whether the user wants a session left alone, by the configuration or by `recoveryd ignore`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePath

from recoveryd.clients import About, Store, lineage
from recoveryd.diagnose.context import Context
from recoveryd.settings import ignored

_WORKTREE = re.compile(r"gitdir: (.+)/worktrees/[^/\n]+\n?")


def left_alone(context: Context, store: Store, session: str) -> bool:
    """Whether the user wants a session left alone: it, one that it is a subagent of, or the folder of either: that in
    which it was begun, to which its user moved it, or in which it went on last.

    A folder stands for all in it, by whatever path it is reached. A session whose own record is gone may be in any
    folder, and the subagent of any session. Errors of the store pass.
    """
    return ignored_by((*context.config.ignore, *ignored(context.state_dir)), store, session) is not None


def ignored_by(names: Sequence[str], store: Store, session: str) -> str | None:
    """Return which of `names` (sessions and folders) has a session left alone; None where none does."""
    folders = [name for name in names if name.startswith("/")]
    for of, about in lineage(store, session) if names else ():
        own = {about.directory, *(store.look(of).directories if folders else ())}
        named = next((name for name in names if name == of or any(is_in(folder, name) for folder in own)), None)
        if named is not None or _in_doubt(about, folders):
            return named or names[0]
    return None


def _in_doubt(about: About, folders: list[str]) -> bool:
    return about == About() or bool(folders and not about.directory)


def is_in(folder: str, other: str) -> bool:
    """Whether a folder lies in another one, as both are spelled or as they really are; of a worktree of git also as it
    lies in the main one.
    """
    if not (folder.startswith("/") and other.startswith("/")):
        return False
    try:
        at, of = PurePath(os.path.realpath(folder)), os.path.realpath(other)
        real = at.is_relative_to(of) or _in_main_worktree(at).is_relative_to(of)
    except ValueError:  # a null character: no folder has that name
        real = False
    return real or PurePath(folder).is_relative_to(other)


def _in_main_worktree(folder: PurePath) -> PurePath:
    """Return where a folder of a worktree of git lies in the main one (gitrepository-layout(5)); else the folder."""
    for root in (folder, *folder.parents):
        try:
            fd = os.open(root / ".git", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return folder
        try:
            said = _WORKTREE.fullmatch(os.fsdecode(os.read(fd, 8192)))
        except OSError:  # a folder: this is the main one
            return folder
        finally:
            os.close(fd)
        if said is None:
            return folder
        git = PurePath(os.path.realpath(root / said[1]))  # the path may be relative
        return (git.parent if git.name == ".git" else git) / folder.relative_to(root)
    return folder
