"""Write what a shell tells the clients, and a service would not know, into the configuration; take it out again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from recoveryd.clients import Clients, Config, ShellSettings
from recoveryd.core import ConfigError, RecoverydError
from recoveryd.disk import private_files
from recoveryd.service.base import MARK, Say
from recoveryd.settings import Section, edit_text, load, parse_text, replace

NOTE = "install.json"  # in the state folder: the configuration before and after


Found = Mapping[str, ShellSettings]  # by the section of the configuration


def settings_of_shell(here: Config, there: Config, env: Mapping[str, str], state: Path) -> Found:
    """Ask each client what this shell tells it that the configuration as the service reads it (`there`) lacks, next to
    this shell's (`here`).
    """
    service = {client.name: client for client in Clients(there).all()}
    found: dict[str, ShellSettings] = {}
    for client in Clients(here).all():
        one = client.shell_settings(service.get(client.name, client), env, state)
        section = one.section or client.name
        found[section] = found[section].and_also(one) if section in found else one
    return found


def write_shell_settings(found: Found, config: Path, state: Path, say: Say) -> None:
    """Write what a shell tells the clients (`found`) into the configuration that the service reads, keeping all that is
    there; each secret into a file of its own.

    RecoverydError: it can't be written; no configuration was changed then, and the hint says what to write by hand.
    """
    if any(found.values()):
        _write_places({name: one for name, one in found.items() if one}, config, state, say)
    for one in found.values():
        for file, (variable, text) in one.secrets.items():
            if is_named_in_config(config, file):
                _write_secret(file, variable, text, say)


def is_named_in_config(config: Path, file: Path) -> bool:
    """Whether the configuration still names a file that was written for a shell's setting; in doubt it does."""
    try:
        sections = [dict(section) for _, section in load(Config, config, {}) if isinstance(section, Section)]
        named = [value for section in sections for value in section.values() if isinstance(value, Path)]
        return any(one.resolve() == file.resolve() for one in named)
    except ConfigError:
        pass
    try:
        return os.fsencode(file.name) in config.read_bytes()
    except OSError:
        return True


def _write_places(found: Found, config: Path, state: Path, say: Say) -> None:
    before = config.read_bytes().decode() if config.exists() else None
    try:
        after = text_with_shell_settings(before or "", found)
        replace(Config, config, after)
    except (OSError, ValueError, ConfigError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        by_hand = "; ".join(f"Put into its [{name}]: {one}" for name, one in found.items())
        raise RecoverydError(f"{config} can't be written ({why}).", by_hand) from error
    note = _note(state)
    if not note or note["after"] != before:  # else the one before the first time is what to go back to
        note = {"config": str(config.absolute()), "before": before}
    private_files.write(state / NOTE, json.dumps({**note, "after": after}).encode())
    told = ", ".join(map(str, found.values()))
    say(f"configured: {config}, since the service does not see what this shell is set to: {told}")


def text_with_shell_settings(text: str, found: Found) -> str:
    """Write what a shell tells the clients into the text of a service's configuration; comments and all else stay.
    ValueError: that can't be had.
    """
    made = edit_text(text, lambda document: _put(document, found))
    _check(parse_text(text), parse_text(made), found)
    return made


def _put(document: Any, found: Found) -> None:
    import tomlkit

    for name, one in found.items():
        if name not in document:
            document[name] = tomlkit.table()
        table = document[name]
        for key, items in one.lists.items():
            if items and key in table:
                for item in items:
                    table[key].append(item if isinstance(item, str) else tomlkit.item(dict(item)))
            elif items:
                table[key] = list(items)
                if not isinstance(table, tomlkit.items.InlineTable):  # which has no room for it
                    table[key].comment(f"from `{MARK}`")
        table.update(one.values)


def _check(before: dict[str, Any], after: dict[str, Any], found: Found) -> None:
    wanted = dict(before)
    for name, one in found.items():
        table: dict[str, Any] = dict(before.get(name, {}))
        table |= {key: [*table.get(key, []), *items] for key, items in one.lists.items() if items}
        wanted[name] = {**table, **one.values}
    if after != wanted:
        raise ValueError("its form is too unusual to be changed by a program")


def take_out_shell_settings(state: Path, say: Say) -> set[Path]:
    """Take out of the configuration what `write_shell_settings` wrote there. Returns the configuration that it wrote
    to, if there was one.
    """
    note = _note(state)
    if "config" not in note:
        return set()
    config = Path(note["config"])
    try:
        now = config.read_bytes().decode("utf-8", "surrogateescape")
        if now != note["after"]:
            say(f"left: {config}, since it was changed after the installation; what `install` wrote there stays, too")
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
        say(f"left: {config} can't be written ({why}); what `install` wrote there stays")
    return {config}


def _write_secret(path: Path, variable: str, text: str, say: Say) -> None:
    try:
        if path.exists() and path.read_bytes() == text.encode():
            return
        private_files.write(path, text.encode())
    except OSError as error:
        hint = "Without it the client does not answer: run it again when that is mended."
        raise RecoverydError(f"{path} can't be written: {error.strerror or error}.", hint) from error
    say(f"wrote: {path}, which you alone can read: the password of {variable}")


def _note(state: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return dict(json.loads((state / NOTE).read_text()))
    return {}
