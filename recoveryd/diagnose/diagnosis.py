"""Diagnose a session for who asks now: also what the daemon leaves alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from recoveryd.clients import SessionStatus, Store, is_of_subagent
from recoveryd.core import (
    BEFORE_REPAIR,
    COPIED,
    ELSEWHERE,
    LEFT_OPEN,
    OF_PARENT,
    OF_SUBAGENT,
    REFUSED,
    TAKEN_BACK,
    Diagnosis,
    Failure,
    Session,
    StoreError,
    error_evidence,
    excerpt,
)
from recoveryd.diagnose import without_error
from recoveryd.diagnose.context import Context
from recoveryd.diagnose.decision_tree import find_cause, standing_failure
from recoveryd.diagnose.earlier_repairs import as_refused, repaired_later, stored_repair
from recoveryd.diagnose.named_places import as_meant, place_moved
from recoveryd.providers import candidates, other_cause, speaks_of_length

_BROKE_OFF = "The answer broke off: its beginning is stored, so the provider took the history. Send the prompt again."
_UNDER_WAY_MS = 5_000  # so long a prompt is believed to be on its way: its client stores the answer once that begins


def diagnose(context: Context, store: Store, session: str, look: SessionStatus | None = None) -> Diagnosis | None:
    """Diagnose a session for who asks now: what keeps it from going on; None when nothing does. Writes nothing. Errors
    of the store pass. `look`: what the store tells of the session now, if it was asked already.
    """
    look = store.look(session) if look is None else look
    look, refused = standing_failure(as_refused(context.ledger, look))
    failure = look.failure
    finder = _Finder(context, store, session, look)
    found = find_cause(look, refused, finder)
    if found is not None or failure is None or look.newer:
        return found
    code = COPIED if look.copied else TAKEN_BACK
    if look.kept is not None:
        kept, before = standing_failure(look.kept)
        if kept.failure is None or kept.newer:
            return Diagnosis(failure, None, error_evidence(failure), code=code)
        look, refused, failure = kept, before, kept.failure
    known = refused if refused is not None or other_cause(failure.error) else Diagnosis(failure, None)
    if known is not None and not look.of_parent and repaired_later(store, context.ledger, known) is not None:
        return Diagnosis(failure, None, error_evidence(failure), code=code)  # the turn it was repaired for is gone
    if refused is not None and not look.of_parent and finder.place_moved(refused):
        return Diagnosis(failure, None, error_evidence(failure), code=BEFORE_REPAIR)
    return _refused(store, look, failure, OF_PARENT if look.of_parent else "")


class _Finder:
    """Looks everything up at once, for a person who waits for the answer."""

    def __init__(self, context: Context, store: Store, session: str, look: SessionStatus) -> None:
        self._context = context
        self._client = context.clients.of(store)
        self._store = store
        self._session = session
        self._running = look.running
        self._moved: dict[str, bool] = {}  # by the message that failed: it is asked twice

    @cached_property
    def _loaded(self) -> Session:
        return self._store.load(self._session)

    def cut_off(self) -> Diagnosis | None:
        under_way = self._client.under_way(self._store, self._session)
        found = None if under_way else self._client.cut_off(self._loaded)
        if found is None or found.kind in self._context.config.kinds:
            return found
        return self.unreadable() or replace(found, refused=None, code=LEFT_OPEN)  # its client goes on from there

    def unreadable(self) -> Diagnosis | None:
        found = self._store.unreadable(self._session, whole=True)
        return without_error.diagnose_unreadable(self._client, self._store, self._loaded) if found else None

    def still_refused(self, recorded: Diagnosis, *, places: bool) -> Diagnosis | None:
        return without_error.still_refused(self._client, self._store, self._loaded, recorded, places=places)

    def repaired(self, failure: Failure) -> bool:
        return stored_repair(self._store, self._context.ledger, failure) is not None

    def repaired_later(self, recorded: Diagnosis) -> bool:
        return repaired_later(self._store, self._context.ledger, recorded) is not None

    def place_moved(self, recorded: Diagnosis) -> bool:
        message = recorded.failure.message
        if message not in self._moved:
            self._moved[message] = place_moved(self._client, self._store, self._context.ledger, recorded)
        return self._moved[message]

    def as_meant(self, recorded: Diagnosis) -> Diagnosis:
        return as_meant(self._client, self._store, recorded)

    def ids_started_again(self) -> Diagnosis | None:
        return self._client.ids_started_again(self._store, self._session, self._context.clock())

    def unsendable(self, failure: Failure | None) -> Diagnosis | None:
        return without_error.diagnose_unsendable(self._client, self._store, self._loaded, failure)

    def hidden(self) -> Diagnosis | None:
        return without_error.diagnose_hidden(self._client, self._store, self._session)

    def unanswered(self) -> Diagnosis | None:
        if self._running and self._client.under_way(self._store, self._session):
            return None
        there = self._client, self._store, self._loaded
        found = without_error.diagnose_unanswered(*there) or without_error.diagnose_stopped(*there)
        asked = found.failure.time if found is not None else 0
        return None if 0 <= self._context.now_ms - asked < _UNDER_WAY_MS else found


def _refused(store: Store, look: SessionStatus, failure: Failure, otherwise: str = "") -> Diagnosis:
    """Diagnose an error of no kind in the newest answer: it is not about the history, or (`otherwise`: the code for
    that) nobody knows its words.
    """
    about = other_cause(failure.error)
    unknown = otherwise or (OF_SUBAGENT if _asker_went_on(store, failure) else REFUSED)
    if not about and unknown == REFUSED and _broke_off(look, failure):
        about = _BROKE_OFF
    evidence = {**error_evidence(failure), "says": excerpt(failure.error), "about": about or ""}
    code = ELSEWHERE if about else unknown
    return Diagnosis(failure, None, evidence, code=code)


def failed_since(store: Store, found: Diagnosis, since_ms: float) -> Diagnosis | None:
    """Diagnose what the newest prompt failed for, where that is not the history and came after a moment: of a session
    that was repaired then, it is what its user has to see to. None where nothing did.
    """
    look = store.look(found.failure.session)
    failure = look.failure
    if failure is None or look.newer or look.kept is not None or failure.message == found.failure.message:
        return None
    told = _refused(store, look, failure)
    return told if told.code == ELSEWHERE and failure.time >= since_ms else None


def _broke_off(look: SessionStatus, failure: Failure) -> bool:
    """Whether what failed is an answer that had begun: the provider took the history. Not where a summary failed, which
    the client asks for anew, nor where the words may be of a kind or speak of what the context takes: that may be full.
    Nor where the answer before it broke off alike: that is no accident.
    """
    error = failure.error
    if not failure.begun or failure.of_summary or look.broke_off_alike:
        return False
    return error.kind is None and not candidates(error) and not speaks_of_length(error)


def hangs_on_asker(store: Store, diagnosis: Diagnosis) -> bool:
    """Whether a diagnosis holds only until the session goes on that asked this one, a subagent that is refused for an
    unknown reason.
    """
    return diagnosis.reason == REFUSED and is_of_subagent(store, diagnosis.failure.session, unknown=True)


def _asker_went_on(store: Store, failure: Failure) -> bool:
    """Whether it failed in a subagent, and the session that asked it is known to have done anything since."""
    parent = store.about(failure.session).parent
    try:
        look = store.look(parent) if parent is not None else SessionStatus()
    except StoreError:  # something is wrong with that one
        return False
    return max(look.last_answer, look.running, look.failure.time if look.failure else 0) > failure.time
