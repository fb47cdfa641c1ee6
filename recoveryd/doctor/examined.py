"""What the checks of `doctor` look at: configuration, state folder and stores of one user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from recoveryd.clients import Clients, Config, Generation, Store, may_be_there
from recoveryd.core import RecoverydError
from recoveryd.settings import paths


@dataclass(frozen=True)
class Patient:
    """The configuration, the state folder and the stores that are examined.

    `all_stores` also has those that are not there yet; `config_problem`: why the configuration is not in force.
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
        """The stores that are there, also those that can't be reached."""
        return may_be_there(self.all_stores)

    @cached_property
    def clients(self) -> Clients:
        """All clients, for this configuration."""
        return Clients(self.config)

    @property
    def ledger(self) -> Path:
        """The file of the ledger."""
        return paths.ledger_file(self.state_dir)

    def generation(self, store: Store) -> Generation | None:
        """Return the generation of a store; None when it can't be told."""
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
