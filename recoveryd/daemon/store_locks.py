"""Hold the locks of the stores that this daemon watches."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from recoveryd.clients import Store
from recoveryd.disk import StoreLock


class StoreLocks:
    """Locks of stores by their folders, kept in the folder `place`. Databases in one folder share a lock."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._held: dict[Path, StoreLock] = {}

    def mine(self, store: Store) -> bool:
        """Whether this daemon watches the store: only then anything in it is repaired."""
        lock = self._held.get(store.lock_path)
        return lock is not None and lock.holds()

    def take(self, store: Store, idle: str = "") -> None:
        """Take the lock of a store's folder, unless it is held, and note why nothing is repaired there (`idle`).

        Raises `BusyError` when another daemon has it, `NotFoundError` when there is no such folder, `RecoverydError`.
        """
        if not self.mine(store):
            self.release([store.lock_path])
            lock = StoreLock(store.lock_path, self._place, store.id)
            lock.acquire()
            self._held[store.lock_path] = lock
        self._held[store.lock_path].watch(store.id, idle)

    def say(self, idle: str) -> None:
        """Note why nothing is repaired in any of these stores any more."""
        for lock in self._held.values():
            lock.watch(lock.store, idle)

    def keep(self, wanted: Collection[Path]) -> None:
        """Release the locks of folders that are not wanted any more, or were moved away."""
        self.release([folder for folder, lock in self._held.items() if folder not in wanted or not lock.holds()])

    def release(self, folders: Collection[Path] | None = None) -> None:
        """Release the locks of these folders; None: of all."""
        for folder in list(self._held if folders is None else folders):
            if (lock := self._held.pop(folder, None)) is not None:
                lock.release()
