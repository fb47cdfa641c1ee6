"""Many sessions stream at once while a few fail: how long those wait, and what it costs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.client import Client
from tests.bench.harness import SETTLE_MS, Home, cpu_ms, daemon, spread
from tests.bench.large import create
from tests.support.database import NEW

STREAMS, FAILING = 50, 5
PER_SECOND = 10  # of each stream
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
