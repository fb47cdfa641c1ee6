"""`recoveryd watch` in a terminal, beside a daemon that heals: what a person sees, and what the keys do."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.e2e.daemon import PATIENCE, Daemon
from tests.live.stuck import Stuck


class Watching:
    """A program in a terminal of 100 x 30. `shown` is what was drawn since the last key."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self.shown = ""

    def wait(self, words: str) -> None:
        """Wait until it shows `words`; raises AssertionError with what it shows when they don't come."""
        deadline = time.monotonic() + PATIENCE
        while words not in self.shown:
            assert time.monotonic() < deadline, f"{words!r} did not come; it shows:\n{self.shown[-3000:]}"
            if select.select([self._terminal], [], [], 0.5)[0]:
                self.shown += os.read(self._terminal, 65536).decode("utf-8", "replace")

    def press(self, key: str) -> None:
        self.shown = ""
        os.write(self._terminal, key.encode())


LEAVE = "\x1b[?1049l"  # the screen of full-screen programs
WATCH = (sys.executable, "-m", "recoveryd", "watch")


@contextmanager
def watching(daemon: Daemon, *command: str) -> Iterator[tuple[Watching, subprocess.Popen[bytes]]]:
    """`command` (`watch`) in a terminal that is its own."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    env = {**daemon.env, "TERM": "xterm-256color"}
    own = partial(fcntl.ioctl, inside, termios.TIOCSCTTY, 0)
    process = subprocess.Popen(
        command or WATCH,
        env=env,
        cwd=daemon.root,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=own,
    )
    os.close(inside)
    try:
        yield Watching(terminal), process
    finally:
        process.kill()
        process.wait(10)
        os.close(terminal)


def test_a_session_is_seen_to_break_and_to_be_healed_and_a_key_takes_it_back(daemon: Daemon, data: Path) -> None:
    stuck = Stuck(data / "opencode" / "storage")
    with watching(daemon) as (screen, process):
        screen.wait("no recoveryd runs")
        stuck.fail()
        screen.wait("1 stuck")
        broken = stuck.files
        with daemon:
            screen.wait("repaired by r")
            screen.wait('"recovery":')  # the diff
            screen.press("c")
            screen.wait("[y/N]")
            screen.press("y")
            screen.wait("Does not go on")
            screen.press("u")
            screen.wait("[y/N]")
            screen.press("n")
            screen.wait("Nothing was undone")
            assert stuck.files != broken
            screen.press("u")
            screen.wait("[y/N]")
            screen.press("y")
            screen.wait("and you undid that")
            assert stuck.files == broken
            screen.press("q")
            assert process.wait(PATIENCE) == 0


def test_it_is_put_aside_for_the_shell_and_obeys_its_keys_when_it_goes_on(daemon: Daemon, data: Path) -> None:
    Stuck(data / "opencode" / "storage").fail()
    with watching(daemon, "bash", "--norc", "-i") as (screen, shell):
        screen.press(f"{shlex.join(WATCH)}; echo it ended with $?\n")
        screen.wait("1 stuck")
        screen.press("\x1a")
        screen.wait("Stopped")
        assert screen.shown.index(LEAVE) < screen.shown.index("Stopped")
        screen.press("stty -a; echo i''t was asked\n")
        screen.wait("it was asked")
        assert " icanon" in screen.shown and "susp = ^Z" in screen.shown
        screen.press("fg\n")
        screen.wait("1 stuck")
        screen.press("u")
        screen.wait("No recovery of this session stands")
        screen.press("q")
        screen.wait(LEAVE)
        screen.press("exit\n")
        assert shell.wait(PATIENCE) == 0
