"""`recoveryd completion`: made from the parser, so that it can't say anything else."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import shtab

from recoveryd.cli.common import known_ledger
from recoveryd.cli.declare import subparsers
from recoveryd.cli.output import OK
from recoveryd.cli.parser import make_parser

IDS = ("recoveries", "sessions")  # what the scripts ask for
_ASKED = {"id": "recoveries", "session": "sessions"}  # by the name of the argument
_MOST = 200


def completion(arguments: argparse.Namespace) -> int:
    """Run `recoveryd completion`: print the script of a shell, or the ids that such a script offers."""
    if arguments.shell in IDS:
        sys.stdout.writelines(f"{name}\n" for name in _ids(arguments.shell))
    else:
        sys.stdout.write(script(arguments.shell))
    return OK


def script(shell: str) -> str:
    """Write the completion script of a shell."""
    parser = make_parser()
    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.DIRECTORY if action.metavar == "FOLDER" else shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in _ASKED:
            action.complete = shtab.cmd(f"recoveryd completion {_ASKED[action.dest]} 2>/dev/null")  # type: ignore[attr-defined]
    return f"{shtab.complete(parser, shell).rstrip()}\n"


def _ids(what: str) -> Iterable[str]:
    """List the newest ids that the ledger has."""
    with known_ledger() as ledger:
        entries = ledger.history(_MOST)
    return dict.fromkeys(entry.id if what == "recoveries" else entry.session for entry in entries)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    yield from parser._actions
    for _, inner in subparsers(parser):
        yield from _actions(inner)
