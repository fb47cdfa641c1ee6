"""The configuration file written by a program: a new one with all keys, or one key of it; comments stay."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

from recoveryd.core import RecoverydError, RefusedError, UsageError
from recoveryd.disk import private_files
from recoveryd.settings.load import check, default_of, nearest, parsed_value, show
from recoveryd.settings.schema import BaseConfig

_HEAD = "# All settings of recoveryd, with their defaults. Take away the # of what is to be another.\n\n"


def replace(model: type[BaseConfig], path: Path, text: str) -> None:
    """Put `text` in place of a configuration (through a symlink), or make it (0600); only if `load` would take it.

    Raises `ConfigError` and OSError.
    """
    check(model, text, path)
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    private_files.write(target, text.encode(), mode=target.stat().st_mode & 0o777 if target.exists() else 0o600)


def create(model: type[BaseConfig], path: Path) -> None:
    """Write a configuration in which every key stands as a comment. RefusedError: there is one."""
    if path.exists():
        raise RefusedError(f"{path} is there already.", "`recoveryd config set KEY VALUE` changes a key of it.")
    lines = [line if line.startswith("[") and line.endswith("]") else f"# {line}" for line in _shown(model)]
    _write(model, path, _HEAD + "".join(f"{line}\n" if line != "# " else "\n" for line in lines))


def _shown(model: type[BaseConfig]) -> list[str]:
    return show(model()).splitlines()


def change(model: type[BaseConfig], path: Path, key: str, value: str) -> object:
    """Set one key (`notify.desktop`) to a value in the words of a shell, and return it as it is now.

    UsageError: there is no such key; ConfigError: it can't be that, or the file was not sound before.
    """
    import tomlkit

    if default_of(model, key) is ...:
        raise UsageError(
            f"There is no setting `{key}`{nearest(model, key)}.", "`recoveryd config show` lists them all."
        )
    made = parsed_value(model, key, value)
    text = path.read_text("utf-8") if path.exists() else ""
    check(model, text, path)
    mark = "\ufeff" if text.startswith("\ufeff") else ""  # of an editor on Windows; no part of TOML
    text = text.removeprefix(mark)
    document: Any = tomlkit.parse(text)
    section, _, last = key.rpartition(".")
    table = document.setdefault(section, tomlkit.table()) if section else document
    table[last] = made
    after = tomlkit.dumps(document)
    wanted = copy.deepcopy(tomllib.loads(text))
    (wanted.setdefault(section, {}) if section else wanted)[last] = made
    if tomllib.loads(after) != wanted:
        raise RecoverydError(f"The form of {path} is too unusual to be changed by a program.", f"Write {key} by hand.")
    _write(model, path, mark + after)
    return made


def _write(model: type[BaseConfig], path: Path, text: str) -> None:
    try:
        replace(model, path, text)
    except OSError as error:
        raise RecoverydError(f"{path} can't be written: {error.strerror or error}.") from error
