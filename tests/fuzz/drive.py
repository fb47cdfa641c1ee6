"""One hostile session through all that reads or repairs it. What must not be is an exception of its own."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from recoveryd.cli.explain import _verdict as explained
from recoveryd.cli.findings import finding_of
from recoveryd.clients import Config
from recoveryd.clients.find import read_error
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from recoveryd.core.errors import RecoverydError, RefusedError
from recoveryd.core.model import Event, Failure, Kind, Outcome, RecordedError
from recoveryd.diagnose import Context, diagnose
from recoveryd.diagnose.triage import Next, Triage
from recoveryd.heal.recovery import Recovery
from recoveryd.heal.undo import undo
from recoveryd.ledger.ledger import Ledger
from recoveryd.providers.sentences.classify import candidates, classify
from tests.fuzz.mutate import hostile
from tests.support.cases import case, case_of

LIMIT_S = 20.0  # of the clock, for one input; they take some milliseconds
T = TypeVar("T")


class HangError(BaseException):
    """Nothing that is driven here may catch it."""


class WrongError(Exception):
    """A promise was broken."""


@dataclass
class Tally:
    """What became of the inputs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0  # seconds of the clock


class Driver:
    """Everything beside the store that an input goes through, in a state folder of its own."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        folder.mkdir(mode=0o700)
        self.ledger = Ledger(folder / "ledger.db")
        self._tally = tally
        self._config = Config(opencode=OpencodeSettings(server_url="http://127.0.0.1:1"))

        def clock() -> float:
            return time.time() + 10.0  # all is quiet by then

        self._recovery = Recovery(Context(self.ledger, self._config, folder, clock=clock))
        self._triage = Triage(self._recovery.context, lambda *_: None)

    def look_over(self, store: Store) -> None:
        """What the daemon asks of a whole store: one hostile record may never hide the other sessions."""
        with limited():
            list(store.fresh({}, 0))
            list(store.session_ids())

    def drive(self, rng: random.Random, store: Store, session: str) -> None:
        started = time.monotonic()
        with limited():
            outcome = self._all(rng, store, session)
        self._tally.outcomes[outcome] += 1
        self._tally.slowest = max(self._tally.slowest, time.monotonic() - started)

    def _all(self, rng: random.Random, store: Store, session: str) -> str:
        look = _try(lambda: store.look(session))
        loaded = _try(lambda: store.load(session))
        _try(lambda: store.stamp(session))
        if isinstance(store, (OpencodeFiles, OpencodeSqlite)):
            _try(lambda: store.strangers(session))
        explain(hostile(rng) if look is None or look.failure is None or rng.random() < 0.1 else look.failure.error)
        verdict = _try(lambda: self._triage.judge(store, session))
        found = verdict.diagnosis if verdict is not None and verdict.next is Next.RECOVER else None
        if found is None:
            found = _try(lambda: diagnose(self._recovery.context, store, session))
        shown = None if rng.random() < 0.75 else finding_of(store, session, self._recovery)
        if shown is not None and "a fault of recoveryd" in shown.action:
            raise WrongError(shown.action)
        if found is None or found.kind is None:
            return "not read" if look is None or loaded is None else "not stuck"
        return self._repair(rng, store, found.failure, found.kind)

    def _repair(self, rng: random.Random, store: Store, failure: Failure, kind: Kind) -> str:
        event = self._recovery.attempt(case(store, failure, kind)).event
        _honest(event)
        if event.outcome is not Outcome.HEALED:
            return str(event.outcome)
        if rng.random() < 0.25:
            event = self._recovery.confirm(case_of(store, failure, event)).event
            _honest(event)
        entry = self.ledger.get(event.id)
        try:
            undo(store, self.ledger, entry)
        except RefusedError:  # an answer that says it was finished in the year 5000
            undo(store, self.ledger, entry, force=True)
        return "healed, undone"


def explain(error: object) -> None:
    said = error if isinstance(error, RecordedError) else read_error(error)
    candidates(said)
    refused = classify(said)
    explained(refused.kind if refused is not None else None, said)


def _honest(event: Event) -> None:
    if "A fault of recoveryd" in event.detail:
        raise WrongError(event.detail)


def _try(ask: Callable[[], T]) -> T | None:
    """A store may refuse, in words."""
    try:
        return ask()
    except RecoverydError as error:
        if not str(error).strip():
            raise WrongError(f"{type(error).__name__} without a word") from error
        return None


@contextmanager
def limited() -> Iterator[None]:
    """HangError when it takes longer than `LIMIT_S`. In the main thread."""

    def hang(*_: object) -> None:
        raise HangError(f"longer than {LIMIT_S:g} seconds")

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
