"""`recoveryd completion` and `man`: both made from the parser, so that they can't say anything else."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import shtab

from recoveryd.cli.manual import manual, subparsers
from recoveryd.cli.output import OK
from recoveryd.cli.parser import make_parser


def completion(arguments: argparse.Namespace) -> int:
    parser = make_parser()
    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.DIRECTORY if action.metavar == "FOLDER" else shtab.FILE  # type: ignore[attr-defined]
    sys.stdout.write(shtab.complete(parser, arguments.shell).rstrip("\n") + "\n")
    return OK


def man(_: argparse.Namespace) -> int:
    sys.stdout.write(manual(make_parser()))
    return OK


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    yield from parser._actions
    for _, inner in subparsers(parser):
        yield from _actions(inner)
