"""What a shell knows of OpenCode and a service would not: written into the configuration, and taken out again."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recoveryd.clients import Config, find_stores
from recoveryd.core import ConfigError, RecoverydError
from recoveryd.disk import private_files
from recoveryd.service.base import MARK, Say
from recoveryd.settings import load, replace

PASSWORD = "OPENCODE_SERVER_PASSWORD"  # noqa: S105 the name of a variable
USERNAME = "OPENCODE_SERVER_USERNAME"
NOTE = "install.json"  # in the state folder: the configuration before and after
_PASSWORD_FILE = "opencode-password"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Seen:
    """What has to go into `[opencode]` for the service to find what this shell finds."""

    data_dirs: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    password_file: str = ""
    username: str = ""

    @property
    def values(self) -> dict[str, str]:
        """The keys that have one value, as they are to be."""
        both = {"username": self.username, "password_file": self.password_file}
        return {key: value for key, value in both.items() if value}

    def __bool__(self) -> bool:
        return bool(self.data_dirs or self.databases or self.values)

    def __str__(self) -> str:
        lists = [f"data_dirs {path}" for path in self.data_dirs] + [f"databases {path}" for path in self.databases]
        return ", ".join([*lists, *(f"{key} {value}" for key, value in self.values.items())])


def seen(here: Config, there: Config, env: Mapping[str, str], state: Path) -> Seen:
    """What the configuration as the service reads it (`there`) lacks, next to this shell's (`here`, and `env`)."""
    bare = {"HOME": env.get("HOME") or str(Path.home())}

    def found(dirs: list[Path], databases: list[Path]) -> set[str]:
        named = there.opencode
        more = {"data_dirs": (*named.data_dirs, *dirs), "databases": (*named.databases, *databases)}
        return {s.id for s in find_stores(Config(opencode=named.model_copy(update=more)), bare)}

    stores = find_stores(here, env)
    dirs = [s.root.parent for s in stores if not s.watch_files and s.id not in found([], [])]
    databases = [s.root for s in stores if s.watch_files and s.id not in found(dirs, [])]
    named = there.opencode.password_file
    password = str(state / _PASSWORD_FILE) if env.get(PASSWORD) and not named else ""
    username = env.get(USERNAME, "") if (password or named) and not there.opencode.username else ""
    return Seen(tuple(map(str, dirs)), tuple(map(str, databases)), password, username)


def adopt(found: Seen, config: Path, env: Mapping[str, str], state: Path, say: Say) -> None:
    """Write what was `found` into `config`, keeping all that is there; the password into a file of its own.

    RecoverydError: it can't be written; no configuration was changed then, and the hint says what to write by hand.
    """
    _check_words(env)
    if found:
        _write_places(found, config, state, say)
    if env.get(PASSWORD) and names(config, state / _PASSWORD_FILE):
        _write_password(state / _PASSWORD_FILE, env[PASSWORD], say)


def names(config: Path, file: Path) -> bool:
    """Whether a configuration has `file` as its password file; in doubt it has."""
    try:
        named = load(Config, config, {}).opencode.password_file
        return named is not None and named.resolve() == file.resolve()
    except ConfigError:
        pass
    try:
        return os.fsencode(file.name) in config.read_bytes()
    except OSError:
        return True


def _write_places(found: Seen, config: Path, state: Path, say: Say) -> None:
    before = config.read_bytes().decode() if config.exists() else None
    try:
        after = with_places(before or "", found)
        replace(Config, config, after)
    except (OSError, ValueError, ConfigError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RecoverydError(f"{config} can't be written ({why}).", f"Put into its [opencode]: {found}") from error
    note = _note(state)
    if not note or note["after"] != before:  # else the one before the first time is what to go back to
        note = {"config": str(config.absolute()), "before": before}
    private_files.write(state / NOTE, json.dumps({**note, "after": after}).encode())
    say(f"configured: {config}, since the service does not see what this shell is set to: {found}")


def with_places(text: str, found: Seen) -> str:
    """The configuration with what was found in it; comments and all else stay. ValueError: that can't be had."""
    import tomlkit

    mark = "\ufeff" if text.startswith("\ufeff") else ""  # of an editor on Windows; no part of TOML
    text = text.removeprefix(mark)
    document: Any = tomlkit.parse(text)
    if "opencode" not in document:
        document["opencode"] = tomlkit.table()
    table = document["opencode"]
    for key, places in (("data_dirs", found.data_dirs), ("databases", found.databases)):
        if places and key in table:
            table[key].extend(places)
        elif places:
            table[key] = list(places)
            if not isinstance(table, tomlkit.items.InlineTable):  # which has no room for it
                table[key].comment(f"from `{MARK}`")
    table.update(found.values)
    made = tomlkit.dumps(document)
    _check(tomllib.loads(text), tomllib.loads(made), found)
    return mark + made


def _check(before: dict[str, Any], after: dict[str, Any], found: Seen) -> None:
    wanted = {key: list(before.get("opencode", {}).get(key, [])) for key in ("data_dirs", "databases")}
    wanted["data_dirs"] += found.data_dirs
    wanted["databases"] += found.databases
    table: dict[str, Any] = {**before.get("opencode", {}), **{key: value for key, value in wanted.items() if value}}
    table.update(found.values)
    if after != {**before, "opencode": table}:
        raise ValueError("its form is too unusual to be changed by a program")


def forget(state: Path, say: Say) -> set[Path]:
    """Take back what `adopt` wrote. Returns the configuration that it wrote to, if there was one."""
    note = _note(state)
    if "config" not in note:
        return set()
    config = Path(note["config"])
    try:
        now = config.read_bytes().decode("utf-8", "surrogateescape")
        if now != note["after"]:
            say(f"left: {config}, since it was changed after the installation; see its [opencode]")
        elif note["before"] is not None:
            replace(Config, config, note["before"])
            say(f"restored: {config}, as it was before")
        else:
            config.resolve().unlink()
            say(f"removed: {config}")
    except FileNotFoundError:
        pass
    except (OSError, ConfigError) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        say(f"left: {config} can't be written ({why}); see its [opencode]")
    return {config}


def _check_words(env: Mapping[str, str]) -> None:
    for name in (PASSWORD, USERNAME):
        try:
            env.get(name, "").encode()
        except UnicodeEncodeError as error:
            raise RecoverydError(f"What {name} holds is not UTF-8.", "Unset it, or use plain letters.") from error


def _write_password(path: Path, password: str, say: Say) -> None:
    try:
        if path.exists() and path.read_bytes() == password.encode():
            return
        private_files.write(path, password.encode())
    except OSError as error:
        hint = "Without it the client does not answer: run it again when that is mended."
        raise RecoverydError(f"{path} can't be written: {error.strerror or error}.", hint) from error
    say(f"wrote: {path}, which you alone can read: the password of {PASSWORD}")


def _note(state: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return dict(json.loads((state / NOTE).read_text()))
    return {}
