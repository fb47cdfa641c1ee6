"""Break the sessions of a throw-away store one after the other, with the real daemon at work on it.

Nothing of the user's is read or written: store, state and ledger are in one temporary folder, gone at the end.
"""

from __future__ import annotations

import queue
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from recoveryd.clients import SETTLE_S, Config, Store
from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.core import Change, Event, Kind, Outcome, RecoverydError
from recoveryd.daemon import Daemon
from recoveryd.demo.baseline import Floor
from recoveryd.demo.broken_sessions import CONTROLS, Example, examples
from recoveryd.demo.broken_thread import example_thread
from recoveryd.heal import take_back
from recoveryd.ledger import Ledger
from recoveryd.settings import Notify, paths
from recoveryd.tell import Callbacks, cause

PAUSE_S = 0.25  # between two failures: slow enough to watch
LIMIT_S = 7.0  # for all of them
FLOOR_RUNS = 15
SHOWN = Kind.EMPTY_CONTENT  # whose repair is shown as a diff and undone: the shortest


_News = tuple[float, Sequence[Change]] | Event | None


@dataclass
class Row:
    """One session of the demo; `state`: waiting, broken, repaired (and not yet read back), healed,
    untouched or wrong.
    """

    example: Example
    state: str = "waiting"
    seconds: float = 0.0  # from the failed message being written to the repair being durable
    event: Event | None = None
    action: str = ""  # what was done, or what went wrong
    broken_at: float = 0.0
    undone: bool = False

    @property
    def cause(self) -> str:
        """What the session is stuck on, in words."""
        return CONTROLS.get(self.example.title) or cause(self.example.kind)


class _TimedStore(OpencodeFiles):
    """Says when the first look at all sessions is over, and when a repair is on the disk."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.swept = threading.Event()
        self.durable: queue.SimpleQueue[_News] = queue.SimpleQueue()

    def fresh(self, known: Mapping[str, str], since_ms: int) -> Iterator[tuple[str, str]]:
        yield from super().fresh(known, since_ms)
        self.swept.set()

    def apply(self, changes: Sequence[Change]) -> None:
        super().apply(changes)
        self.durable.put((time.monotonic(), changes))


class _TimedThreads(CodexThreads):
    """The same of a home of Codex."""

    def __init__(self, root: Path, durable: queue.SimpleQueue[_News]) -> None:
        super().__init__(root)
        self.swept = threading.Event()
        self._durable = durable

    def fresh(self, known: Mapping[str, str], since_ms: int) -> Iterator[tuple[str, str]]:
        yield from super().fresh(known, since_ms)
        self.swept.set()

    def apply(self, changes: Sequence[Change]) -> None:
        super().apply(changes)
        self._durable.put((time.monotonic(), changes))


@dataclass
class Demo:
    """The demo, a context manager: `steps` once, then `take_back`. `rows` are what it comes to."""

    rows: list[Row] = field(default_factory=list)
    floor: float = 0.0  # seconds
    _fault: str = ""

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="recoveryd-demo-", ignore_cleanup_errors=True)
        self._home = Path(self._folder.name).resolve()
        self._store = _TimedStore(self._home / "opencode" / "storage")
        self._inbox = self._store.durable
        self._threads = _TimedThreads(self._home / "codex" / "sessions", self._inbox)
        self._roots = {"opencode": self._store.root, "codex": self._threads.home}
        self._state = self._home / "state"
        self._daemon: Daemon | None = None
        self._thread = threading.Thread(target=self._run, name="demo", daemon=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def steps(self) -> Iterator[Row]:
        """Break everything and wait for the daemon; a row comes whenever it changed, in its last state once."""
        self._prepare()
        deadline = time.monotonic() + LIMIT_S
        for row in self.rows:
            if row.example.error is not None:
                self._break(row)
                yield row
                yield from self._follow(time.monotonic() + PAUSE_S)
        yield from self._follow(deadline, until_done=True)
        self._stop()
        yield from self._judge()

    def example(self) -> Row | None:
        """Return the healed session whose repair is worth a look."""
        healed = [row for row in self.rows if row.state == "healed"]
        return next((row for row in healed if row.example.kind is SHOWN), healed[0] if healed else None)

    def store(self, row: Row) -> Store:
        """Return the store of the session of `row`."""
        return self._threads if row.example.client == "codex" else self._store

    def changes(self, row: Row) -> Sequence[Change]:
        """Return what a repair changed, as the ledger has it."""
        assert row.event is not None
        with Ledger(paths.ledger_file(self._state)) as ledger:
            return ledger.changes(row.event.id)

    def take_back(self, row: Row) -> int:
        """Undo a repair and compare. Returns of how many files every byte is as it was; 0 when one is not."""
        assert row.event is not None
        with Ledger(paths.ledger_file(self._state)) as ledger:
            take_back(self.store(row), ledger, self._state, row.event.id)
        row.undone = self._files(row.example) == self._before[row.example.id]
        return len(self._before[row.example.id]) if row.undone else 0

    def problems(self) -> list[str]:
        """List what is not as it should be, a sentence each."""
        wrong = [f"{row.example.title}: {row.action}" for row in self.rows if row.state not in ("healed", "untouched")]
        return [*wrong, self._fault] if self._fault else wrong

    def median(self) -> float:
        """Return the median of the seconds from a failed message to its repair on the disk; 0 when there was none."""
        times = [row.seconds for row in self.rows if row.seconds]
        return statistics.median(times) if times else 0.0

    def ratio(self) -> float:
        """Return the time that comes behind the settle time, as a multiple of the baseline."""
        return (self.median() - SETTLE_S) / self.floor

    def _prepare(self) -> None:
        with Floor(self._home / "floor") as floor:
            self.floor = statistics.median(floor.once() for _ in range(FLOOR_RUNS))
        self.rows = [Row(example) for example in (*examples(int(time.time() * 1000)), example_thread())]
        for row in self.rows:
            row.example.plant(self._roots[row.example.client])
        self._before = {row.example.id: self._files(row.example) for row in self.rows}
        config = Config(notify=Notify(desktop=False, tui=False))
        callbacks = Callbacks(on_complete=self._inbox.put)
        state = self._state  # the lock lies there too: nothing is left in the home
        stores: list[Store] = [self._store, self._threads]
        self._daemon = Daemon(config, callbacks=callbacks, state_dir=state, stores=stores, lock_dir=state)
        self._thread.start()
        if not (self._store.swept.wait(LIMIT_S) and self._threads.swept.wait(LIMIT_S)):
            self._stop()
            raise RecoverydError(f"The daemon did not begin to watch. {self._fault}".strip())

    def _break(self, row: Row) -> None:
        row.example.fail(self._roots[row.example.client], int(time.time() * 1000))
        row.broken_at = time.monotonic()
        self._before[row.example.id] = self._files(row.example)
        row.state = "broken"

    def _follow(self, deadline: float, *, until_done: bool = False) -> Iterator[Row]:
        while (left := deadline - time.monotonic()) > 0 and self._thread.is_alive():
            if until_done and all(
                r.state not in ("waiting", "broken", "repaired") for r in self.rows if r.example.kind
            ):
                return
            try:
                news = self._inbox.get(timeout=left)
            except queue.Empty:
                return
            row = self.take(news)
            if row is not None:
                yield row

    def take(self, news: tuple[float, Sequence[Change]] | Event | None) -> Row | None:
        """Return the row that a repair on the disk, or the end of a recovery, is about."""
        if isinstance(news, Event):
            row = next(r for r in self.rows if r.example.id == news.session)
            row.event, row.action = news, news.detail
            sound = news.outcome is Outcome.HEALED and news.kind is row.example.kind is not None
            row.state = "healed" if sound else "wrong"
            return row
        if news is None:
            return None
        at, changes = news
        row = next(r for r in self.rows if any(r.example.owns(change) for change in changes))
        row.seconds, row.state = at - row.broken_at, "repaired"
        return row

    def _judge(self) -> Iterator[Row]:
        """Mark what never healed, and controls that are not as they were."""
        for row in self.rows:
            if row.example.kind is None:
                touched = row.event is not None or self._files(row.example) != self._before[row.example.id]
                row.state = "wrong" if touched else "untouched"
                row.action = "It was changed, and must not be" if touched else "Left alone"
                yield row
            elif row.event is None:
                row.state, row.action = "wrong", f"Not healed within {LIMIT_S:g} seconds"
                yield row

    def _files(self, example: Example) -> dict[str, bytes]:
        return example.stored(self._roots[example.client])

    def _run(self) -> None:
        assert self._daemon is not None
        try:
            self._daemon.run()
        except Exception as error:
            self._fault = f"The daemon stopped: {error}"
        finally:
            self._store.swept.set()
            self._threads.swept.set()
            self._inbox.put(None)

    def _stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()
            if self._thread.is_alive():
                self._thread.join(5)
