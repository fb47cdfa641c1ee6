"""A daemon in a thread of the test, and what is waited for of it."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from recoveryd.clients import Config
from recoveryd.clients.store import Store
from recoveryd.core.model import Entry, Event
from recoveryd.daemon.daemon import Daemon
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import Notify
from recoveryd.tell.callbacks import Callbacks
from tests.support.judge import refusal
from tests.support.trees import Tree

WAIT = 60.0  # seconds until a test calls it a hang; nothing here takes more than two on a machine at rest
SOON = 1.5  # seconds: longer than a repair waits to be read back, shorter than the daemon rests afterwards


class Running:
    """A daemon in a thread, and what it told its parent system."""

    def __init__(self, folder: Path, *stores: Store, fails: bool = False, **config: Any) -> None:
        self.state = folder / "state"
        self.aborted: list[str] = []
        self.events: list[Event] = []
        self.error: BaseException | None = None
        self._fails = fails
        callbacks = Callbacks(on_abort=self._abort, on_complete=self._complete)
        quiet = Config(**{"notify": Notify(desktop=False), **config})
        self.daemon = Daemon(quiet, callbacks=callbacks, state_dir=self.state, stores=stores)
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.daemon.run()
        except BaseException as error:
            self.error = error

    def _abort(self, session: str) -> None:
        self.aborted.append(session)
        if self._fails:
            raise RuntimeError("on_abort")

    def _complete(self, event: Event) -> None:
        self.events.append(event)
        if self._fails:
            raise RuntimeError("on_complete")

    def stop(self) -> None:
        self.daemon.stop()
        self.thread.join(WAIT)
        assert not self.thread.is_alive()

    def idle(self) -> None:
        """Wait until every store was swept and nothing is due soon: what came before the start was dealt with."""
        until(lambda: self.daemon.stores.keys() <= self.daemon._swept.keys() and self._due() > SOON)

    def _due(self) -> float:
        """Seconds until the daemon's next job, as its own thread says."""
        answer: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self.daemon._inbox.put(lambda: answer.put(self.daemon._schedule.wait()))
        due = answer.get(timeout=WAIT)
        return math.inf if due is None else due

    def sweeps(self, number: int = 3) -> None:
        """Wait until every store was swept so many times from now on."""
        for _ in range(number):
            until(partial(self._swept_since, dict(self.daemon._swept)))

    def _swept_since(self, then: dict[str, float]) -> bool:
        return all(self.daemon._swept.get(store, 0) > then.get(store, 0) for store in self.daemon.stores)

    def history(self) -> list[Entry]:
        with Ledger(self.state / "ledger.db") as ledger:
            return ledger.history(99)


@contextmanager
def running(folder: Path, *stores: Store, **options: Any) -> Iterator[Running]:
    made = Running(folder, *stores, **options)
    made.thread.start()
    try:
        yield made
    finally:
        made.stop()
    assert made.error is None


def until(true: Callable[[], object], what: str = "") -> None:
    deadline = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < deadline, what or "it took too long"
        time.sleep(0.01)


def is_healed(tree: Tree, session: str) -> bool:
    return refusal(tree.store.load(session), thinking=False) is None
