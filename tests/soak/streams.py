"""Many sessions stream at once: how long a few that fail wait meanwhile, what it costs, and what `heal_ahead` adds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.client import Client
from tests.bench.harness import SETTLE_MS, Home, cpu_ms, daemon, spread
from tests.bench.large import create
from tests.support.build import Planted, SessionBuilder
from tests.support.database import NEW
from tests.support.parts import reasoning, step_start, text, tool
from tests.support.plant import write_sqlite

STREAMS, FAILING = 50, 5
PER_SECOND = 10  # of each stream
TURN_S = 4  # of a turn, and so of a rest
AHEAD_PERCENT = 25.0  # of a core, for all the looks ahead of so many turns
LIMIT_S = 5.0  # until a failure is healed, whatever streams beside it
Result = dict[str, Any]


def streams(root: Path, rounds: int) -> Result:
    """Fifty sessions of a database stream, ten pieces a second each, while five fail."""
    home = Home(root / "streams")
    create(home.database, NEW)
    took: list[float] = []
    with Client(home.database, NEW) as client:
        everybody = client.plant(STREAMS + FAILING * rounds)
        busy, patients = [planted.id for planted, _ in everybody[:STREAMS]], everybody[STREAMS:]
        with daemon(home) as running, _streaming(home, busy) as written:
            time.sleep(1)
            cpu, count, started = cpu_ms(running.pid), written(), time.monotonic()
            for number in range(rounds):
                some = patients[number * FAILING : (number + 1) * FAILING]
                failed = [client.fail(planted.id, message) for planted, message in some]
                took += [running.repair()[0] - failed[0] for _ in some]
                time.sleep(1)
            seconds = time.monotonic() - started
            share = (cpu_ms(running.pid) - cpu) / seconds / 10
            rate = (written() - count) / seconds
    figures = {"writes_per_second": round(rate), "cpu_percent": round(share, 1), "sessions_streaming": STREAMS}
    healed = {f"healed_ms_{key}": round(value * 1000) for key, value in spread(took).items()}
    return {**figures, **healed, "failures": len(took), "settle_ms": SETTLE_MS, "holds": max(took) < LIMIT_S}


def looks_ahead(root: Path, rounds: int) -> Result:
    """What `heal_ahead` costs: the daemon's CPU with it and without, in turns, beside fifty sessions that stream.

    All of them end their turn after a few seconds and rest while fifty others stream: each rest is long enough to be
    looked at. A person's sessions end a turn in minutes, so this is far more than happens in a day.
    """
    home = Home(root / "ahead")
    create(home.database, NEW)
    sessions = [_talked(number) for number in range(2 * STREAMS)]
    for planted in sessions:
        write_sqlite(planted, home.database)
    halves = [planted.id for planted in sessions[::2]], [planted.id for planted in sessions[1::2]]
    config = home.root / "config" / "recoveryd" / "config.toml"
    config.parent.mkdir(parents=True)
    spent = {ahead: _Spent() for ahead in (True, False)}
    with Client(home.database, NEW) as client:
        for number in range(2 * rounds):
            ahead = number % 2 == 0
            config.write_text(f"heal_ahead = {str(ahead).lower()}\nheal_ahead_seconds = 1\n")
            with daemon(home) as running:
                _turns(client, halves[0], 1)
                cpu, started = cpu_ms(running.pid), time.monotonic()
                for half in (halves[1], halves[0]) * 2:
                    spent[ahead].turns += len(half)
                    _turns(client, half, TURN_S)
                spent[ahead].seconds += time.monotonic() - started
                spent[ahead].cpu_ms += cpu_ms(running.pid) - cpu
    touched = len(home.command("history", "--limit", "10"))
    on, off = spent[True], spent[False]
    return {
        "sessions_streaming": STREAMS,
        "turns_ended_a_second": round(on.turns / on.seconds, 1),
        "cpu_percent": {"with": round(on.percent, 1), "without": round(off.percent, 1)},
        "ratio": round(on.percent / off.percent, 2),
        "ms_a_look": round((on.percent - off.percent) * on.seconds * 10 / on.turns, 1),
        "touched": touched,
        "holds": touched == 0 and on.percent - off.percent < AHEAD_PERCENT,
    }


@dataclass
class _Spent:
    cpu_ms: float = 0.0
    seconds: float = 0.0
    turns: int = 0

    @property
    def percent(self) -> float:
        return self.cpu_ms / self.seconds / 10


def _talked(number: int) -> Planted:
    """A session of twenty turns, with calls and thinking, an hour old."""
    session = SessionBuilder(int(time.time() * 1000) - 3_600_000, seed=number)
    for turn in range(20):
        session.user(f"prompt {turn}")
        session.assistant(reasoning("a plan"), tool(output="a line\n" * 50), step_start(), text("done"))
    return session.planted()


def _turns(client: Client, sessions: Sequence[str], seconds: float) -> None:
    """One turn in each of them at once, which takes so many seconds."""
    started, pieces = time.monotonic(), int(seconds * PER_SECOND)
    for count, _ in enumerate(client.turns(sessions, pieces)):
        time.sleep(max(started + count / (PER_SECOND * len(sessions)) - time.monotonic(), 0))


@contextmanager
def _streaming(home: Home, sessions: Sequence[str]) -> Iterator[Callable[[], int]]:
    """Answers that come in, from a thread with a connection of its own; yields how many pieces were written so far."""
    stop, count = threading.Event(), [0]

    def write() -> None:
        with Client(home.database, NEW, seed=11) as client:
            pieces = client.pieces(sessions)
            started = time.monotonic()
            while not stop.is_set():
                next(pieces)
                count[0] += 1
                time.sleep(max(started + count[0] / (PER_SECOND * len(sessions)) - time.monotonic(), 0))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        stop.set()
        thread.join()
