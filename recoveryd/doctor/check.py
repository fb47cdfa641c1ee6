"""A check of `doctor` as a value, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from recoveryd.clients.base import Generation, Store
from recoveryd.clients.opencode.server import Client
from recoveryd.clients.peers import Owner
from recoveryd.core.errors import RecoverydError
from recoveryd.settings import paths
from recoveryd.settings.load import Config

Level = Literal["ok", "warn", "fail"]
OK: Level = "ok"
WARN: Level = "warn"
FAIL: Level = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """`code` is one of `doctor.CODES`; `next`: what to do, or ""; `about`: the store, `recoveries`: ids."""

    code: str
    level: Level
    says: str
    next: str = ""
    about: str = ""
    recoveries: Sequence[str] = ()


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
    def client(self) -> tuple[int, ...] | None:
        """The version of the client that listens; None when none does."""
        return self._client.any_version()

    @property
    def shut_out(self) -> dict[str, Owner]:
        """Where somebody listens who was not asked for `client`: another user, or nobody knows who."""
        return self._client.shut_out()

    @cached_property
    def _client(self) -> Client:
        return Client(self.config.opencode)

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
        dead = (None, Generation.JSON_DEAD, Generation.OPENCODE_2, Generation.UNKNOWN)
        return [store for store in self.stores if self.generation(store) not in dead]


def ok(code: str, says: str, next: str = "", about: str = "") -> Check:
    return Check(code, OK, says, next, about)


def warn(code: str, says: str, next: str, about: str = "") -> Check:
    return Check(code, WARN, says, next, about)


def fail(code: str, says: str, next: str, about: str = "") -> Check:
    return Check(code, FAIL, says, next, about)
