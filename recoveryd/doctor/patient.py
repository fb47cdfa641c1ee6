"""What `doctor` examines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from recoveryd.clients import Clients, Config, Generation, Store
from recoveryd.core import RecoverydError
from recoveryd.settings import paths


@dataclass(frozen=True)
class Patient:
    """What is examined: `all_stores` also has those that are not there yet; `config_problem`: why it is not in force.

    `show_toast`: a notice is really shown. `now` is in seconds since the epoch.
    """

    config: Config
    config_file: Path
    state_dir: Path
    all_stores: Sequence[Store]
    now: float
    config_problem: RecoverydError | None = None
    show_toast: bool = False
    _generations: dict[str, Generation | None] = field(default_factory=dict)

    @cached_property
    def stores(self) -> list[Store]:
        return [store for store in self.all_stores if store.exists()]

    @cached_property
    def clients(self) -> Clients:
        return Clients(self.config)

    @property
    def ledger(self) -> Path:
        return paths.ledger_file(self.state_dir)

    def generation(self, store: Store) -> Generation | None:
        """None when it can't be told."""
        if store.id not in self._generations:
            try:
                self._generations[store.id] = store.generation()
            except RecoverydError:
                self._generations[store.id] = None
        return self._generations[store.id]

    @property
    def living(self) -> list[Store]:
        """The stores whose sessions a client uses and recoveryd knows."""
        found = ((store, self.generation(store)) for store in self.stores)
        return [store for store, generation in found if generation is not None and generation.use == "edited"]
