"""Run jobs later, in one thread. Each has a key: to schedule the key again puts the job off instead of doubling it."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Hashable
from itertools import count


class Schedule:
    """The daemon's jobs by when they are due (`time.monotonic`). Not for several threads, but for `call`, which runs a
    job in the thread of this schedule.
    """

    def __init__(self, call: Callable[[Callable[[], object]], object] = lambda job: job()) -> None:
        self.call = call
        self._heap: list[tuple[float, int, Hashable]] = []
        self._jobs: dict[Hashable, tuple[int, Callable[[], object]]] = {}  # the one job of each key that counts
        self._order = count()

    def at(self, seconds: float, key: Hashable, run: Callable[[], object]) -> None:
        """Run a job in so many seconds, in place of the one that has this key."""
        number = next(self._order)
        self._jobs[key] = number, run
        heapq.heappush(self._heap, (time.monotonic() + seconds, number, key))

    def __contains__(self, key: Hashable) -> bool:
        return key in self._jobs

    def wait(self) -> float | None:
        """Return the seconds until a job is due; None when there is none."""
        self._drop_replaced()
        return max(self._heap[0][0] - time.monotonic(), 0.0) if self._heap else None

    def pop(self) -> Callable[[], object] | None:
        """Take out the job that has been due the longest; None when none is due."""
        self._drop_replaced()
        if not self._heap or self._heap[0][0] > time.monotonic():
            return None
        _, _, key = heapq.heappop(self._heap)
        return self._jobs.pop(key)[1]

    def _drop_replaced(self) -> None:
        while self._heap and self._jobs.get(self._heap[0][2], (None,))[0] != self._heap[0][1]:
            heapq.heappop(self._heap)
