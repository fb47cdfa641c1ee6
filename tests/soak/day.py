"""A day of ordinary use in minutes: what a daemon holds at the end is what it held at the start."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.client import Client
from tests.bench.harness import Daemon, Home, cpu_ms, daemon, rss_mib
from tests.bench.large import create
from tests.bench.store import ERRORS, broken_session
from tests.support.build import SessionBuilder, dump, text, tool, write_sqlite, write_tree
from tests.support.database import NEW

GROWTH = {"descriptors": 3, "threads": 0, "rss_mib": 4.0}  # from the end of the warm-up to the end
LEDGER_KIB = 256, 1.0, 0.25  # at the end: so much, and for each recovery and each session, whose rows stay
WARM_UP = 20
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    """What a process holds. Linux."""

    descriptors: int
    threads: int
    rss_mib: float
    ledger_kib: float

    def data(self) -> dict[str, float]:
        return {name: round(getattr(self, name), 1) for name in self.__slots__}


def _state(home: Home, running: Daemon) -> State:
    proc = Path(f"/proc/{running.pid}")
    ledger = sum(path.stat().st_size for path in (home.root / "state" / "recoveryd").glob("ledger.db*"))
    descriptors, threads = (len(list((proc / name).iterdir())) for name in ("fd", "task"))
    return State(descriptors, threads, rss_mib(running.pid), ledger / 1024)


def a_day(root: Path, seconds: float, warm_up: int = WARM_UP) -> Result:
    """Ordinary use of a JSON tree and of a database, the one after the other, in so many seconds each."""
    stores = ("files", "database")
    result: Result = {store: _day(Home(root / store), store, seconds, warm_up) for store in stores}
    return {**result, "holds": all(found["holds"] for found in result.values())}


def _day(home: Home, store: str, seconds: float, warm_up: int) -> Result:
    rng = random.Random(1)
    with ExitStack() as stack:
        client = _Files(home) if store == "files" else stack.enter_context(_Rows(home))
        running = stack.enter_context(daemon(home))
        for _ in range(warm_up):
            client.fail()
            running.repair()
        before, cpu = _rested(home, running), cpu_ms(running.pid)
        failures, prompts, started = 0, 0, time.monotonic()
        while time.monotonic() < started + seconds:
            client.prompt(rng)
            prompts += 1
            if rng.random() < 0.1:
                client.fail()
                running.repair()
                failures += 1
        took, used = time.monotonic() - started, cpu_ms(running.pid) - cpu
        after = _rested(home, running)
        outcomes = Counter(e["outcome"] for e in home.command("history", "--limit", str(10 * (failures + warm_up))))
        _prune(home)
        pruned = _state(home, running)
    grown = {name: round(getattr(after, name) - getattr(before, name), 1) for name in GROWTH}
    own, recovery, session = LEDGER_KIB
    most = own + (recovery + session) * (failures + warm_up) + session * prompts
    holds = all(grown[name] <= limit for name, limit in GROWTH.items()) and pruned.ledger_kib <= most
    holds = holds and outcomes == {"healed": failures + warm_up}
    states = {"warm": before.data(), "end": after.data(), "pruned": pruned.data(), "grown": grown}
    figures = {
        "seconds": round(took, 1),
        "prompts": prompts,
        "failures": failures,
        "cpu_percent": round(used / took / 10, 1),
    }
    return {**figures, **states, "outcomes": dict(outcomes), "ledger_limit_kib": most, "holds": holds}


def _rested(home: Home, running: Daemon) -> State:
    time.sleep(1.5)
    return _state(home, running)


def _prune(home: Home) -> None:
    """A month later, as far as the ledger can tell."""
    with closing(sqlite3.connect(home.root / "state" / "recoveryd" / "ledger.db", timeout=5)) as db, db:
        db.execute("UPDATE recovery SET time = time - 40 * 86400")
    home.command("ledger", "prune", "--yes")
    time.sleep(1.5)


class _Files:
    """The client's side of a JSON tree."""

    def __init__(self, home: Home) -> None:
        self._storage = home.storage
        self._number = 0
        (home.storage / "message").mkdir(parents=True)

    def fail(self) -> float:
        self._number += 1
        planted, failed = broken_session(self._number, self._number % len(ERRORS))
        write_tree(planted, self._storage)
        path = self._storage / "message" / planted.id / f"{failed['id']}.json"
        path.write_bytes(dump({**failed, "time": {"created": int(time.time() * 1000)}}))
        return time.monotonic()

    def prompt(self, rng: random.Random) -> None:
        """A session of one prompt and an answer that streams in, written over and over as the client does."""
        session = SessionBuilder(int(time.time() * 1000) - 5_000, seed=rng.getrandbits(32))
        session.user("go on")
        answer = session.assistant(tool(), text("a word "))
        planted = session.planted()
        write_tree(planted, self._storage)
        part = planted.parts[answer["id"]][-2]
        for length in range(rng.randint(3, 12)):
            path = self._storage / "part" / answer["id"] / f"{part['id']}.json"
            path.write_bytes(dump({**part, "text": "a word " * length}))
            time.sleep(0.01)
        (self._storage / "message" / planted.id / f"{answer['id']}.json").write_bytes(dump(answer))


class _Rows:
    """The client's side of a database."""

    def __init__(self, home: Home) -> None:
        create(home.database, NEW)
        self._client = Client(home.database, NEW)
        self._path = home.database
        self._sessions: list[str] = []

    def __enter__(self) -> _Rows:
        self._client.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.__exit__()

    def fail(self) -> float:
        [(planted, failed)] = self._client.plant(1)
        return self._client.fail(planted.id, failed)

    def prompt(self, rng: random.Random) -> None:
        if not self._sessions or rng.random() < 0.1:
            session = SessionBuilder(int(time.time() * 1000) - 60_000, seed=rng.getrandbits(32))
            session.user("hello")
            session.assistant("fine")
            write_sqlite(session.planted(), self._path)
            self._sessions.append(session.session["id"])
        self._client.stream(rng.choice(self._sessions), 0.1, 100)
