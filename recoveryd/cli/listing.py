"""List the stores and sessions that `scan` goes through, and what of them can't be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from recoveryd.cli.output import console, plain
from recoveryd.clients import Clients, Store, is_abandoned, look_up, passed_over
from recoveryd.core import RecoverydError


@dataclass
class Listing:
    """What a scan goes through. `unreadable`: why a store could not be looked into, by its id."""

    quiet: bool  # nothing is said on the way
    names: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    partly: set[str] = field(default_factory=set)  # the stores of `unreadable` that were read, but for what is told
    sessions: int = 0

    @property
    def failed(self) -> bool:
        """Whether a store could not be read at all. What is never looked into is told, and is no fault: its user may
        want it so.
        """
        return bool(self.unreadable.keys() - self.partly)

    def walk(self, clients: Clients, stores: Sequence[Store], named: str | None) -> Iterator[tuple[Store, list[str]]]:
        """List each store and its sessions; a `named` session is looked up. A dead store has none: its client has them
        elsewhere.

        What can't be read is told, be it a store or a part of one, and does not end the scan of the others.
        """
        self.names += [store.id for store in stores]
        for store, sessions in self._named(clients, stores, named) if named else self._all(clients, stores):
            self.sessions += len(sessions)
            yield store, sessions

    def _named(self, clients: Clients, stores: Sequence[Store], session: str) -> Iterator[tuple[Store, list[str]]]:
        found, unread = look_up(clients, stores, session)
        for store_id, error in unread.items():
            self._tell(store_id, error)
        yield from ((store, [session]) for store in found)

    def _all(self, clients: Clients, stores: Sequence[Store]) -> Iterator[tuple[Store, list[str]]]:
        passed = passed_over(clients, stores)
        for store in stores:
            try:
                sessions = [] if is_abandoned(store) else list(store.session_ids())
            except RecoverydError as error:
                self._tell(store.id, error)
                continue
            if store.id in passed:
                self._tell(store.id, passed[store.id])
                self.partly.add(store.id)
            yield store, sessions

    def _tell(self, store_id: str, error: RecoverydError) -> None:
        self.unreadable[store_id] = str(error)
        if not self.quiet:
            console(stderr=True, goes_on=True).print(f"recoveryd: {plain(str(error))}")
