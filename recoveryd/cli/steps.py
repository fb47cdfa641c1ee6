"""What a command does, step by step, told while it does it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from recoveryd.cli.output import console, print_wrapped, to_nowhere


class Steps:
    """The steps of a command that were done, each told at once to a person."""

    def __init__(self, *, shown: bool) -> None:
        self.said: list[str] = []
        self._out = console() if shown else None

    def say(self, text: str) -> None:
        self.said.append(text)
        if self._out is None:
            return
        try:
            print_wrapped(self._out, short_paths(text))
        except BrokenPipeError:  # what is begun is done, though nobody reads of it any more
            self._out = None
            to_nowhere(sys.stdout)


def short_paths(text: str) -> str:
    """Write the paths in the text of a step as people do, below `~`; in quotes no shell would understand that."""
    return re.sub(f"(?<!['\"]){re.escape(str(Path.home()))}/", "~/", text)
