"""Rollouts of Codex: what is read of many large ones at a start, and of one that is refused since."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from recoveryd.clients.codex.store import CodexThreads
from tests.bench.harness import Figure
from tests.support.rollouts import Rollout, threads

_TAIL = 1 << 16  # bytes: what a bare program would read of the end of a file to see how it ended
LOOKS, FAILURES = 6.0, 40.0  # times the floor


def rollouts(root: Path, count: int, megabytes: int, runs: int) -> list[Figure]:
    """Look at `count` threads of so many megabytes each as a start does; then refuse some of them, one by one."""
    home = root / "rollouts"
    every = [_large(home, number, megabytes * 1_000_000) for number in range(count)]
    store, size = threads(home), f"{count} rollouts of {megabytes} MB"
    floor = min(_tails(every) for _ in range(3))
    with _counted() as read:
        first = _look(store)
    again = min(_look(store, {}) for _ in range(3))
    known = dict(store.fresh({}, 0))
    started = time.monotonic()
    assert list(store.fresh(known, 0)) == []
    unchanged = time.monotonic() - started
    more = {"bytes_read": float(sum(read)), "of_bytes": float(sum(r.path.stat().st_size for r in every))}
    more |= {"looked_at_again": again, "unchanged": unchanged}
    start = Figure(
        "rollouts_start", "s", first, floor, f"the last 64 KB of each ({size})", first / floor, LOOKS, more=more
    )
    return [start, _failures(store, every[:runs], size)]


def _failures(store: CodexThreads, every: list[Rollout], size: str) -> Figure:
    took, floors, read_, new = [], [], [], []
    for rollout in every:
        before = rollout.path.stat().st_size
        rollout.asks("again")
        rollout.is_refused()
        new.append(rollout.path.stat().st_size - before)
        started = time.monotonic()
        with rollout.path.open("rb") as file:
            file.seek(before)
            file.read()
        floors.append(time.monotonic() - started)
        with _counted() as read:
            started = time.monotonic()
            assert store.look(rollout.thread).failure is not None
            took.append(time.monotonic() - started)
        read_.append(sum(read))
    value, floor = statistics.median(took) * 1000, statistics.median(floors) * 1000
    more = {"bytes_read": statistics.median(read_), "bytes_new": statistics.median(new)}
    return Figure(
        "rollouts_failure", "ms", value, floor, f"the new bytes alone ({size})", value / floor, FAILURES, more=more
    )


def _large(home: Path, number: int, size: int) -> Rollout:
    """A healthy thread behind a line of so many bytes, which takes no room on the disk."""
    rollout = Rollout(home, f"01a201b9-82b1-7263-872f-{number:012x}")
    with rollout.path.open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) + size)
    rollout.raw(b"\n")
    rollout.healthy()
    return rollout


def _look(store: CodexThreads, known: dict[str, str] | None = None) -> float:
    started = time.monotonic()
    for thread, _ in store.fresh(known or {}, 0):
        assert store.look(thread).failure is None
    return time.monotonic() - started


def _tails(every: list[Rollout]) -> float:
    started = time.monotonic()
    for rollout in every:
        with rollout.path.open("rb") as file:
            file.seek(-min(_TAIL, rollout.path.stat().st_size), os.SEEK_END)
            file.read()
    return time.monotonic() - started


@contextmanager
def _counted() -> Iterator[list[int]]:
    """The sizes of all that is read meanwhile."""
    found: list[int] = []
    real = os.pread

    def pread(fd: int, size: int, at: int) -> bytes:
        block = real(fd, size, at)
        found.append(len(block))
        return block

    with patch.object(os, "pread", pread):
        yield found
