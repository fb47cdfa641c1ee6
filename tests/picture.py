"""The picture of the README: `python -m tests.picture FILE` runs `recoveryd demo` in a terminal and draws it."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, LINES = 96, 90
_PATIENCE_S = 60.0
_END = "recoveryd run    watch them"


def screen(command: str, end: str, columns: int = COLUMNS, lines: int = LINES) -> str:
    """What a terminal shows, colours and all, once `end` is on it. TimeoutError when it never is."""
    with tempfile.TemporaryDirectory() as home:
        tmux = ["tmux", "-S", f"{home}/tmux"]
        folders = {f"XDG_{name}_HOME": f"{home}/{name.lower()}" for name in ("DATA", "STATE", "CONFIG", "CACHE")}
        env = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "SHELL": "/bin/sh", **folders}
        env["TEST_RECOVERYD_LOCKS"] = "below HOME"
        size = ["-x", str(columns), "-y", str(lines)]
        run = ["new-session", "-d", *size, f"{command}; exec sleep {_PATIENCE_S:g}"]
        subprocess.run([*tmux, "-f", "/dev/null", *run], env=env, check=True, timeout=20)
        try:
            deadline = time.monotonic() + _PATIENCE_S
            while time.monotonic() < deadline:
                shown = subprocess.run(
                    [*tmux, "capture-pane", "-e", "-p"], capture_output=True, text=True, env=env, check=True, timeout=20
                ).stdout
                if end in shown:
                    return shown.rstrip()
                time.sleep(0.1)
            raise TimeoutError(f"{command!r} never showed {end!r}")
        finally:
            subprocess.run([*tmux, "kill-server"], env=env, check=False, timeout=20)


def drawn(shown: str, title: str, columns: int = COLUMNS) -> str:
    """The screen as SVG, with no address in it that a viewer would ask for a font."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text.from_ansi(shown), soft_wrap=True)
    svg = console.export_svg(title=title, unique_id="recoveryd")
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return svg.replace("<text ", '<text xml:space="preserve" ')  # some viewers drop the blanks that a line begins with


def main() -> None:
    [target] = sys.argv[1:]
    command = f"{Path(sys.executable).with_name('recoveryd')} demo"
    Path(target).write_text(drawn(screen(command, _END), "recoveryd demo"), encoding="utf-8")


if __name__ == "__main__":
    main()
