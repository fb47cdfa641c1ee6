"""A service manager for one daemon: it owns the socket that sd_notify(3) speaks to, and starts `recoveryd run`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.daemon import Daemon

PATIENCE = 30.0


class Manager:
    """What the daemon says, a line each, in the order it came. `fault`: code that is run in the daemon before it is.

    `home` is a daemon that is not started: its folders, its configuration and its environment are used.
    """

    def __init__(self, home: Daemon, *, abstract: bool = False, watchdog_s: float = 0.0, fault: str = "") -> None:
        self.lines: list[str] = []
        self.times: list[float] = []  # when each came, time.monotonic()
        self._came = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # Short: a path of a socket has 107 bytes.
        self._path = f"@recoveryd-{os.getpid()}-{id(self)}" if abstract else f"/tmp/recoveryd-{os.getpid()}-{id(self)}"
        self._socket.bind(self._path.replace("@", "\0"))
        threading.Thread(target=self._listen, daemon=True).start()
        env = {**home.env, "NOTIFY_SOCKET": self._path}
        if watchdog_s:
            env["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        code = f"{fault}\nimport sys\nfrom recoveryd.cli import main\nsys.exit(main(['run']))"
        self.log = home.root / "managed.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], env=env, cwd=home.root, stdin=subprocess.DEVNULL, stderr=log
            )

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait(PATIENCE)
        finally:
            self._socket.close()
            if self._path.startswith("/"):
                Path(self._path).unlink()

    def end(self, how: int = signal.SIGTERM) -> int:
        """The exit code after a signal."""
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def count(self, line: str) -> int:
        """How often it was said."""
        with self._came:
            return self.lines.count(line)

    def wait(self, done: Callable[[list[str]], object], problem: str) -> None:
        """Until `done` with all that was said; AssertionError after half a minute, or when the daemon ended."""
        deadline = time.monotonic() + PATIENCE
        with self._came:
            while not done(self.lines):
                ended = self.process.poll() is not None
                assert not ended and time.monotonic() < deadline, f"{problem}: {self.lines}\n{self.log.read_text()}"
                self._came.wait(0.1)

    def ready(self, times: int = 1) -> None:
        """Until it has said that it is ready so many times."""
        self.wait(lambda lines: lines.count("READY=1") >= times, "it is not ready")

    def status(self) -> str:
        """The last one."""
        with self._came:
            return next((line for line in reversed(self.lines) if line.startswith("STATUS=")), "")

    def _listen(self) -> None:
        while True:
            try:
                said = self._socket.recv(65536)
            except OSError:  # closed
                return
            with self._came:
                for line in said.decode().splitlines():
                    self.lines.append(line)
                    self.times.append(time.monotonic())
                self._came.notify_all()
