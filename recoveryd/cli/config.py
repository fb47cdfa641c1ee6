"""`recoveryd config`"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from recoveryd.cli.common import config_of
from recoveryd.cli.output import OK, WRONG, Result, print_labelled, print_wrapped, render
from recoveryd.clients import Config
from recoveryd.core import ConfigProblem, Kind, UsageError, command_line, is_repairable
from recoveryd.doctor import reference_problems
from recoveryd.settings import DEFAULT, but_of_environment, change, create, paths, settings_as_toml, variable_of


def config(arguments: argparse.Namespace) -> int:
    """Run `recoveryd config`: show, check, set or make the configuration."""
    path = arguments.config or paths.config_file()
    if arguments.key is not None and arguments.what != "set":
        raise UsageError(
            f"`config {arguments.what}` takes nothing behind it; of {arguments.key} it would say nothing.",
            "Another file is named with --config FILE.",
        )
    if arguments.what == "path":
        return render(Result({"path": str(path)}, lambda out: out.print(str(path))), as_json=arguments.json)
    if arguments.what == "init":
        create(Config, path)
        return render(
            Result({"path": str(path)}, lambda out: print_wrapped(out, f"wrote: {path}")), as_json=arguments.json
        )
    if arguments.what == "set":
        return _set(arguments, path)
    settings = config_of(arguments)
    if arguments.what == "show":
        data = settings.model_dump(mode="json")
        return render(
            Result(data, lambda out: out.print(settings_as_toml(settings), end="")), as_json=arguments.json, paged=True
        )
    return render(_checked(path, reference_problems(settings)), as_json=arguments.json)


def _set(arguments: argparse.Namespace, path: Path) -> int:
    if arguments.value is None:
        raise UsageError(
            "A key or its value is missing.", f"Such as: {command_line('config', 'set', 'notify.desktop', 'false')}"
        )
    value = change(Config, path, arguments.key, arguments.value)
    more = _of_kinds(value) if arguments.key == "kinds" else ""
    gone = value is None or (arguments.key == "kinds" and arguments.value == DEFAULT)
    words = f"{arguments.key} is {'no longer ' * gone}set in {path}.{more}"
    words += f" A running recoveryd reads it after `{command_line('restart')}`."
    if over := variable_of(arguments.key, os.environ):
        words += f" Where {over} is set, as it is here, that holds in its place."

    def say(out: Console) -> None:
        print_wrapped(out, words)

    return render(Result({"path": str(path), "key": arguments.key, "value": value}, say), as_json=arguments.json)


def _of_kinds(named: Any) -> str:
    """Tell which kinds are repaired now and which are not, and how to have all of them again."""
    off = [kind for kind in Config().kinds if kind not in named and is_repairable(kind)]
    if not off:
        more = ", ".join(kind for kind in named if kind not in Config().kinds)
        return f" All kinds are repaired that are by default{f', and {more}' if more else ''}."
    on = ", ".join(kind for kind in named if is_repairable(Kind(kind))) or "none"
    every = command_line("config", "set", "kinds", DEFAULT)
    return f" Repairs only: {on}; off: {', '.join(off)}. `{every}` has all of them repaired again."


def _checked(path: Path, found: Sequence[ConfigProblem]) -> Result:
    """Tell what is wrong with the things that a readable configuration names."""

    def say(out: Console) -> None:
        for one in found:
            print_labelled(out, "wrong", f"{one.key}: {one.says}")
            print_labelled(out, "", one.next)
        if not path.exists():
            out.print(f"There is no {path}: all settings are the defaults{but_of_environment(os.environ)}.")
        elif not found:
            out.print(f"{path} is sound.")

    data = {"path": str(path), "exists": path.exists(), "ok": not found, "problems": [asdict(one) for one in found]}
    return Result(data, say, WRONG if found else OK)
