"""What the daemon costs beside a large database: its start, a failure, a client that streams, and the query plans.

Linux: what a process read and used is taken from /proc.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from recoveryd.clients.opencode.ids import id_ranges
from tests.bench.client import Client
from tests.bench.harness import SETTLE_MS, Daemon, Figure, Home, cpu_ms, daemon, read_kib, spread
from tests.bench.large import create, generate
from tests.bench.plans import plans, whole
from tests.bench.wal_floor import FLOOR_IS, WalFloor
from tests.support.database import NEW, OLD

ROUNDS = 3
WARM_UP = 3  # runs that are not counted: the first repair loads code
START_TIMES, REPAIR_TIMES = 2.0, 5.0  # times the floor
SHARE = 0.01  # of the database, at a start and for a failure
CORE = 2.0  # per cent
PER_SECOND = 100
LONG = 500  # answers in a long session, of `PARTS` each
PARTS = 6
CONFIRM_S = 1.5  # the daemon reads a repair back after a second
DAY_MS = 86_400_000
# The interpreter with the packages of the daemon, that asks what can't be asked less of.
_FLOOR = """
import watchdog.observers, pydantic, platformdirs, loguru, sqlite3, sys, time
started = time.monotonic()
path, *values = sys.argv[1:]
db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
db.execute("SELECT max(rowid) FROM message").fetchone()
db.execute("SELECT id, time_updated FROM message WHERE id >= ? AND id < ?", values).fetchall()
print(time.monotonic() - started)
"""
_EVICT = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
"""


@dataclass(frozen=True, slots=True)
class _Large:
    """A database that is measured. `mark` ends the names of its figures; `bare`: a home with an empty one."""

    home: Home
    bare: Home
    version: str
    mark: str
    sessions: int

    @property
    def kib(self) -> float:
        return self.home.database.stat().st_size / 1024


def databases(root: Path, size: int, runs: int, seconds: float) -> list[Figure]:
    """The figures for a database of `size` bytes with events, and for one of a fifth of that without."""
    figures: list[Figure] = []
    for version, bytes_, mark in ((NEW, size, ""), (OLD, size // 5, "_no_events")):
        name = f"database{mark}"
        home, bare = Home(root / name), Home(root / f"{name}_empty")
        create(bare.database, version)
        large = _Large(home, bare, version, mark, generate(home.database, version, bytes_))
        with Client(home.database, version) as client:
            figures += _starts(large)
            figures += _failures(large, client, runs)
            figures += [_stream(large, client, seconds, answers) for answers in (0, LONG)]
        figures.append(_plans(root / f"{name}_plans", version, mark))
        home.database.unlink()
    return figures


def _starts(large: _Large) -> list[Figure]:
    """The best of some rounds; what is read counts in a first one, with nothing of the database in memory."""
    _script(_EVICT, str(large.home.database))
    cold, read = _start(large.home)
    warm, bare, floors, asked = [], [], [], []
    with Client(large.bare.database, large.version):
        for _ in range(ROUNDS):
            bare.append(_start(large.bare))
            warm.append(_start(large.home)[0])
            started = time.monotonic()
            asked.append(float(_script(_FLOOR, str(large.home.database), *_last_day())))
            floors.append(time.monotonic() - started)
    best, floor, empty = min(warm), min(floors), min(seconds for seconds, _ in bare)
    more = {"cold": cold, "on_an_empty_database": empty, "beyond_that": best - empty, "floor_read_alone": min(asked)}
    more |= {"sessions": large.sessions, "database_mb": large.kib * 1024 / 1e6}
    is_ = "an interpreter with the same packages that reads max(rowid) and the message ids of a day"
    own = min(io["rchar"] for _, io in bare)
    count = read["rchar"] - own
    share = count / large.kib
    sizes = {"of_an_empty_database": own, "from_disk": read["read_bytes"]}
    whole_ = "the whole database"
    return [
        Figure(f"database_start{large.mark}", "s", best, floor, is_, best / floor, START_TIMES, more=more),
        Figure(
            f"database_start_reads{large.mark}",
            "KiB",
            count,
            large.kib,
            whole_,
            share,
            SHARE,
            more={**sizes, "share": share},
        ),
    ]


def _failures(large: _Large, client: Client, runs: int) -> list[Figure]:
    """The client writes a failure; from its commit to that of the repair. Then what was read for each."""
    patients = client.plant(WARM_UP + runs)
    pause = random.Random(1)
    took, floors = [], []
    with daemon(large.home) as running, WalFloor(large.home.root / "floor") as floor:
        for number, (planted, failed) in enumerate(patients):
            if number == WARM_UP:
                before = _rest(running)
            committed = client.fail(planted.id, failed)
            durable, _ = running.repair()
            took.append((durable - committed) * 1000)
            floors.append(floor.once() * 1000)
            time.sleep(pause.uniform(0, 0.2))  # the watcher looks ten times a second
        read = (_rest(running) - before) / runs
    total, base = spread(took[WARM_UP:]), spread(floors[WARM_UP:])
    more = {"p95": total["p95"], "max": total["max"], "floor_p95": base["p95"], "settle": SETTLE_MS, "runs": runs}
    more |= {f"ratio_{key}": (total[key] - SETTLE_MS) / base[key] for key in ("p95", "max")}
    ratio = (total["p50"] - SETTLE_MS) / base["p50"]
    share = read / large.kib
    reads = {"share": share}
    return [
        Figure(
            f"database_failure{large.mark}", "ms", total["p50"], base["p50"], FLOOR_IS, ratio, REPAIR_TIMES, more=more
        ),
        Figure(
            f"database_failure_reads{large.mark}",
            "KiB",
            read,
            large.kib,
            "the whole database",
            share,
            SHARE,
            more=reads,
        ),
    ]


def _stream(large: _Large, client: Client, seconds: float, answers: int) -> Figure:
    """The share of a core that the daemon takes while an answer comes in a hundred pieces a second."""
    [(planted, _)] = client.plant(1)
    client.lengthen(planted.id, answers, PARTS)
    with daemon(large.home) as running:
        _rest(running)
        cpu, read, started = cpu_ms(running.pid), read_kib(running.pid)["rchar"], time.monotonic()
        writes = client.stream(planted.id, seconds, PER_SECOND)
        took = time.monotonic() - started
        used, seen = cpu_ms(running.pid) - cpu, read_kib(running.pid)["rchar"] - read
    percent = used / took / 10
    more = {"writes_per_second": writes / took, "read_kib_per_second": seen / took, "seconds": took, "cpu_ms": used}
    more["parts_of_the_session"] = answers * PARTS
    long = "_long" if answers else ""
    return Figure(f"database_stream{long}{large.mark}", "% core", percent, 0, "none", percent, CORE, "value", more)


def _plans(root: Path, version: str, mark: str) -> Figure:
    """How many queries go through a large table whole: none."""
    lines = []
    for how, analyzed in (("plain", False), ("analyzed", True)):
        lines += [f"{how}: {line}" for line in plans(root / how, version, analyzed=analyzed)]
    scans = sum(map(whole, lines))
    return Figure(f"database_plans{mark}", "scans", scans, 0, "none", scans, 0, "value", {"of": len(lines)}, lines)


def _start(home: Home) -> tuple[float, dict[str, float]]:
    with daemon(home) as running:
        return running.ready - running.started, read_kib(running.pid)


def _rest(running: Daemon) -> float:
    """KiB read so far, once the daemon has nothing left to do."""
    time.sleep(CONFIRM_S)
    return read_kib(running.pid)["rchar"]


def _last_day() -> tuple[str, str]:
    now = int(time.time() * 1000)
    return next(id_ranges(now - DAY_MS, now))


def _script(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return done.stdout
