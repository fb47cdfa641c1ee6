"""Whether one store slows another: a failure in OpenCode's, alone and while sessions of three more clients stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.bench.client import Client
from tests.bench.harness import SETTLE_MS, Figure, Home, daemon, spread
from tests.bench.idle import plant_others
from tests.bench.store import plant_patients
from tests.support.rollouts import Rollout
from tests.support.transcript import Transcript, dump, text

WARM_UP = 3  # failures that are not counted: the first repair loads code
PER_SECOND = 100  # writes to each store
TIMES = 2.0
_APART_S = 0.3  # until the stores are at rest again, or at work


def neighbours(root: Path, runs: int) -> Figure:
    """Every second failure comes while Kilo's database, a rollout and a transcript are written to."""
    home = Home(root / "neighbours")
    plant_others(home)
    patients = plant_patients(home.storage, WARM_UP + 2 * runs)
    took: dict[bool, list[float]] = {True: [], False: []}
    with _writers(home) as writers, daemon(home) as running:
        for number, patient in enumerate(patients):
            streams = number % 2 == 0
            with _streaming(writers) if streams else nullcontext():
                time.sleep(_APART_S)
                closed = patient.fail()
                durable, _ = running.repair()
            if number >= WARM_UP:
                took[streams].append((durable - closed) * 1000)
    beside, alone = spread(took[True]), spread(took[False])
    more = {key: value for key, value in beside.items() if key != "p50"}
    more |= {f"alone_{key}": value for key, value in alone.items() if key != "p50"}
    more |= {"beyond_settling": (beside["p50"] - SETTLE_MS) / (alone["p50"] - SETTLE_MS), "runs": len(took[True])}
    ratio = beside["p50"] / alone["p50"]
    is_ = "the same while the other stores are at rest"
    return Figure("failure_beside_streams", "ms", beside["p50"], alone["p50"], is_, ratio, TIMES, more=more)


@contextmanager
def _writers(home: Home) -> Iterator[list[Callable[[], object]]]:
    """What writes once to each of the three stores."""
    rollout = Rollout(home.root / ".codex", "01a201b9-82b1-7263-872f-ffffffffffff")
    rollout.asks("go")
    transcript = Transcript(cwd="/work/stream")
    transcript.user("go")
    path = transcript.write(home.root / ".claude" / "projects")

    def answered() -> None:
        transcript.assistant(text("a few words more"))
        with path.open("ab") as file:
            file.write(dump(transcript.line(-1)))

    with Client(home.root / "data" / "kilo" / "kilo.db") as client:
        [(planted, _)] = client.plant(1)
        pieces = client.pieces([planted.id])
        yield [lambda: next(pieces), lambda: rollout.line("event_msg", {"type": "agent_message"}), answered]


@contextmanager
def _streaming(writers: list[Callable[[], object]]) -> Iterator[None]:
    """A thread that has each of them write a hundred times a second."""
    ended = threading.Event()

    def write() -> None:
        started, count = time.monotonic(), 0
        while not ended.wait(max(started + count / PER_SECOND - time.monotonic(), 0)):
            for writer in writers:
                writer()
            count += 1

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
