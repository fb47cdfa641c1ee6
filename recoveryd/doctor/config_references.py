"""What the configuration names outside of itself: whether it is there, and fit for its use. Writes and runs nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recoveryd.clients import find_stores
from recoveryd.core import is_session_id
from recoveryd.settings import Config


@dataclass(frozen=True, slots=True)
class Problem:
    """`key` of the configuration (`hooks.on_abort`), what is wrong with what it names, and what to do."""

    key: str
    says: str
    next: str


def problems(config: Config) -> list[Problem]:
    """Of all keys, in the order of the configuration; none when each thing that is named can be used."""
    found = [*_ignored(config), *_hook("on_abort", config.hooks.on_abort)]
    found += _hook("on_complete", config.hooks.on_complete)
    for folder in config.opencode.data_dirs:
        found += _folder(folder)
    for database in config.opencode.databases:
        found += _database(database)
    if config.opencode.password_file is not None:
        found += _password(config.opencode.password_file)
    return found


def _ignored(config: Config) -> Iterator[Problem]:
    for what in config.ignore:
        if not is_session_id(what) and not what.startswith("/"):
            says = f'"{what}" is neither a session\'s id nor an absolute path, so it makes nothing be left alone.'
            yield Problem("ignore", says, "Write ses_..., or the whole path of a project folder.")


def _hook(name: str, argv: tuple[str, ...]) -> Iterator[Problem]:
    key = f"hooks.{name}"
    if not argv:
        return
    program = argv[0]
    path = Path(program)
    if "/" in program and not path.is_absolute():
        yield Problem(key, f"{program} is no absolute path; ~ has no meaning there.", "Write the whole path.")
    elif shutil.which(program) is None:
        if path.is_absolute() and path.is_file():
            yield Problem(key, f"{program} can't be run.", f"chmod +x {program}")
        else:
            where = "is not there" if path.is_absolute() else "is in no folder of PATH"
            yield Problem(key, f"The program {program} {where}.", "Write the whole path of a program that is.")


def _folder(folder: Path) -> Iterator[Problem]:
    key, real = "opencode.data_dirs", folder.resolve()
    held = (store.root.resolve() for store in find_stores([folder]) if store.exists())
    if not folder.exists():
        yield Problem(key, f"{folder} is not there.", "Is its disk mounted? `run` waits for it.")
    elif not folder.is_dir():
        yield Problem(key, f"{folder} is no folder.", "A single database belongs in [opencode] databases.")
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Problem(key, f"{folder} can't be read and written to by you.", "Whose is it? See ls -ld.")
    elif not any(real in (root, root.parent) for root in held):
        says = f"There is no store of OpenCode in {folder}."
        yield Problem(key, says, "Name the folder that holds opencode.db or storage.")


def _database(path: Path) -> Iterator[Problem]:
    key = "opencode.databases"
    if not path.exists():
        yield Problem(key, f"{path} is not there.", "Is its disk mounted? `run` waits for it.")
    elif not path.is_file():
        yield Problem(key, f"{path} is no file.", "A folder belongs in [opencode] data_dirs.")
    elif not os.access(path, os.R_OK | os.W_OK):
        yield Problem(key, f"{path} can't be read and written to by you.", "Whose is it? See ls -l.")


def _password(path: Path) -> Iterator[Problem]:
    key = "opencode.password_file"
    without = "the client is asked without a password."
    if not path.is_file():
        what = "no file" if path.exists() else "not there"
        yield Problem(key, f"{path} is {what}: {without}", "Make it, or unset it.")
        return
    try:
        held = path.read_text("utf-8").strip()
        seen = path.stat()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
        yield Problem(key, f"{path} can't be read ({why}): {without}", f"chmod 600 {path}; is it yours?")
        return
    if not held:
        yield Problem(key, f"{path} is empty: {without}", "Write the password into it, or unset it.")
    if seen.st_mode & 0o077:
        yield Problem(key, f"Others of this machine may read {path}.", f"chmod 600 {path}")
