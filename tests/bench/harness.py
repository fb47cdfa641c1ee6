"""A home of its own, the daemon as a real process in it, and figures."""

from __future__ import annotations

import json
import os
import queue
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from recoveryd.clients.quiet import SETTLE_S

SETTLE_MS = SETTLE_S * 1000
LIMIT_S = 90.0  # longer than a sweep, which finds what the watcher missed
Line = tuple[float, str]  # when it was read (time.monotonic()), and the line


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement. `ratio` is what counts: against `floor`, of the same unit and the same run."""

    name: str
    unit: str
    value: float
    floor: float
    floor_is: str
    ratio: float
    limit: float | None = None  # of the ratio, or of the value where there is no ratio to hold
    limit_of: str = "ratio"
    more: dict[str, float] = field(default_factory=dict)
    lines: Sequence[str] = ()  # what a number can't say

    @property
    def holds(self) -> bool | None:
        measured = self.ratio if self.limit_of == "ratio" else self.more.get(self.limit_of, self.value)
        if self.limit is None:
            return None
        return measured >= self.limit if self.limit_of == "per_second" else measured <= self.limit

    def data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "value": round(self.value, 3),
            "floor": round(self.floor, 3),
            "floor_is": self.floor_is,
            "ratio": round(self.ratio, 2),
            "limit": self.limit,
            "limit_of": self.limit_of,
            "holds": self.holds,
            "more": {key: round(value, 3) for key, value in self.more.items()},
            "lines": list(self.lines),
        }


@dataclass(frozen=True, slots=True)
class Home:
    """A user's folders with nothing in them, below `root`."""

    root: Path

    @property
    def storage(self) -> Path:
        return self.root / "data" / "opencode" / "storage"

    @property
    def database(self) -> Path:
        return self.storage.parent / "opencode.db"

    def env(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
        xdg = {f"XDG_{name.upper()}_HOME": str(self.root / name) for name in ("data", "state", "config", "cache")}
        own = {"HOME": str(self.root), "TEST_RECOVERYD_LOCKS": "below HOME", "RECOVERYD_NOTIFY_DESKTOP": "false"}
        return {**kept, **xdg, **own}

    def command(self, *arguments: str) -> Any:
        """What a command with `--json` says."""
        words = [sys.executable, "-m", "recoveryd", *arguments, "--json"]
        return json.loads(subprocess.run(words, env=self.env(), check=True, capture_output=True).stdout)


class Daemon:
    """A running `recoveryd run`. `started`: when it was asked to; `ready`: when its first look at all was over."""

    def __init__(self, home: Home) -> None:
        reads, writes = os.pipe()
        words = [sys.executable, "-m", "tests.bench.timed_run", str(writes)]
        self.started = time.monotonic()
        self._process = subprocess.Popen(words, env=home.env(), stderr=subprocess.PIPE, text=True, pass_fds=[writes])
        os.close(writes)
        assert self._process.stderr is not None
        self.log: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self._repairs: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self._threads = [_reader(self._process.stderr, self.log), _reader(os.fdopen(reads), self._repairs)]
        self.ready = self.wait_for("watching ")

    @property
    def pid(self) -> int:
        return self._process.pid

    def repair(self) -> tuple[float, list[str]]:
        """The next repair: when it was durable, and the keys of its records."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                found = json.loads(self._repairs.get(timeout=max(deadline - time.monotonic(), 0))[1])
            except queue.Empty:
                raise AssertionError(f"No repair came in {LIMIT_S:g} seconds. The log:\n{self._said()}") from None
            if "keys" in found:
                return found["at"], found["keys"]

    def waits(self) -> int:
        """How often the daemon waited for something and went on, since this was asked before. Forgets repairs."""
        count = 0
        while not self._repairs.empty():
            count += "waited" in self._repairs.get()[1]
        return count

    def _said(self) -> str:
        lines = []
        while not self.log.empty():
            lines.append(self.log.get()[1])
        return "".join(lines)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT_S)
        for thread in self._threads:
            thread.join(LIMIT_S)
        assert self._process.returncode == 0, f"recoveryd run ended with {self._process.returncode}"

    def wait_for(self, words: str) -> float:
        """When a line of the log with these words came."""
        while True:
            at, line = self.log.get(timeout=LIMIT_S)
            assert line, "recoveryd run ended before it said"
            if words in line:
                return at


@contextmanager
def daemon(home: Home) -> Iterator[Daemon]:
    running = Daemon(home)
    try:
        yield running
    finally:
        running.stop()


def _reader(stream: IO[str], lines: queue.SimpleQueue[Line]) -> threading.Thread:
    def read() -> None:
        with stream:
            for line in stream:
                lines.put((time.monotonic(), line))
        lines.put((time.monotonic(), ""))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def spread(values: Sequence[float]) -> dict[str, float]:
    """p50, p95 and the largest."""
    ordered = sorted(values)
    return {"p50": statistics.median(ordered), "p95": ordered[int(0.95 * (len(ordered) - 1))], "max": ordered[-1]}


def read_kib(pid: int) -> dict[str, float]:
    """How much a process has read so far, of the cache or not (`rchar`), and from the disk (`read_bytes`); Linux."""
    found = re.findall(r"^(rchar|read_bytes): (\d+)$", Path(f"/proc/{pid}/io").read_text(), re.MULTILINE)
    return {name: int(count) / 1024 for name, count in found}


def cpu_ms(pid: int) -> float:
    """Milliseconds of CPU so far, of all threads; Linux."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks) / 1e6


def rss_mib(pid: int) -> float:
    """Resident memory; Linux."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024
