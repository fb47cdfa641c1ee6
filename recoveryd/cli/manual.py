"""`recoveryd man`: the manual page, made from the parser, as macros of man(7)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

from recoveryd.cli.declare import subparsers
from recoveryd.cli.output import OK
from recoveryd.cli.parser import make_parser
from recoveryd.clients import whereabouts
from recoveryd.core import __version__, capital
from recoveryd.doctor import CODES

_FILES = (
    ("~/.config/recoveryd/config.toml", "The configuration. `recoveryd config show` prints every key."),
    (
        "~/.local/state/recoveryd/ledger.db",
        "The originals of all that was repaired. `recoveryd ledger` takes them out.",
    ),
    ("~/.local/state/recoveryd/recoveryd.log", "The log; no content of a conversation is in it above DEBUG."),
)
_VARIABLES = (
    ("RECOVERYD_<KEY>", "A key of the configuration, with an underscore for each dot: RECOVERYD_NOTIFY_DESKTOP."),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME", "Where the files above are."),
    *((names, f"Where {title} keeps its sessions.") for title, _, names in whereabouts() if names),
    ("NO_COLOR", "No colours, also on a terminal."),
)
_SHELLS = (
    ("bash", "recoveryd completion bash > ~/.local/share/bash-completion/completions/recoveryd"),
    ("zsh", "recoveryd completion zsh > a folder of $fpath, as _recoveryd"),
    ("fish", "recoveryd completion fish > ~/.config/fish/completions/recoveryd.fish"),
)
_JSON = (
    "A document, on stdout alone. Keys may come; none goes or changes its meaning while schema stays 1. Times are "
    'seconds since the epoch. Without a result it is {"schema": 1, "ok": false, "error": {code, exit, message, hint, '
    "recoveries}}. docs/json.md of the source has every key, and the exit codes of each command."
)


def manual(parser: argparse.ArgumentParser) -> str:
    """Write the manual page of a parser, as macros of man(7)."""
    lines = [f'.TH RECOVERYD 1 "" "recoveryd {__version__}" "User Commands"']
    lines += [".SH NAME", _text(f"{parser.prog} - {_sentence(parser.description)}")]
    lines += [".SH SYNOPSIS", *_synopsis(parser)]
    lines += [".SH OPTIONS", *_options(parser)]
    lines.append(".SH COMMANDS")
    for help, command in _commands(parser):
        lines += [f".SS {_text(command.prog.partition(' ')[2])}", _text(f"{capital(help)}."), *_synopsis(command)]
        lines += [*_options(command), ".PP", _text(capital(command.epilog or ""))]
    lines += [".SH EXIT STATUS", _text(_sentence(parser.epilog))]
    lines += [".SH CHECKS", "The codes of", ".B recoveryd doctor --json", "and what is as it should be when one is ok:"]
    lines += _list(CODES.items())
    lines += [".SH JSON", "What", ".B \\-\\-json", "prints:", _text(_JSON)]
    for title, items in (("FILES", _FILES), ("ENVIRONMENT", _VARIABLES), ("COMPLETION", _SHELLS)):
        lines += [f".SH {title}", *_list(items)]
    return "\n".join(line for line in lines if line) + "\n"


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for help, inner in subparsers(parser):
        yield help, inner
        yield from _commands(inner)


def _synopsis(parser: argparse.ArgumentParser) -> list[str]:
    usage = " ".join(parser.format_usage().split()).removeprefix("usage: ")
    return [".PP", f".B {_text(usage)}"]


def _options(parser: argparse.ArgumentParser) -> list[str]:
    items = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.dest == "help":
            continue
        value = action.metavar or ("" if action.nargs == 0 else "|".join(map(str, action.choices or ())))
        name = ", ".join(action.option_strings)
        items.append((f"{name} {value}".strip(), f"{capital(action.help or '')}."))
    return _list(items)


def _list(items: Iterable[tuple[str, str]]) -> list[str]:
    lines: list[str] = []
    for term, words in items:
        lines += [".TP", f".B {_text(term)}", _text(words)]
    return lines


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _text(text: str) -> str:
    """Escape a text: no macro at the start of a line, no escape, no hyphen that becomes a dash."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{safe}" if safe.startswith(".") else safe


def man(_: argparse.Namespace) -> int:
    """Run `recoveryd man`: print the manual page."""
    sys.stdout.write(manual(make_parser()))
    return OK
