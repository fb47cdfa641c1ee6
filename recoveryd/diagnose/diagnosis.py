"""What a session is stuck on, for a person who asks: also what the daemon leaves alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from recoveryd.clients.base import Look, Store
from recoveryd.clients.opencode.holders import Holders
from recoveryd.clients.opencode.server import Client
from recoveryd.clients.opencode.silent import cut_off, ids_started_again, unanswered, unreadable, unsendable
from recoveryd.clients.opencode.unsendable import provider_spoke
from recoveryd.clients.opencode.versions import forms_of
from recoveryd.core.model import Entry, Failure, Json, Outcome, Try
from recoveryd.core.silence import ELSEWHERE, REFUSED, Silence
from recoveryd.diagnose.guard import since_success, taken_back
from recoveryd.ledger.images import digest
from recoveryd.ledger.ledger import Ledger
from recoveryd.providers.sentences.classify import classify, excerpt
from recoveryd.providers.sentences.not_the_history import elsewhere


class Diagnosis:
    """Looks at sessions and writes nothing. Errors of the store pass through."""

    def __init__(self, client: Client, holders: Holders, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._holders = holders
        self._clock = clock

    def of(self, store: Store, session: str) -> Silence | None:
        """What keeps a session from going on; None when nothing does."""
        look = store.look(session)
        failure = look.failure
        kind = classify(failure.error) if failure is not None else None
        recorded = Silence(failure, kind, _recorded(failure)) if failure is not None and kind is not None else None
        if recorded is not None and not look.newer:
            return recorded
        if look.running and not look.silent:
            ended = None if self._holders.under_way(store, session) else cut_off(store.load(session))
            return ended or self._unreadable(store, session) or recorded
        if look.newer or (failure is not None and not provider_spoke(failure)):
            found = self._silent(store, session, look, recorded)
        else:
            found = ids_started_again(store, session, self._client, self._clock())
        found = found or self._unreadable(store, session)
        return found if found is not None or failure is None or look.newer else _refused(failure)

    def _unreadable(self, store: Store, session: str) -> Silence | None:
        if not store.unreadable(session):
            return None
        return unreadable(store.load(session), forms_of(store, self._client, session))

    def _silent(self, store: Store, session: str, look: Look, recorded: Silence | None) -> Silence | None:
        """Of a prompt that no provider is known to have answered or refused. `recorded`: a failure before it."""
        old = None if look.running else ids_started_again(store, session, self._client, self._clock())
        if old is not None and old.ignored:
            return old
        forms, loaded = forms_of(store, self._client, session), store.load(session)
        found = unsendable(loaded, None if look.newer else look.failure, forms) or recorded or old
        if found is not None or look.failure is not None:
            return found
        if look.running and self._holders.under_way(store, session):
            return None
        return unanswered(loaded, forms)


def standing(store: Store, ledger: Ledger, failure: Failure) -> Entry | None:
    """The repair of this failure, if it was made and still stands: the next prompt will be accepted.

    Known also when its images are gone.
    """
    for entry in ledger.repairs(store.id, failure.session, failure.message):
        left = ledger.left(entry.id) if entry.outcome is Outcome.HEALED else {}
        if left and [digest(now) for now in store.read_all([*left])] == [*left.values()]:
            return entry
    return None


def tries(store: Store, ledger: Ledger, failure: Failure, answered: int) -> list[Try]:
    """What was tried on a session in vain, or taken back. `answered`: its `Look.last_answer`."""
    made = ledger.tries(store.id, failure.session, answered, failure.message)
    return since_success(store.load(failure.session), made) if made else []


def undone(store: Store, ledger: Ledger, failure: Failure) -> Try | None:
    """The newest repair of the session, if the user took it back and no prompt was answered since."""
    return taken_back(tries(store, ledger, failure, store.look(failure.session).last_answer))


def _refused(failure: Failure) -> Silence:
    """That its newest answer holds an error of no kind: one that is not about the history, or one that nobody knows."""
    about = elsewhere(failure.error)
    evidence = {**_recorded(failure), "says": excerpt(failure.error), "about": about or ""}
    return Silence(failure, None, evidence, code=ELSEWHERE if about else REFUSED)


def _recorded(failure: Failure) -> Json:
    """What of an error tells without its words."""
    data = failure.error.get("data")
    status = data.get("statusCode") if isinstance(data, Mapping) else None
    return {"message": failure.message, "error": failure.error.get("name"), "status": status}
