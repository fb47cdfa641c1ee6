"""A desktop of a test's own: Xvfb, a D-Bus session and dunst, all of Debian's packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.bus import bus_process

NEEDED = {"Xvfb": "xvfb", "dbus-daemon": "dbus", "dbus-send": "dbus-bin", "dunst": "dunst", "import": "imagemagick"}
CONFIG = """[global]
dmenu = {menu}
format = "<b>%s</b>\\n%b"
markup = full
width = 420
height = 300
font = DejaVu Sans 10
ellipsize = end
history_length = 100
[urgency_normal]
timeout = 600
"""


def missing() -> str:
    """The packages that are not there, as a reason; "" if all are."""
    packages = [package for program, package in NEEDED.items() if not shutil.which(program)]
    return f"not installed: {', '.join(packages)}" if packages else ""


class Screen:
    """A display of 900 x 700, a bus, and dunst, which can be ended, stopped and started again.

    `session`: the environment that makes it a program's desktop; `env`: that and a home of its own. `before`: words in
    front of each command but Xvfb, which make it another user's.
    """

    def __init__(
        self, folder: Path, display: str, bus: subprocess.Popen[str], address: str, before: Sequence[str]
    ) -> None:
        self.folder, self.bus, self.before = folder, bus, before
        self.session = {"DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": address, "XDG_RUNTIME_DIR": str(folder)}
        self.env = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self.session}
        self.env["TEST_RECOVERYD_LOCKS"] = "below HOME"
        self.env |= {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        menu = folder / "menu"
        menu.write_text(f'#!/bin/sh\ngrep -m 1 "^#$(cat {folder}/choice) "\n')
        menu.chmod(0o755)
        (folder / "dunstrc").write_text(CONFIG.format(menu=menu))
        self.dunst: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start dunst, and wait until it has its name on the bus."""
        command = [*self.before, "dunst", "-config", str(self.folder / "dunstrc")]
        with (self.folder / "dunst.log").open("ab") as log:
            self.dunst = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: self._ctl("is-paused").returncode == 0, "dunst did not come up")

    def end(self) -> None:
        """Kill dunst."""
        if self.dunst is not None:
            self.dunst.kill()
            self.dunst.wait(10)
            self.dunst = None

    def history(self) -> list[dict[str, Any]]:
        """What dunst was told to show, newest first, as it keeps it; nothing stays on the screen."""

        def closed() -> bool:
            self._ctl("close-all")  # again and again: a toast may come in between
            return self.displayed() == 0

        until(closed, "the toasts were not closed")
        found = json.loads(self._ctl("history").stdout)["data"][0]
        return [{name: field["data"] for name, field in toast.items()} for toast in found]

    def displayed(self) -> int:
        """How many toasts are on the screen."""
        return int(self._ctl("count", "displayed").stdout.strip() or 0)

    def press(self, title: str) -> None:
        """Choose a button in dunst's menu of the toasts that are shown."""
        (self.folder / "choice").write_text(title)
        assert self._ctl("context").returncode == 0

    def picture(self, path: Path) -> Path:
        """The screen as a PNG."""
        time.sleep(0.3)  # to be drawn
        subprocess.run(["import", "-window", "root", str(path)], env=self.env, check=True, timeout=20)
        return path

    def _ctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self.before, "dunstctl", *arguments]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=20, check=False)


@contextmanager
def running_screen(folder: Path, before: Sequence[str] = ()) -> Iterator[Screen]:
    """A screen with dunst running. `folder` is short, and empty; `before` are words in front of each command."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "900x700x24", "-nolisten", "tcp"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, pass_fds=[write], stdin=quiet, stdout=quiet, stderr=quiet) as server:
        os.close(write)
        try:
            with os.fdopen(read) as said:
                display = said.readline().strip()
            with bus_process(folder, before) as (bus, address):
                screen = Screen(folder, f":{display}", bus, address, before)
                try:
                    screen.start()
                    yield screen
                finally:
                    screen.end()
        finally:
            server.terminate()


def until(true: Callable[[], object], problem: str, seconds: float = 15.0) -> None:
    """Wait for it; raises AssertionError with `problem` when it does not come."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, problem
        time.sleep(0.05)
