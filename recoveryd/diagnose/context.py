"""Hold what every diagnosis and every recovery works with."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from recoveryd.clients import Clients, Config
from recoveryd.ledger import Ledger
from recoveryd.settings import paths


class Context:
    """The ledger, the configuration, the folders, the clients and the clock of one run of the program.

    `state_dir`: where recoveryd keeps its own files. `lock_dir`: where stores are locked, if not as usual. `clock`:
    seconds since the epoch. `started`: when the daemon began to go by its configuration, by that clock; None: now.
    """

    def __init__(
        self,
        ledger: Ledger,
        config: Config,
        state_dir: Path,
        *,
        clients: Clients | None = None,
        clock: Callable[[], float] = time.time,
        lock_dir: Path | None = None,
        started: float | None = None,
    ) -> None:
        self.ledger = ledger
        self.config = config
        self.state_dir = state_dir
        self.clients = clients or Clients(config, clock)
        self.clock = clock
        self.started = clock() if started is None else started
        self.lock_dir = lock_dir or paths.lock_dir(state_dir)

    @property
    def now_ms(self) -> int:
        """The time, in milliseconds since the epoch."""
        return int(self.clock() * 1000)

    @property
    def since_ms(self) -> int:
        """When `lookback_hours` began, in milliseconds since the epoch: what got stuck before is no news."""
        return int(max(0.0, self.clock() * 1000 - self.config.lookback_hours * 3_600_000))
