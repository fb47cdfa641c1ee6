"""Latency and cost against the size of the store: one home for each kind of store that grows from size to size."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from recoveryd.demo.baseline import Floor
from tests.bench.client import Client, connect
from tests.bench.database import WARM_UP
from tests.bench.harness import Daemon, Home, cpu_ms, daemon, rss_mib
from tests.bench.large import create
from tests.bench.store import plant_healthy, plant_patients
from tests.bench.wal_floor import WalFloor
from tests.support.build import SessionBuilder
from tests.support.database import NEW

MESSAGES = 10  # of a healthy session
SIZES = (10, 100, 1_000, 5_000)
QUICK = (10, 50, 200)


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured beside so many sessions. Milliseconds, MiB and seconds; the medians of some failures."""

    store: str  # "files" or "database"
    sessions: int
    latency: float  # from the client's last write to the repair being durable
    floor: float  # what a bare watcher takes for one synced write
    cpu: float  # of the daemon, for one failure and its repair
    rss: float
    start: float  # a store that did not change since

    def data(self) -> dict[str, Any]:
        return {name: round(value, 3) if isinstance(value, float) else value for name, value in self._fields()}

    def _fields(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.__slots__]


def measure(root: Path, sizes: Sequence[int], runs: int) -> list[Point]:
    return [*_files(Home(root / "sizes_files"), sizes, runs), *_database(Home(root / "sizes_database"), sizes, runs)]


def _files(home: Home, sizes: Sequence[int], runs: int) -> list[Point]:
    points, there = [], 0
    with Floor(home.root / "floor") as floor:
        for size in sizes:
            plant_healthy(home.storage, size - there, MESSAGES, first=there)
            there = size
            patients = plant_patients(home.storage, WARM_UP + runs)
            points.append(_point(home, "files", size, [p.fail for p in patients], floor.once))
    return points


def _database(home: Home, sizes: Sequence[int], runs: int) -> list[Point]:
    create(home.database, NEW)
    points, there = [], 0
    with Client(home.database, NEW) as client, WalFloor(home.root / "floor") as floor:
        for size in sizes:
            _grow(home.database, there, size)
            there = size
            patients = client.plant(WARM_UP + runs)
            fails = [partial(client.fail, planted.id, failed) for planted, failed in patients]
            points.append(_point(home, "database", size, fails, floor.once))
    return points


def _point(
    home: Home, store: str, size: int, fails: Sequence[Callable[[], float]], floor: Callable[[], float]
) -> Point:
    with daemon(home):
        pass  # the first look at what is new
    with daemon(home) as running:
        start = running.ready - running.started
        took, floors = [], []
        for number, fail in enumerate(fails):
            if number == WARM_UP:
                before = _rested(running)
            failed = fail()
            took.append((running.repair()[0] - failed) * 1000)
            floors.append(floor() * 1000)
        cpu = (_rested(running) - before) / (len(fails) - WARM_UP)
        latency, base = (statistics.median(times[WARM_UP:]) for times in (took, floors))
        return Point(store, size, latency, base, cpu, rss_mib(running.pid), start)


def _rested(running: Daemon) -> float:
    """Milliseconds of CPU so far, once the last repair was read back."""
    time.sleep(1.5)
    return cpu_ms(running.pid)


def _grow(path: Path, first: int, last: int) -> None:
    """Healthy sessions of messages alone, made over the last two months."""
    now, days = int(time.time() * 1000), 60
    db = connect(path)
    db.execute("BEGIN IMMEDIATE")
    for number in range(first, last):
        start = now - days * 86_400_000 + number * 7919 % SIZES[-1] * days * 86_400_000 // SIZES[-1] - 60_000
        builder = SessionBuilder(start, seed=number)
        for _ in range(MESSAGES // 2):
            builder.user("how are you?")
            builder.assistant("fine")
        planted = builder.planted()
        columns = "(id, project_id, slug, directory, title, version, time_created, time_updated)"
        row = planted.id, "global", "s", "/planted", "healthy", "1", start, start
        db.execute(f"INSERT INTO session {columns} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        rows = [
            (m["id"], planted.id, m["time"]["created"], m["time"]["created"], json.dumps(m)) for m in planted.messages
        ]
        db.executemany("INSERT INTO message VALUES (?, ?, ?, ?, ?)", rows)
    db.execute("COMMIT")
    db.close()
