"""The program in a terminal of its own, as a person has it in front of them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import tempfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support import forked

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Shown:
    """`drawn`: all that went to the terminal; `out`: stdout, where that was a file; `code`: how the command ended."""

    drawn: str
    out: str
    code: int

    @property
    def text(self) -> str:
        """What was drawn, without colours and moves of the cursor."""
        return _CONTROL.sub("", self.drawn).replace("\r\n", "\n")


def in_terminal(*argv: str, typed: str | None = None, whole: bool = False, columns: int = 80, **env: str) -> Shown:
    """Run a command with stderr on a terminal; `whole`: stdout, too. `typed`: what a person types (None: no stdin).

    It is typed when something is asked: at the first text that ends in "] ".
    """
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    own = {**os.environ, "TERM": "xterm-256color", **env}
    own.pop("COLUMNS", None)
    with tempfile.TemporaryFile() as result:  # a pipe that nobody reads meanwhile would fill
        with Path(os.devnull).open() as nothing:
            stdin = nothing.fileno() if typed is None else inside
            wait = forked.start(argv, own, (stdin, inside if whole else result.fileno(), inside))
        os.close(inside)
        drawn = b""
        for piece in _pieces(terminal):
            drawn += piece
            if typed is not None and drawn.endswith(b"] "):
                os.write(terminal, typed.encode())
                typed = None
        code = wait(30)
        result.seek(0)
        out = result.read().decode()
    os.close(terminal)
    return Shown(drawn.decode("utf-8", "replace"), out, code)


def _pieces(terminal: int) -> Iterator[bytes]:
    """What is drawn, until the other end is closed; at most 30 seconds of silence."""
    while select.select([terminal], [], [], 30)[0]:
        try:
            yield os.read(terminal, 65536)
        except OSError:
            return


def headings_without_content(text: str) -> list[str]:
    """Lines that end in a colon and have nothing below them: what a person would stumble over."""
    lines = [line.rstrip() for line in text.splitlines()]
    below = [*lines[1:], ""]
    return [line for line, next_line in zip(lines, below, strict=True) if line.endswith(":") and not next_line]


def kept(folder: Path) -> dict[str, tuple[int, int]]:
    """All files and folders below a folder, with size and time of change: for what may leave no trace."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }
