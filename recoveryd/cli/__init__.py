"""The command line: one parser, one function a command, one place that prints."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from recoveryd.errors import RecoverydError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 fine, 1 something is wrong, 2 usage, 3 not found, 4 refused, 75 busy,
    78 bad configuration."""
    from recoveryd.cli.parser import make_parser
    from recoveryd.logs import setup

    arguments = make_parser().parse_args(argv)
    setup("WARNING")  # `run` and `demo` set their own; loguru's default prints DEBUG, and variables in a traceback
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a title may hold what this terminal can't show
    try:
        return int(arguments.run(arguments))
    except RecoverydError as error:
        _complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `recoveryd history | head`: nobody reads on, which is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _complain(error: RecoverydError) -> None:
    """Folded on a terminal; a log or a pipe gets the lines as they are."""
    said = f"recoveryd: {error}"
    if not sys.stderr.isatty():
        print(said, file=sys.stderr)  # noqa: T201
        return
    from recoveryd.cli.output import console, wrapped

    out = console(stderr=True)
    for line in said.splitlines():
        wrapped(out, line)
