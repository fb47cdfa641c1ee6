"""Read the settings of a TOML file and the environment. Errors say which key of which file is wrong, and what fits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from recoveryd.core import ConfigError, Kind
from recoveryd.settings.schema import BaseConfig, Section

if TYPE_CHECKING:
    from tomlkit.container import Container
    from tomlkit.items import Item, Table

_PREFIX = "RECOVERYD_"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_FOUND = {bool: "a boolean", int: "a whole number", float: "a number", str: "a text", list: "a list", dict: "a table"}
_WIDTH = 100
_SHELL = "The environment"  # begins what is said of a variable
_ALL_KEYS = "Every key is optional; all of them: recoveryd config show --config /dev/null"  # the file itself is refused

C = TypeVar("C", bound=BaseConfig)


def load(model: type[C], path: Path | None, env: Mapping[str, str] | None = None) -> C:
    """Read the settings of a file (none, or a missing one: the defaults) with `RECOVERYD_<KEY>` of `env` over them.

    `model` is the configuration with the sections of all clients, `env` the process's own when None. Raises
    `ConfigError`: a sentence for each thing that is wrong.
    """
    return _validated(model, _read(path) if path is not None else {}, str(path), os.environ if env is None else env)


def check(model: type[BaseConfig], text: str, path: Path) -> None:
    """Check the text of a configuration before it is in force: raise the `ConfigError` that `load` would, if `path`
    held it.
    """
    check_data(model, _parsed(text, path), str(path))


def check_data(model: type[BaseConfig], data: dict[str, Any], whose: str) -> None:
    """Check settings that are parsed: raise the `ConfigError` that says so of `whose` they are."""
    _validated(model, data, whose, {})


def _validated(model: type[C], data: dict[str, Any], path: str, env: Mapping[str, str]) -> C:
    sources, problems = _overlay(model, data, env)
    try:
        config = model.model_validate(data)
    except ValidationError as error:
        problems += [_problem(model, e, sources, path) for e in error.errors(include_url=False, include_context=False)]
    if problems:
        by_shell = any(problem.startswith(_SHELL) for problem in problems)
        raise ConfigError("\n".join(problems), "Unset the variable, or mend it." if by_shell else _ALL_KEYS)
    return config


def load_sound(model: type[C], path: Path | None, env: Mapping[str, str] | None = None) -> tuple[C, ConfigError | None]:
    """Load as `load` does, but leave out what is wrong: for what must work beside a broken configuration. Also returns
    the error.
    """
    try:
        return load(model, path, env), None
    except ConfigError as error:
        problem = error
    try:
        data = _read(path) if path is not None else {}
    except ConfigError:
        data = {}
    _overlay(model, data, os.environ if env is None else env)
    while True:  # each round takes out at least one key
        try:
            return model.model_validate(data), problem
        except ValidationError as error:
            for one in error.errors(include_url=False, include_context=False, include_input=False):
                _take_out(data, [part for part in one["loc"] if isinstance(part, str)])


def may_forbid(path: Path, problem: ConfigError) -> bool:
    """Whether what is not sound may be meant to keep everything from being written: a file that is no TOML, say."""
    if "dry_run" in problem.message:
        return True
    try:
        _read(path)
    except ConfigError:
        with suppress(OSError):
            text = path.read_bytes()
            return b"dry_run" in text or b"enabled" in text
    return False


def settings_as_toml(config: BaseConfig) -> str:
    """Write settings that were loaded as TOML which `load` reads; what is not the default says so in a comment."""
    import tomlkit  # the daemon shows nothing

    default, document, fields = type(config)(), tomlkit.document(), type(config).model_fields
    for name, field in fields.items():
        if not _is_section(field):
            _put(document, name, getattr(config, name), getattr(default, name))
    for name in fields:
        section, usual = getattr(config, name), getattr(default, name)
        if isinstance(section, Section):
            table = tomlkit.table()
            for key in type(section).model_fields:
                _put(table, key, getattr(section, key), getattr(usual, key))
            document.add(tomlkit.nl())
            document.add(name, table)
    return tomlkit.dumps(document)


def _read(path: Path) -> dict[str, Any]:
    return _parsed(file_text(path), path)


def file_text(path: Path) -> str:
    """Read the text of a configuration file; "" where there is none. Raises ConfigError."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except OSError as error:
        hint = "It has to be a file of yours that you can read."
        raise ConfigError(f"{path} can't be read: {error.strerror or error}.", hint) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: this is not UTF-8.") from error


def _parsed(text: str, path: Path) -> dict[str, Any]:
    import tomllib  # late: many have no such file

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))  # of an editor on Windows
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}.", "The file is TOML: key = value; texts in quotes.") from error


def _take_out(data: dict[str, Any], key: list[str]) -> None:
    section, inner = data.get(key[0]), key[1:]
    if inner and isinstance(section, dict):
        section.pop(inner[0], None)
    else:
        data.pop(key[0], None)


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Section)


def _fields(model: type[BaseConfig]) -> Iterator[tuple[str, FieldInfo]]:
    """Go through each key that has a value, dotted: `max_retries`, `notify.desktop`."""
    for name, field in model.model_fields.items():
        if isinstance(field.default, Section):
            yield from ((f"{name}.{key}", inner) for key, inner in type(field.default).model_fields.items())
        else:
            yield name, field


def variables(env: Mapping[str, str]) -> list[str]:
    """List the names of the variables that set a key."""
    return sorted(name for name in env if name.startswith(_PREFIX))


def but_of_environment(env: Mapping[str, str]) -> str:
    """Tell, behind "all defaults", what the environment sets; "" where it sets nothing."""
    named = ", ".join(variables(env))
    return f", but for {named} of the environment" if named else ""


def variable_of(key: str, env: Mapping[str, str]) -> str:
    """Name the variable that sets a key in place of the file; "" where none does."""
    return name if (name := _variable(key)) in env else ""


def _variable(key: str) -> str:
    return _PREFIX + key.upper().replace(".", "_")


def _overlay(model: type[BaseConfig], data: dict[str, Any], env: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Put the environment over `data`, in place. Returns which key came from which variable, and what is wrong."""
    known = {_variable(key): (key, field) for key, field in _fields(model)}
    sources, problems = {}, []
    for name in variables(env):
        if name not in known:
            problems.append(f"{_SHELL} has {name}, which is no setting{_nearest(name, known)}.")
            continue
        key, field = known[name]
        section, _, last = key.rpartition(".")
        table = data.setdefault(section, {}) if section else data
        if isinstance(table, dict):
            table[last] = _value(env[name], field.default)
            sources[key] = name
    return sources, problems


def _value(text: str, default: object) -> object:
    """Convert the text of a variable to the type of the default; a text that does not fit stays a text."""
    low = text.strip().lower()
    try:
        if isinstance(default, bool):
            value: object = True if low in _TRUE else False if low in _FALSE else text
        elif isinstance(default, tuple):
            listed = [item.strip() for item in text.split(",") if item.strip()]
            value = json.loads(text) if low.startswith("[") else listed
        elif isinstance(default, (int, float)):
            value = type(default)(low)
        else:
            value = text if low or default is not None else None
    except ValueError:
        value = text
    return value


def default_of(model: type[BaseConfig], key: str) -> object:
    """Look up, where settings are read, what a key (`notify.desktop`) is where nobody set it; an Ellipsis: there is no
    such key.
    """
    field = dict(_fields(model)).get(key)
    return ... if field is None else field.default


def nearest(model: type[BaseConfig], key: str) -> str:
    """Make, for the error of an unknown key that was read, a clause that names the one that was probably meant; ""
    where none is near.
    """
    return _nearest(key, dict(_fields(model)))


def parsed_value(model: type[BaseConfig], key: str, text: str) -> object:
    """Read the text that stands for a key's value, in the environment or on the command line, as the kind of value that
    the key has.
    """
    return _value(text, default_of(model, key))


def _problem(model: type[BaseConfig], error: Any, sources: Mapping[str, str], path: str) -> str:
    key = ".".join(part for part in error["loc"] if isinstance(part, str))
    fields = dict(_fields(model))
    if error["type"] == "extra_forbidden":
        return f"{path}: unknown key `{key}`{_nearest(key, [*fields, *model.model_fields])}."
    while key not in fields and key not in model.model_fields:  # within a list of tables
        key = key.rpartition(".")[0]
    field = fields.get(key) or model.model_fields[key]
    value = error["input"]
    where = f"{_SHELL}: {sources[key]}" if key in sources else f"{path}: `{key}`"
    verb = "holds" if any(isinstance(part, int) for part in error["loc"]) else "is"
    near = _nearest(str(value), [*Kind]) if key == "kinds" else ""
    return f"{where} {verb} {_found(value)}; expected {field.description}{near}."


def _found(value: object) -> str:
    text = repr(value) if not isinstance(value, (str, bool)) else json.dumps(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({_FOUND.get(type(value), type(value).__name__)})"


def _nearest(name: str, known: Any) -> str:
    """Find the nearest known key by the whole name, else by its last piece: `desktop` is `notify.desktop`."""
    import difflib  # late: for a typing error alone

    names = list(known)
    near = difflib.get_close_matches(name, names, 1, 0.7)
    near = near or [n for n in names if n.rpartition(".")[2] == name.rpartition(".")[2]]
    near = near or difflib.get_close_matches(name, names, 1, 0.6)
    return f"; the nearest one is `{near[0]}`" if near else ""


def _put(table: Container | Table, key: str, value: object, default: object) -> None:
    import tomlkit

    if value is None:
        table.add(tomlkit.comment(f"{key} is not set"))
        return
    item = _item(value)
    table.add(key, item)
    if value != default:
        usual = "not set" if default is None else _item(default).as_string()
        item.comment("not the default" if "\n" in usual else f"default: {usual}")
        item.trivia.comment_ws = "  "


def _item(value: object) -> Item:
    import tomlkit

    if isinstance(value, tuple):
        items = tomlkit.array()  # of tables, too: these stand in it as values
        items.extend(_item(one) for one in value)
        return items.multiline(len(items.as_string()) > _WIDTH)
    if isinstance(value, Section):
        table = tomlkit.inline_table()
        table.update({key: _item(inner) for key, inner in value})
        return table
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, (bool, int, float)):
        value = str(value).encode("utf-8", "replace").decode()  # what is no UTF-8 has no spelling in TOML
    return tomlkit.item(value)
