"""Show notices on this desktop, on Linux and on macOS."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from shutil import which

from recoveryd.core import clean
from recoveryd.tell.freedesktop import LIMIT_S, Talk
from recoveryd.tell.toast import BODY_LENGTH, Toast, safe_title

KEPT = 4  # toasts whose buttons work; of more, the oldest is taken away
_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class Desktop:
    """Shows toasts, one after the other, and hears their buttons."""

    def __init__(self) -> None:
        self._kept: deque[Talk] = deque()

    def show(self, toast: Toast) -> str:
        """Show a toast. Returns "" when the service took it, else why not. Takes `LIMIT_S` and a second at the most."""
        if sys.platform == "darwin":
            return _osascript(safe_title(toast.title), clean(toast.body, BODY_LENGTH, keep="\n"))
        if sys.platform == "linux" and not _has_bus():
            return "there is no session bus"  # before the import: 4 MB that a server never needs
        self._kept = deque(talk for talk in self._kept if talk.is_alive())
        if any(talk.problem is None for talk in self._kept):
            return "the session bus still holds up the notice before"
        talk = Talk(toast)
        problem = talk.begin()
        if talk.stays or talk.problem is None:
            self._kept.append(talk)
        while len(self._kept) > KEPT:
            self._kept.popleft().leave()
        return problem

    def close(self) -> None:
        """Take away the notices whose buttons do nothing from now on."""
        deadline = time.monotonic() + LIMIT_S / 2
        kept = list(self._kept)
        for talk in kept:
            talk.leave()
        for talk in kept:
            talk.join(max(deadline - time.monotonic(), 0))


def can_show() -> tuple[bool, str]:
    """Tell whether a notice can be shown now, and why not; none is shown. Takes `LIMIT_S` and a second at the most."""
    if sys.platform == "darwin":
        found = which("osascript")
        return found is not None, found or "osascript is not there"
    if sys.platform == "linux" and not _has_bus():
        return False, "there is no session bus"
    problem = Talk(None).begin()
    return not problem, problem or "the notification service answers"


def _has_bus() -> bool:
    if os.environ.get("DBUS_SESSION_BUS_ADDRESS") or os.environ.get("DISPLAY"):
        return True
    usual = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent", "bus")
    if not usual.is_socket():
        return False
    # Where every other client looks for it when nothing says otherwise (over ssh, from cron); dbus-fast does not.
    os.environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={usual}"
    return True


def _osascript(title: str, body: str) -> str:
    """Show a notice on macOS by its script runner: the system silently drops those of programs outside of an app
    bundle.

    The texts are arguments, never part of the script. Its output goes to a file: a pipe could be held open.
    """
    command = ["osascript", *(word for line in _SCRIPT for word in ("-e", line)), "--", title, body]
    with tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(  # noqa: S603 (found on PATH, as any command of the user)
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"osascript did not end in {LIMIT_S:g} seconds"
        except OSError as error:
            return f"osascript can't be run ({error.strerror})"
        said.seek(0)
        words = said.read(1000).decode("utf-8", "replace")
    return f"osascript failed: {words.strip() or f'exit code {done.returncode}'}" if done.returncode else ""
