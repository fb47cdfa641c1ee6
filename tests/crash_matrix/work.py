"""What the children do: what the daemon does about a session, a start of the daemon, an undo."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

from recoveryd import clients, providers, repair
from recoveryd.clients import Config, Store
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core.errors import RecoverydError
from recoveryd.core.model import Change, Entry, Event, Outcome
from recoveryd.daemon.daemon import Daemon
from recoveryd.daemon.healer import Healer
from recoveryd.daemon.log_once import LogOnce
from recoveryd.daemon.schedule import Schedule
from recoveryd.daemon.store_locks import StoreLocks
from recoveryd.diagnose import Context, triage
from recoveryd.disk.locks import recovery_lock
from recoveryd.heal import lifecycle
from recoveryd.heal.recovery import Recovery
from recoveryd.heal.undo import undo
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import Notify
from recoveryd.settings.paths import ledger_file
from tests.crash_matrix.places import Place
from tests.support.cases import case_of

# Nothing listens there: no client that happens to run on this machine is asked.
CONFIG = Config(
    notify=Notify(desktop=False), opencode=OpencodeSettings(server_url="http://127.0.0.1:9"), max_retries=1000
)


def alone(put: Callable[[object, str, object], object] = setattr) -> None:
    """Wait for no client: nobody else writes there. A test gives `monkeypatch.setattr`, or all tests had it."""
    for module, name in ((triage, "SETTLE_S"), (triage, "GRACE_S"), (lifecycle, "CONFIRM_S")):
        put(module, name, 0.0)


def preload() -> None:
    """Import what is imported only where a session is stuck: each of a thousand children would do it anew."""
    for package in (clients, providers, repair):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


@contextmanager
def opened(place: Place) -> Iterator[Ledger]:
    """The ledger of this place."""
    with Ledger(ledger_file(place.state)) as ledger:
        yield ledger


class NoLocks(StoreLocks):
    """Where no other daemon is."""

    def mine(self, store: Store) -> bool:
        return True


class Worker:
    """The part of the daemon that attends to sessions, without its loop."""

    def __init__(self, place: Place, ledger: Ledger) -> None:
        self._place = place
        context = Context(ledger, CONFIG, place.state)
        self._healer = Healer(context, NoLocks(context.lock_dir), Schedule(), LogOnce())

    def attend(self, session: str, times: int = 1) -> str:
        """Look at a session, at the most so often; then read back what was repaired."""
        attended = ""
        for _ in range(times):
            attended = self._healer.attend(self._place.store, session)
            if attended != "open":
                break
        self._healer.finish()
        return attended


def heal(place: Place, session: str, times: int = 1) -> str:
    """The whole recovery of a session, the second look at it too."""
    with opened(place) as ledger:
        return Worker(place, ledger).attend(session, times)


def start(place: Place) -> None:
    """A start of the daemon, that ends at once."""
    daemon = Daemon(CONFIG, state_dir=place.state, stores=[place.store], lock_dir=place.state)
    daemon.stop()
    daemon.run()


def confirm(place: Place, session: str) -> str:
    """Read back a repair that the client wrote over meanwhile."""
    with opened(place) as ledger:
        failure = place.failure(session)
        entry = ledger.history(1, session)[0]
        recovery = Recovery(Context(ledger, CONFIG, place.state))
        event = _event(entry, ledger.changes(entry.id))
        return recovery.confirm(case_of(place.store, failure, event)).event.outcome


def _event(entry: Entry, changes: list[Change]) -> Event:
    """The event of a recovery that stands in the ledger."""
    return Event(
        entry.id,
        entry.store,
        entry.session,
        entry.title,
        entry.message,
        entry.kind,
        Outcome.HEALED,
        entry.detail,
        entry.actions,
        tuple(changes),
    )


def take_back(place: Place, session: str, *, force: bool = False) -> list[str]:
    """Undo every repair of a session that stands, newest first; what was refused, in words."""
    refused = []
    with opened(place) as ledger, recovery_lock(place.store.lock_path, place.state, place.store.id):
        for entry in ledger.history(1000, session):
            if entry.outcome is Outcome.HEALED:
                try:
                    undo(place.store, ledger, entry, force=force)
                except RecoverydError as error:
                    refused.append(error.message)
    return refused


@dataclass(frozen=True, slots=True)
class Kept:
    """What the ledger has of one recovery."""

    id: str
    outcome: str
    changes: list[Change]


def entries(place: Place, session: str) -> list[Kept]:
    """What the ledger has of a session, newest first."""
    with opened(place) as ledger:
        return [Kept(e.id, e.outcome.value, ledger.changes(e.id)) for e in ledger.history(1000, session)]
