"""A real `recoveryd run` in a process and a home of its own, and its commands beside it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import psutil

from recoveryd.core import Entry, Outcome
from recoveryd.ledger import peek
from recoveryd.settings.paths import ledger_file
from tests.e2e.client import PASSED_ON
from tests.e2e.harness import Harness, running
from tests.e2e.install import DEFAULT_VERSION

PATIENCE = 60.0  # seconds until a test calls it a hang; nothing is measured by it
CONFIG = "[notify]\ndesktop = false\n"
# One interpreter for many commands: starting one takes longer than most of them.
_MANY = "import json, sys; from recoveryd.cli import main; print(json.dumps([main(a) for a in json.load(sys.stdin)]))"
_READY = ("watching ", "is not there yet", "is dead", "Traceback")


class Daemon:
    """`recoveryd run` under `root`, on the stores below `data_home` (what XDG_DATA_HOME is to the client).

    A context manager. `config` is its whole configuration file, `env` comes on top of its environment.
    """

    def __init__(self, root: Path, data_home: Path, *, config: str = CONFIG, env: dict[str, str] | None = None) -> None:
        self.root = root.resolve()
        self.storage = data_home.resolve() / "opencode" / "storage"
        self.state = self.root / "state" / "recoveryd"
        self.output = self.root / "run.log"
        self.command = [sys.executable, "-m", "recoveryd", "run"]
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self.env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.env |= {f"XDG_{name.upper()}_HOME": str(self.root / name) for name in ("config", "state", "cache")}
        self.env |= {"HOME": str(self.root / "home"), "XDG_DATA_HOME": str(data_home.resolve()), **(env or {})}
        (self.root / "home").mkdir(parents=True, exist_ok=True)
        (self.root / "config" / "recoveryd").mkdir(parents=True, exist_ok=True)
        (self.root / "config" / "recoveryd" / "config.toml").write_text(config)

    def __enter__(self) -> Daemon:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.end(signal.SIGTERM)

    @property
    def pid(self) -> int:
        """The process id of the daemon that runs."""
        assert self._process is not None, "recoveryd is not running"
        return self._process.pid

    @property
    def log(self) -> str:
        """All that the daemon said so far, of all its runs."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def start(self, *, ready: bool = True) -> None:
        """Start it; with `ready`, wait until it says what it watches (or what it waits for)."""
        assert self._process is None, "recoveryd is running"
        said = len(self.log)
        self._log = self.output.open("ab")
        self._process = subprocess.Popen(
            self.command, cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        try:
            if ready:
                self.wait(lambda: any(words in self.log[said:] for words in _READY), "recoveryd did not begin to watch")
        except BaseException:
            self.end(signal.SIGKILL)
            raise

    def end(self, how: int = signal.SIGTERM) -> int:
        """End it by a signal and wait for it; the exit code (negative: killed by that signal)."""
        assert self._process is not None, "recoveryd is not running"
        self._process.send_signal(how)
        try:
            return self._process.wait(PATIENCE)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait(PATIENCE)
            assert self._log is not None
            self._log.close()
            self._process = self._log = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the process still for a while: what happens then it learns afterwards.

        Not within a write of its own: the client waits five seconds for the database, and then its prompt fails and
        nothing of it is stored.
        """
        os.kill(self.pid, signal.SIGSTOP)
        try:
            self.wait(self._stopped_outside_a_write, "recoveryd never let go of the database")
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def _stopped_outside_a_write(self) -> bool:
        """Whether the process is stopped and lets others write to the client's database; else it gets a moment."""
        database = self.storage.parent / "opencode.db"
        if psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
            return False
        if not database.exists():
            return True
        with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(self.pid, signal.SIGCONT)
                time.sleep(0.05)
                os.kill(self.pid, signal.SIGSTOP)
                return False
        return True

    def wait(self, done: Callable[[], bool], problem: str, timeout: float = PATIENCE) -> None:
        """Wait until `done`; raises AssertionError with the end of the log, at once if the daemon ended."""
        deadline = time.monotonic() + timeout
        while not done():
            ended = self._process is not None and self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"{problem}{' (it ended)' if ended else ''}; its log ends:\n{self.log[-3000:]}")
            time.sleep(0.05)

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Any command of recoveryd in the environment of this daemon."""
        return self._python("-m", "recoveryd", *arguments, stdin=stdin)

    def codes(self, commands: Sequence[Sequence[str]]) -> list[int]:
        """Many commands, one after the other in one process: their exit codes."""
        done = self._python("-c", _MANY, stdin=json.dumps([list(command) for command in commands]))
        assert done.returncode == 0, done.stderr
        return [int(code) for code in json.loads(done.stdout.splitlines()[-1])]

    def _python(self, *arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def history(self, session: str | None = None) -> list[dict[str, Any]]:
        """`recoveryd history --json`, newest first."""
        which = ["--session", session] if session else []
        done = self.run("history", "--json", "--limit", "100000", *which)
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    def by_session(self) -> dict[str, list[dict[str, Any]]]:
        """The history of each session, newest first."""
        found: dict[str, list[dict[str, Any]]] = {}
        for entry in self.history():
            found.setdefault(entry["session"], []).append(entry)
        return found

    def ended(self, session: str) -> set[str]:
        """The messages of a session at which a recovery began that came to an end, as the ledger has them."""
        return {entry.message for entry in self.recorded(session) if entry.outcome is not Outcome.PENDING}

    def recorded(self, session: str | None = None) -> list[Entry]:
        """What the ledger has now, newest first: to wait by, as a command takes half a second of the processor."""
        return peek(ledger_file(self.state), lambda ledger: ledger.history(-1, session)) or []

    def wait_settled(self, sessions: Iterable[str], times: int = 1) -> dict[str, list[dict[str, Any]]]:
        """Wait until each of these sessions has so many recoveries that came to an end; the history by session.

        After a minute it is returned as it is: what did not happen is for the tests of those sessions to say.
        """
        wanted = set(sessions)
        deadline = time.monotonic() + PATIENCE
        while not wanted <= self._settled(times) and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.by_session()

    def _settled(self, times: int) -> set[str]:
        """The sessions with so many recoveries of which the newest came to an end."""
        found: dict[str, list[Outcome]] = {}
        for entry in self.recorded():
            found.setdefault(entry.session, []).append(entry.outcome)
        return {name for name, all_ in found.items() if len(all_) >= times and all_[0] is not Outcome.PENDING}


@contextmanager
def healing(
    root: Path, version: str = DEFAULT_VERSION, *, bound: bool = False, config: str = CONFIG
) -> Iterator[tuple[Harness, Daemon]]:
    """The running client of a version, its provider, and the daemon on its store; all below `root`."""
    with (
        running(root / "client", version, bound=bound) as harness,
        Daemon(root / "daemon", root / "client" / "data", config=config) as daemon,
    ):
        yield harness, daemon
