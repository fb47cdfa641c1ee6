"""The configuration file written by a program: a new one with all keys, or one key of it; comments stay."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recoveryd.core import ConfigError, RecoverydError, RefusedError, UsageError, command_line
from recoveryd.disk import check_owner, private_files
from recoveryd.settings.load import check, check_data, default_of, file_text, nearest, parsed_value, settings_as_toml
from recoveryd.settings.schema import BaseConfig

_HEAD = "# All settings of recoveryd, with their defaults. Take away the # of what is to be another.\n\n"
DEFAULT = "default"  # typed for `kinds`
_MARK = "\ufeff"  # the byte order mark, which is no part of TOML


def replace(model: type[BaseConfig], path: Path, text: str) -> None:
    """Put `text` in place of a configuration file (through a symlink), or make it (0600); only if `load` would take it.

    Raises `ConfigError`, OSError and, as `check_owner`, RefusedError.
    """
    check(model, text, path)
    target = path.resolve()
    check_owner(target.parent)
    target.parent.mkdir(parents=True, exist_ok=True)
    private_files.write(target, text.encode(), mode=target.stat().st_mode & 0o777 if target.exists() else 0o600)


def create(model: type[BaseConfig], path: Path) -> None:
    """Write a configuration in which every key stands as a comment. RefusedError: there is one."""
    if path.exists():
        raise RefusedError(
            f"{path} is there already.", f"`{command_line('config', 'set', 'KEY', 'VALUE')}` changes a key of it."
        )
    lines = [line if line.startswith("[") and line.endswith("]") else f"# {line}" for line in _shown(model)]
    _write(model, path, _HEAD + "".join(f"{line}\n" if line != "# " else "\n" for line in lines))


def _shown(model: type[BaseConfig]) -> list[str]:
    return settings_as_toml(model()).splitlines()


def change(model: type[BaseConfig], path: Path, key: str, value: str) -> object:
    """Set one key (`notify.desktop`) to a value in the words of a shell, and return it as it is now. Set to none, where
    that is a value, it is taken out. `+KIND` is added to the `kinds` that there are, and `default` takes that key out.

    UsageError: there is no such key, or it can't be that; ConfigError: something else in the file is not sound.
    """
    if default_of(model, key) is ...:
        raise UsageError(
            f"There is no setting `{key}`{nearest(model, key)}.", f"`{command_line('config', 'show')}` lists them all."
        )
    text = file_text(path)
    made = _meant(model, key, value, text)
    unsound = _why_unsound(model, text, path)
    section, _, last = key.rpartition(".")
    wanted = _set_in(text, section, last, made, unsound)

    def put(document: Any) -> None:
        import tomlkit

        _put(document.setdefault(section, tomlkit.table()) if section else document, last, made)

    try:
        check_data(model, wanted, "What was typed")
        (after := edit_text(text, put)).encode()
    except ConfigError as error:
        if unsound is not None:
            hint = "Nothing was written, for only one value is set at a time. Mend the rest of the file by hand."
            raise ConfigError(unsound.message, f"{hint} {unsound.hint}".strip()) from error
        raise UsageError(error.message, "Nothing was written.") from error
    except UnicodeEncodeError as error:
        raise UsageError(f"What was typed for {key} is not UTF-8.", "Nothing was written.") from error
    if _filled(parse_text(after)) != _filled(wanted):
        raise RecoverydError(f"The form of {path} is too unusual to be changed by a program.", f"Write {key} by hand.")
    _write(model, path, after)
    return default_of(model, key) if made is None else made


def _meant(model: type[BaseConfig], key: str, value: str, text: str) -> object:
    """Return the value that is typed for a key of a file of this text; None: the key is to be taken out."""
    if key != "kinds" or not (value == DEFAULT or value.startswith("+")):
        return parsed_value(model, key, value)
    if value == DEFAULT:
        return None
    try:
        now = parse_text(text).get(key)
    except ValueError:  # no TOML, which is told
        now = None
    named = now if isinstance(now, list) else model().kinds
    return [*dict.fromkeys(str(kind).strip() for kind in (*named, *value.removeprefix("+").split(",")))]


def _why_unsound(model: type[BaseConfig], text: str, path: Path) -> ConfigError | None:
    try:
        check(model, text, path)
    except ConfigError as error:
        return error
    return None


def _set_in(text: str, section: str, last: str, value: object, unsound: ConfigError | None) -> dict[str, Any]:
    """Parse a configuration, and put a value into it. Raises `unsound` where that is so bad that it can't be put in."""
    try:
        wanted = copy.deepcopy(parse_text(text))
        _put(wanted.setdefault(section, {}) if section else wanted, last, value)
    except (ValueError, TypeError) as error:  # no TOML; a text where a section should be
        raise unsound or error from error
    return wanted


def _filled(data: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without its empty sections, which say nothing."""
    return {key: value for key, value in data.items() if value != {}}


def _put(table: Any, key: str, value: object) -> None:
    """Put a value into a table, or take it out: TOML has none for "not set"."""
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def edit_text(text: str, edit: Callable[[Any], None]) -> str:
    """Let `edit` change a configuration, as a document of tomlkit. Comments stay, and what an editor on Windows
    writes: a byte order mark, lines that end in CRLF.
    """
    import tomlkit

    document = tomlkit.parse(text.removeprefix(_MARK))
    edit(document)
    made = tomlkit.dumps(document)
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        made = made.replace("\r\n", "\n").replace("\n", "\r\n")
    return _MARK + made if text.startswith(_MARK) else made


def parse_text(text: str) -> dict[str, Any]:
    """Parse the text of a configuration that is edited. Raises ValueError."""
    return tomllib.loads(text.removeprefix(_MARK))


def _write(model: type[BaseConfig], path: Path, text: str) -> None:
    try:
        replace(model, path, text)
    except OSError as error:
        raise RecoverydError(
            f"{path} can't be written: {error.strerror or error}.", "Check its folder and the disk."
        ) from error
