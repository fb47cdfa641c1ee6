"""The real client as its user sees it: a TUI in a terminal of its own under tmux, which listens (`--port`) or not."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from tests.e2e.client import Client, free_port
from tests.e2e.install import ensure
from tests.e2e.kilo import Kilo

WIDTH, HEIGHT = 110, 36


class Tui(Client):
    """A `Client` that is a TUI. `screen` is what its user sees now."""

    height = HEIGHT

    @staticmethod
    def available() -> bool:
        return shutil.which("tmux") is not None

    def start(self, timeout: float = 90.0) -> None:
        """Start it and wait until it is drawn and healthy."""
        self.port = free_port()
        self._draw("--port", str(self.port))
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                # The folder is at the foot of the first screen.
                if self.call("GET", "/global/health", timeout=5)[0] == 200 and "project" in self.screen:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        screen = self.screen
        self.stop()
        raise RuntimeError(f"the TUI did not come up; it shows: {screen}")

    def _draw(self, *options: str) -> None:
        self._sockets = tempfile.mkdtemp(prefix="rcv")  # the path of a socket may not be long
        size = ["-x", str(WIDTH), "-y", str(self.height)]
        # Its own environment goes by `env`: what tmux is given with -e is not all that the process gets.
        env = [f"{name}={value}" for name, value in {**self._env, "TERM": "xterm-256color"}.items()]
        command = ["env", "-i", *env, str(self.binary), *options]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(self.directory), *command)

    def stop(self) -> None:
        shown = self._tmux("display", "-p", "#{pane_pid}", check=False).strip()
        family = _family(int(shown)) if shown else []
        self._tmux("kill-server", check=False)
        for process in psutil.wait_procs(family, timeout=1)[1]:
            process.kill()
        shutil.rmtree(self._sockets, ignore_errors=True)

    @property
    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", check=False)

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        socket = Path(self._sockets, "tmux")
        done = subprocess.run(
            ["tmux", "-S", str(socket), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=check,
            env=self._env,
        )
        return done.stdout


class PlainTui(Tui):
    """A TUI as most people run it: it listens to nobody, so all that is known of it is its screen and its store."""

    height = 28

    def start(self, timeout: float = 90.0) -> None:
        self._draw()
        self.wait_for("project", timeout)

    def enter(self, line: str, shows: str, timeout: float = 90.0) -> str:
        """Type a line, send it, and wait until these words stand on the screen; returns it as it is then.

        A TUI that is drawn may not take keys yet, and its list of commands takes an Enter for itself: so the line is
        typed again until it stands there, and Enter pressed until something comes of it. On an empty line it does
        nothing.
        """
        deadline = time.monotonic() + timeout
        self._write(line, deadline)
        while True:
            self._tmux("send-keys", "Enter")
            try:
                return self.wait_for(shows, min(3.0, deadline - time.monotonic()))
            except AssertionError:
                if time.monotonic() > deadline:
                    raise

    def choose(self, command: str, search: str) -> None:
        """Open a command's list of prompts, and take the one that ends in `search`: it stands in the input then."""
        self.enter(command, "Search")
        self._tmux("send-keys", "-l", search)
        time.sleep(2)  # until it is sought: nothing on the screen says so for certain
        self._tmux("send-keys", "Enter")
        deadline = time.monotonic() + 20
        while not self._typed.endswith(search) or "Search" in words(self.screen):
            assert time.monotonic() < deadline, f"{search!r} was not found; the screen:\n{self.screen}"
            time.sleep(0.05)

    def _write(self, line: str, deadline: float) -> None:
        """Type word by word, as a person does: 1.1.53 takes away a command whose first space comes too fast."""
        while not self._typed.endswith(line):
            assert time.monotonic() < deadline, f"{line!r} can't be typed; the screen:\n{self.screen}"
            self._tmux("send-keys", "C-u")  # what came of it too late, or in part
            written = ""
            for word in re.findall(r"\S+ ?", line):
                self._tmux("send-keys", "-l", word)
                written += word
                tried = time.monotonic()
                while not self._typed.endswith(written) and time.monotonic() < tried + 5:
                    time.sleep(0.05)

    @property
    def _typed(self) -> str:
        """What stands before the cursor. A notice may hold the same words."""
        x, y = map(int, self._tmux("display", "-p", "#{cursor_x} #{cursor_y}").split())
        lines = self.screen.splitlines()
        return lines[y][:x].ljust(x) if y < len(lines) else ""  # tmux leaves out the blanks at the end of a line

    def wait_for(self, text: str, timeout: float = 60.0) -> str:
        """Wait until these words stand on the screen; returns it as it is then, colours and all."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if text in words(self.screen):
                return self._tmux("capture-pane", "-e", "-p")
            time.sleep(0.05)
        raise AssertionError(f"{text!r} was never seen; the screen:\n{self.screen}")


class _KiloTui(PlainTui, Kilo):
    """Kilo's own TUI."""


def plain_tui(name: str, root: Path, provider: str) -> PlainTui:
    """The TUI of a version of OpenCode, or of "kilo"; it is not started."""
    return _KiloTui(root, provider) if name == "kilo" else PlainTui(ensure(name), root, provider)


def _family(pid: int) -> list[psutil.Process]:
    """A process and all that it started: the client installs its plugins in one."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def words(screen: str) -> str:
    """What stands on a screen, without frames and line ends: a toast is broken into short lines."""
    return " ".join("".join(c if c.isprintable() and c not in "┃│╹▀▄█" else " " for c in screen).split())
