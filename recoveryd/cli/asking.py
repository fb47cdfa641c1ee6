"""Ask a person before something is done that they may not want, or that can't be taken back."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from recoveryd.cli.output import console, print_wrapped
from recoveryd.core import RefusedError

if TYPE_CHECKING:
    from rich.console import Console


def somebody_there() -> bool:
    """Whether a person can be asked: a question goes to stderr, the answer comes from stdin."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def is_asked(arguments: argparse.Namespace) -> bool:
    """Whether the person at the terminal is asked before what was shown is done, once for all of it, also where the
    result goes elsewhere; a script is not.
    """
    return not (arguments.yes or arguments.json) and somebody_there()


def before_question(arguments: argparse.Namespace) -> Console:
    """Make a console for what is shown first: if the result goes elsewhere, beside the question. What nobody is asked
    about is done, though nobody reads of it any more (`| head`).
    """
    return console(stderr=is_asked(arguments) and not sys.stdout.isatty(), goes_on=True)


def agreed(question: str) -> bool:
    """Ask the person in front of the terminal a question that is answered by yes or no. Anything but a yes, and no
    answer at all, is a no.
    """
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # Ctrl-D: what follows begins on a line of its own
        sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")


def insist(what: str, *, yes: bool) -> None:
    """Raise `RefusedError` unless a person agrees to `what` (a sentence), now or by --yes (`yes`)."""
    if yes:
        return
    if not somebody_there():
        raise RefusedError(f"{what} Nothing was removed.", "Add --yes if that is what you want.")
    print_wrapped(console(stderr=True), what)
    if not agreed("Go on?"):
        raise RefusedError("Nothing was removed.")
