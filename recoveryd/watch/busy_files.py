"""Watch a folder that is written to very fast by looking at its files a few times a second, which costs less than
events.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from recoveryd.clients import Store

LOOK_S = 0.15
CALM_S = 2.0

_Facts = tuple[tuple[int, int, int], ...]


class Burst:
    """The busy files (`watch_files`) of all stores of one folder, while they are written to so fast that events about
    them are turned off.
    """

    def __init__(self, stores: Iterable[Store]) -> None:
        self._stores = tuple(stores)
        self._facts = {store.id: _facts(store.watch_files) for store in self._stores}
        self._last = time.monotonic()
        self.over = False

    def changed(self) -> list[str]:
        """Return the ids of the stores that were written to since the last call, and note whether the burst is `over`.

        All of them once it is: SQLite writes to the log before it makes that visible, which no event and no time tells.
        """
        now = time.monotonic()
        found = {store.id: _facts(store.watch_files) for store in self._stores}
        changed = [store_id for store_id, facts in found.items() if facts != self._facts[store_id]]
        self._facts = found
        if changed:
            self._last = now
        self.over = now - self._last > CALM_S
        return [*found] if self.over else changed


def _facts(files: Iterable[Path]) -> _Facts:
    facts = []
    for file in files:
        try:
            found = file.stat()
        except OSError:
            facts.append((0, 0, 0))
        else:
            facts.append((found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(facts)
