"""Output that is longer than the terminal goes through a pager, where somebody sits in front of it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

_LEFT = (0, 128 + signal.SIGINT, 128 + signal.SIGPIPE)  # how a pager ends that was read, also to a shell


def pages(text: str) -> bool:
    """Show `text` in a pager, `$PAGER` (less), and return whether it was shown: not where it fits, nobody is there, or
    the pager failed.
    """
    words = _pager()
    if not words or not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") in (None, "dumb"):
        return False
    if text.count("\n") < shutil.get_terminal_size().lines:
        return False
    sys.stdout.flush()
    env = {"LESS": "FRX", **os.environ}  # keeps colours, and what was read stays on the screen
    try:
        process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, text=True, errors="replace")  # noqa: S603
    except OSError:
        return False
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it was left before the end
        process.stdin.write(text)
    with suppress(BrokenPipeError):
        process.stdin.close()
    while process.poll() is None:
        with suppress(KeyboardInterrupt):  # is for the pager
            process.wait()
    return process.returncode in _LEFT or process.returncode < 0  # a signal is the reader's own, say Ctrl-C


def _pager() -> list[str]:
    with suppress(ValueError):  # a quote that is not closed
        words = shlex.split(os.environ.get("PAGER", "less"))
        return [] if words == ["cat"] else words
    return []
