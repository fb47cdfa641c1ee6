"""Check what the section `[opencode]` of the configuration names: whether it is there, and fit for its use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from recoveryd.clients.opencode.settings import NamedStore, OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.stores import find_stores
from recoveryd.core import BusyStoreError, ConfigProblem
from recoveryd.disk import real_path


def config_problems(settings: OpencodeSettings) -> Iterator[ConfigProblem]:
    """Examine each thing that is named, in the order of the keys. Writes nothing and runs nothing."""
    for folder in settings.data_dirs:
        yield from _folder(folder)
    for database in settings.databases:
        yield from _database("opencode.databases", database)
    for named in settings.stores:
        yield from _database("opencode.stores", named.path)
        yield from _tables(named)
    if settings.password_file is not None:
        yield from _password(settings.password_file)


def _folder(folder: Path) -> Iterator[ConfigProblem]:
    key, real = "opencode.data_dirs", real_path(folder)
    held = (
        real_path(store.root)
        for store in find_stores(OpencodeSettings(data_dirs=(folder,)), os.environ)
        if store.exists()
    )
    if not folder.exists():
        yield ConfigProblem(key, f"{folder} is not there.", "Is its disk mounted? `run` waits for it.")
    elif not folder.is_dir():
        yield ConfigProblem(key, f"{folder} is no folder.", "A single database belongs in [opencode] databases.")
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield ConfigProblem(key, f"{folder} can't be read and written to by you.", "Whose is it? See ls -ld.")
    elif not any(real in (root, root.parent) for root in held):
        says = f"There is no store of OpenCode in {folder}."
        yield ConfigProblem(key, says, "Name the folder that holds opencode.db or storage.")


def _database(key: str, path: Path) -> Iterator[ConfigProblem]:
    if not path.exists():
        yield ConfigProblem(key, f"{path} is not there.", "Is its disk mounted? `run` waits for it.")
    elif not path.is_file():
        hint = "A folder belongs in [opencode] data_dirs." if path.is_dir() else "Name the database itself."
        yield ConfigProblem(key, f"{path} is no file.", hint)
    elif not os.access(path, os.R_OK | os.W_OK):
        yield ConfigProblem(key, f"{path} can't be read and written to by you.", "Whose is it? See ls -l.")


def _tables(named: NamedStore) -> Iterator[ConfigProblem]:
    """Whether it is of OpenCode's kind: its tables say so, never its name."""
    store = OpencodeSqlite(named.path)
    if not named.path.is_file() or not os.access(named.path, os.R_OK | os.W_OK) or not store.exists():
        return
    try:
        reason = store.live()
    except BusyStoreError as error:
        reason = error.message
    if reason is not None:
        yield ConfigProblem("opencode.stores", reason, f"Is {named.path} the database that {named.name} writes to?")


def _password(path: Path) -> Iterator[ConfigProblem]:
    key = "opencode.password_file"
    without = "the client is asked without a password."
    if not path.is_file():
        what = "no file" if path.exists() else "not there"
        yield ConfigProblem(key, f"{path} is {what}: {without}", "Make it, or unset it.")
        return
    try:
        held = path.read_text("utf-8").strip()
        seen = path.stat()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
        yield ConfigProblem(key, f"{path} can't be read ({why}): {without}", f"chmod 600 {path}; is it yours?")
        return
    if not held:
        yield ConfigProblem(key, f"{path} is empty: {without}", "Write the password into it, or unset it.")
    if seen.st_mode & 0o077:
        yield ConfigProblem(key, f"Others of this machine may read {path}.", f"chmod 600 {path}")
