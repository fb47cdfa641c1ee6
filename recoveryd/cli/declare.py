"""Declare commands. The functions behind them are imported when they run: `run` must not carry the rest."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn, TypeAlias

from recoveryd.core import UsageError, capital


class Parser(argparse.ArgumentParser):
    """Shows examples as they are written; what makes no sense is an error like all others."""

    def __init__(self, **options: object) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)  # type: ignore[arg-type]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is no choice, and name the nearest: a long list helps nobody who mistyped one of it."""
        if action.choices is not None and value not in action.choices:
            import difflib  # late: for a typing error alone

            near = difflib.get_close_matches(str(value), [str(choice) for choice in action.choices], 1)
            if near:
                raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {near[0]!r}?")
        super()._check_value(action, value)

    def _print_message(self, message: str, file: object = None) -> None:
        """Write the help or the version. Unlike argparse, it lets an error of the stream pass: `main` tells of it."""
        del file  # the usage of an error is not printed here
        sys.stdout.write(message)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, " ".join(self.format_usage().split()))


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def add_command(
    commands: Commands, name: str, help: str, example: str, *, json: bool = True
) -> argparse.ArgumentParser:
    """Add a command; `help` is a line of at most 60 characters, so that the list of commands has a line for each."""
    description = f"{capital(help)}."
    made = commands.add_parser(name, help=help, description=description, epilog=f"example: {example}")
    everywhere(made, default=argparse.SUPPRESS)  # what stands before the command holds where nothing stands behind it
    if json:
        made.add_argument("--json", action="store_true", help="print the result as JSON")
    made.set_defaults(run=later(name))
    return made


def everywhere(parser: argparse.ArgumentParser, *, default: object = None) -> None:
    """Add the options that may stand before the command and behind it."""
    parser.add_argument("--config", type=Path, metavar="FILE", default=default, help="another configuration file")
    how_much = parser.add_mutually_exclusive_group()
    for name, help in (("quiet", "print only results and errors"), ("verbose", "log all that it does, on stderr")):
        how_much.add_argument(f"-{name[0]}", f"--{name}", action="store_true", default=default or False, help=help)


def later(name: str, function: str = "") -> Callable[[argparse.Namespace], int]:
    """Make the function behind a command, which imports the command's module when it is run."""

    def call(arguments: argparse.Namespace) -> int:
        if name == "run":  # the parser's memory is taken by what is imported now, and kept for months
            gc.collect()
        module = import_module(f"recoveryd.cli.{_MODULES.get(name, name)}")
        return int(getattr(module, function or name)(arguments))

    return call


_MODULES = {
    "show": "history",
    "undo": "history",
    "unpause": "pause",
    "ignore": "pause",
    "uninstall": "install",
    "man": "manual",
    "start": "switch",
    "stop": "switch",
    "restart": "switch",
}


def filled(text: str) -> str:
    """Read a name that a command is held to. An empty one (a variable of a script that is not set) is none: it would
    hold the command to nothing.
    """
    if not text.strip():
        raise ValueError(text)
    return text


filled.__name__ = "name"  # what argparse calls it when it is none


def add_client_option(made: argparse.ArgumentParser) -> None:
    """Let a command be held to one client."""
    made.add_argument(
        "--client", type=filled, metavar="NAME", help="this client alone: by its name in JSON or in words"
    )


def read_count(text: str) -> int:
    """Read the argument of a declared option that is a number, 0 or more."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def read_span(text: str) -> float:
    """Read the argument of a declared option that is a time (90s, 30m, 2h, 1d) as seconds."""
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86_400}.get(text[-1:], 0)
    with suppress(ValueError):
        number = float(text[:-1])
        if unit and 0 < number < 1e6:
            return number * unit
    raise argparse.ArgumentTypeError(f"invalid time value: {text!r} (wanted is one such as 90s, 30m, 2h or 1d)")


read_count.__name__ = "number"  # what argparse calls it when a value is none


def subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """List the commands that are declared to a parser: their lines of help, and their own parsers."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            yield from ((helps.get(name, ""), inner) for name, inner in action.choices.items())
