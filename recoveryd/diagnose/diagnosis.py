"""What a session is stuck on, for a person who asks: also what the daemon leaves alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

from recoveryd.clients import Client, Clients, Look, Store, is_of
from recoveryd.core import ELSEWHERE, REFUSED, Entry, Failure, Kind, Outcome, Session, Silence, Try, kind_info
from recoveryd.diagnose import silent
from recoveryd.diagnose.explain import explain, recorded, what_stands
from recoveryd.diagnose.guard import since_success
from recoveryd.ledger import Ledger, digest
from recoveryd.providers import elsewhere, excerpt

_RECENT = 20  # recoveries of a session that are looked at


class Diagnosis:
    """Looks at sessions and writes nothing. Errors of the store pass through.

    `ledger`: what was repaired in them, so that it does not hide what broke since.
    """

    def __init__(self, clients: Clients, ledger: Ledger | None, clock: Callable[[], float] = time.time) -> None:
        self._clients = clients
        self._ledger = ledger
        self._clock = clock

    def of(self, store: Store, session: str) -> Silence | None:
        """What keeps a session from going on; None when nothing does."""
        (look, refused), client = what_stands(store.look(session)), self._clients.of(store)
        failure = look.failure
        spoke = failure is not None and failure.error.answered
        finder = _Finder(client, store, session, look, self._ledger, self._clock())
        found = explain(look, refused, finder, spoke=spoke)
        return found if found is not None or failure is None or look.newer else _refused(failure)


class _Finder:
    """Looks everything up at once, for a person who waits for the answer."""

    def __init__(
        self, client: Client, store: Store, session: str, look: Look, ledger: Ledger | None, now: float
    ) -> None:
        self._client = client
        self._store = store
        self._session = session
        self._running = look.running
        self._ledger = ledger
        self._now = now

    @cached_property
    def _loaded(self) -> Session:
        return self._store.load(self._session)

    def cut_off(self) -> Silence | None:
        under_way = self._client.under_way(self._store, self._session)
        return None if under_way else self._client.cut_off(self._loaded)

    def unreadable(self) -> Silence | None:
        found = self._store.unreadable(self._session, whole=True)
        return silent.unreadable(self._client, self._store, self._loaded) if found else None

    def repaired(self, failure: Failure) -> bool:
        return self._ledger is not None and _standing(self._store, self._ledger, failure) is not None

    def ids_started_again(self) -> Silence | None:
        return self._client.ids_started_again(self._store, self._session, self._now)

    def unsendable(self, failure: Failure | None) -> Silence | None:
        return silent.unsendable(self._client, self._store, self._loaded, failure)

    def hidden(self) -> Silence | None:
        return silent.hidden(self._client, self._store, self._session)

    def unanswered(self) -> Silence | None:
        if self._running and self._client.under_way(self._store, self._session):
            return None
        return silent.unanswered(self._client, self._store, self._loaded)


def standing(store: Store, ledger: Ledger, found: Silence) -> Entry | None:
    """The repair of what a session was found stuck on, if it was made and stands: the next prompt will be accepted.

    Known also when its images are gone, and of a store that was moved or copied: what is stored says it. A part that
    can't be sent now is never one that was repaired, and what a person had made shorter was not repaired of anything.
    """
    if found.kind is Kind.UNSENDABLE_PART:
        return None
    return _standing(store, ledger, found.failure, shortened=kind_info(found.kind).shortened)


def _standing(store: Store, ledger: Ledger, failure: Failure, *, shortened: bool = True) -> Entry | None:
    made = ledger.repairs(failure.session, failure.message)
    found = (entry for entry in made if shortened or not kind_info(entry.kind).shortened)
    return next((entry for entry in found if _made(store, entry) and _stands(store, ledger, entry)), None)


def all_stand(store: Store, ledger: Ledger, failure: Failure) -> bool:
    """Whether a failure was repaired, and all that was ever written for it stands: what is broken now is new."""
    made = [entry for entry in ledger.repairs(failure.session, failure.message) if _made(store, entry)]
    return bool(made) and all(_stands(store, ledger, entry) for entry in made)


def _made(store: Store, entry: Entry) -> bool:
    """Whether a repair was ended whole. A copy of the store keeps what its user took back in the store itself."""
    return entry.outcome is Outcome.HEALED or (entry.outcome is Outcome.UNDONE and not is_of(store, entry.store))


def _stands(store: Store, ledger: Ledger, entry: Entry) -> bool:
    left = ledger.left(entry.id)
    return bool(left) and [digest(now) for now in store.read_all([*left])] == [*left.values()]


def unread(client: Client, store: Store, ledger: Ledger, failure: Failure) -> tuple[Entry, str] | None:
    """The repair that stands before a failure, and what its user does, where the client has not read it since.

    Such a failure tells nothing of what is stored: the client sent what it had in memory.
    """
    made = (entry for entry in ledger.history(_RECENT, failure.session) if entry.store == store.id)
    newest = next((entry for entry in made if entry.outcome is Outcome.HEALED), None)
    if newest is None or newest.message == failure.message or failure.time < newest.time * 1000:
        return None
    late = client.unread(store, failure.session, newest.time)
    return (newest, late) if late else None


def tries(client: Client, store: Store, ledger: Ledger, failure: Failure, answered: int) -> list[Try]:
    """What was tried on a session in vain. `answered`: its `Look.last_answer`."""
    made = ledger.tries(store.id, failure.session, answered, failure.message)
    return since_success(store.load(failure.session), made, client) if made else []


def undone(store: Store, ledger: Ledger, failure: Failure) -> Try | None:
    """The newest repair of the session, if the user took it back and no prompt was answered since."""
    return ledger.taken_back(failure.session, store.look(failure.session).last_answer, failure.message)


def _refused(failure: Failure) -> Silence:
    """That its newest answer holds an error of no kind: one that is not about the history, or one that nobody knows."""
    about = elsewhere(failure.error)
    evidence = {**recorded(failure), "says": excerpt(failure.error), "about": about or ""}
    return Silence(failure, None, evidence, code=ELSEWHERE if about else REFUSED)
