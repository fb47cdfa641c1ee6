"""Rounds of hostile sessions, a few in each store; what came of each, and what broke."""

from __future__ import annotations

import random
import resource
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from loguru import logger

from tests.fuzz.drive import Driver, HangError, Tally
from tests.fuzz.line_worlds import RolloutWorld, TranscriptWorld
from tests.fuzz.worlds import Outside, RowWorld, Snapshot, TreeWorld, World
from tests.support.database import NEW, OLD

PER_STORE = 12  # sessions in a store at a time


@dataclass
class Report:
    """Figures of a run; `broken`: what was promised and did not hold, with the seed of its round."""

    seed: int
    inputs: int = 0
    seconds: float = 0.0
    rss_mib: float = 0.0
    tally: Tally = field(default_factory=Tally)
    broken: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "inputs": self.inputs,
            "seconds": round(self.seconds, 1),
            "slowest_s": round(self.tally.slowest, 3),
            "peak_rss_mib": round(self.rss_mib, 1),
            "outcomes": dict(self.tally.outcomes.most_common()),
            "broken": self.broken,
        }


def run(
    inputs: int,
    seed: int,
    folder: Path | None = None,
    progress: Callable[[Report], object] = lambda _: None,
    only: str | None = None,
) -> Report:
    """At least so many inputs, in all stores or in those of `only` one client.

    A round has a seed of its own, `seed` + its number, and can be run alone.
    """
    report = Report(seed)
    logger.remove()
    started = time.monotonic()
    number = 0
    with patch(
        "recoveryd.clients.opencode.files.reader.RETRY_S", 0.0
    ):  # nobody writes here: a second reading says the same
        while report.inputs < inputs:
            report.inputs += _round(seed + number, folder, report, only)
            number += 1
            report.seconds = time.monotonic() - started
            report.rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            progress(report)
    return report


def _round(seed: int, folder: Path | None, report: Report, only: str | None) -> int:
    rng = random.Random(seed)
    done = 0
    with _folder(folder) as root:
        outside = Outside(root / "outside")
        untouched = outside.snapshot()
        made = worlds(root, outside.root, only)
        for world in made:
            done += _world(rng, world, root, seed, report)
        if outside.snapshot() != untouched or sorted(p.name for p in root.iterdir()) != _names(made):
            report.broken.append(f"seed {seed}: something outside of the stores was touched")
    return done


STORES: Mapping[str, Sequence[Callable[[Path, Path], World]]] = {
    "opencode": (TreeWorld, partial(RowWorld, version=NEW), partial(RowWorld, version=OLD)),
    "kilo": (partial(RowWorld, version=NEW, client="kilo", title="Kilo"),),
    "codex": (RolloutWorld,),
    "claude_code": (TranscriptWorld,),
}


def worlds(root: Path, outside: Path, only: str | None) -> list[World]:
    """The stores of all clients, or of `only` one, each in a folder of its own."""
    return [make(root, outside) for client, made in STORES.items() if only in (None, client) for make in made]


def _names(made: Sequence[World]) -> list[str]:
    """What is there after a round, beside the stores' own."""
    return sorted(["outside", *(w.root.name for w in made), *(f"state-{w.root.name}" for w in made)])


def _world(rng: random.Random, world: World, root: Path, seed: int, report: Report) -> int:
    sessions = world.fill(rng, PER_STORE)
    before = world.snapshot()
    driver = Driver(root / f"state-{world.root.name}", report.tally)
    try:
        _say(report, seed, world, "", lambda: driver.look_over(world.store))
        for session in sessions:
            _say(report, seed, world, session, partial(driver.drive, rng, world.store, session))
        after = world.snapshot()
        if after != before:
            report.broken.append(f"seed {seed}: {world.store!r} is not as it was: {_difference(before, after)}")
    finally:
        driver.ledger.close()
    return len(sessions)


def _say(report: Report, seed: int, world: World, session: str, job: Callable[[], object]) -> None:
    try:
        job()
    except (Exception, HangError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[:-7:-1])
        report.broken.append(
            f"seed {seed}: {world.root.name} {session}: {type(error).__name__}: {str(error)[:300]} ({where})"
        )


def _difference(before: Snapshot, after: Snapshot) -> str:
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return "; ".join(
        f"{key[:300]}: {str(before.get(key))[:200]} -> {str(after.get(key))[:200]}" for key in sorted(changed)[:2]
    )


@contextmanager
def _folder(parent: Path | None) -> Iterator[Path]:
    made = tempfile.mkdtemp(prefix="recoveryd-fuzz-", dir=parent)
    try:
        yield Path(made).resolve()
    finally:
        shutil.rmtree(made, ignore_errors=True)
