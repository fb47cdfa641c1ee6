"""Find what a session is stuck on by one tree of questions, the cheapest first. Pure: what looks things up is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from recoveryd.clients import SessionStatus
from recoveryd.core import (
    KINDS,
    Diagnosis,
    Failure,
    FormError,
    Kind,
    RecordedError,
    Refused,
    error_evidence,
    excerpt,
)
from recoveryd.providers import classify, other_cause, provider_of, size_of, turned_away


class Finder(Protocol):
    """Answers the questions of the tree, one a method; None: that is not the cause. What a method raises ends the
    search; FormError leaves it to the recorded failure.
    """

    def cut_off(self) -> Diagnosis | None:
        """Find a turn that was never ended, and can't be under way."""

    def unreadable(self) -> Diagnosis | None:
        """Find a part that the client can't read."""

    def still_refused(self, recorded: Diagnosis, *, places: bool) -> Diagnosis | None:
        """Find what would be refused again, of what a failure tells that is not there any more; `places`: what it says
        of places holds for what is left.
        """

    def repaired(self, failure: Failure) -> bool:
        """Whether a failure was repaired, and what was written then is still stored: any other fault came later."""

    def repaired_later(self, recorded: Diagnosis) -> bool:
        """Whether what a failure tells of was repaired after it, for another one: what is stored now it never met."""

    def place_moved(self, recorded: Diagnosis) -> bool:
        """Whether another part may stand at the place that a failure names than did then."""

    def as_meant(self, recorded: Diagnosis) -> Diagnosis:
        """Return a failure as what it is of, where that is an answer at the end of the request, stored nowhere."""

    def ids_started_again(self) -> Diagnosis | None:
        """Find ids because of which the client takes new prompts for old ones, or will."""

    def unsendable(self, failure: Failure | None) -> Diagnosis | None:
        """Find a part that the client can't build a request with. `failure`: as it was recorded, if it was."""

    def hidden(self) -> Diagnosis | None:
        """Find messages that are no longer sent since a compaction failed: the client tells nobody."""

    def unanswered(self) -> Diagnosis | None:
        """Find a prompt that nothing came of, where nothing else explains it."""


def standing_failure(look: SessionStatus) -> tuple[SessionStatus, Diagnosis | None]:
    """Begin the tree: choose the recorded failure that the next prompt would meet again: the look with that one, and
    its diagnosis.

    No failure where another provider was asked since; no diagnosis where its words are not known. A request that is
    turned away before its history is read, say by a rate limit, leaves the refusal before it in force; one of unknown
    words as far as another one was refused before that.
    """
    if look.failure is None:
        return look, None
    failures = (look.failure, *look.earlier)
    said = ((one, classify(one.error)) for one in failures)
    told = ((one, refused) for one, refused in said if refused is not None or not turned_away(one.error))
    failure, refused = next(told, (look.failure, None))
    unknown = failure is not look.failure and refused is None and _is_unknown(failure.error)
    still = refused is not None or (unknown and any(older is not None for _, older in said))
    if not still or (failure is not look.failure and _asks_another(look, failure, refused)):
        failure, refused = look.failure, None
    if _asks_another(look, failure, refused):
        return replace(look, failure=None), None
    if refused is None:
        return replace(look, failure=failure), None
    evidence = error_evidence(failure)
    if not refused.said:  # the kind is the client's own name for it: its user may know the words
        evidence = {**evidence, "says": excerpt(failure.error)}
    return replace(look, failure=failure), Diagnosis(failure, refused, evidence)


def _is_unknown(error: RecordedError) -> bool:
    """Whether a provider answered in words that nobody knows."""
    return error.answered and other_cause(error) is None


def of_length(error: RecordedError) -> bool:
    """Whether by a provider's words the conversation is too long."""
    refused, size = classify(error), size_of(error)
    known = refused is not None and refused.kind is Kind.CONTEXT_OVERFLOW
    return known or ((size.limit > 0 or size.by_bytes) and not turned_away(error))


def _asks_another(look: SessionStatus, failure: Failure, refused: Refused | None) -> bool:
    """Whether the newest prompt asks another provider than failed, or one model of it that has other rules; where the
    conversation was too long for a model, any other that its user chose.
    """
    provider, model = look.asked
    if not (provider and failure.provider) or look.asked == (failure.provider, failure.model):
        return False
    too_long = refused is not None and KINDS[refused.kind].shortened and not failure.of_summary
    if too_long and look.chosen not in ("", failure.model):
        return True
    rules = provider_of(failure)
    return (
        provider != failure.provider
        or rules is None
        or provider_of(replace(failure, model=model, called="")) is not rules
    )


def find_cause(look: SessionStatus, recorded: Diagnosis | None, find: Finder) -> Diagnosis | None:
    """Ask one question after the other until one tells what keeps a session from going on; None when none does.

    `recorded`: the diagnosis of the recorded failure, if its words are known.
    """
    if look.endless is not None or look.of_parent:
        return look.endless  # of what a subagent was sent, the half that stands in its parent can't be judged here
    try:
        return _by_what_is_stored(look, recorded, find)
    except FormError:  # that can't be judged: the recorded failure alone tells, where nothing came of a prompt since
        gone = look.kept is not None or (look.running and not look.silent)
        return None if gone else recorded


def _by_what_is_stored(look: SessionStatus, recorded: Diagnosis | None, find: Finder) -> Diagnosis | None:
    """Go on with the tree where the client's own doing is not the cause."""
    recorded = find.as_meant(recorded) if recorded is not None else None
    if look.kept is not None:
        refused = None
        if recorded is not None:
            refused = find.still_refused(recorded, places=not (look.copied or find.place_moved(recorded)))
        recorded = refused or (find.unsendable(look.failure) if _not_answered(look) else None)
        if recorded is None:
            return find_cause(*standing_failure(look.kept), find)
    elif recorded is not None and (find.repaired_later(recorded) or find.place_moved(recorded)):
        recorded = find.still_refused(recorded, places=False)
    if recorded is not None and not look.newer:
        broken = find.unreadable() if find.repaired(recorded.failure) else None
        return broken or recorded
    if look.running and not look.silent:
        return find.cut_off() or find.unreadable()  # what came of the answer proves that nothing older is refused
    if look.newer or _not_answered(look):
        found = _unanswered(look, recorded, find)
    else:
        found = None if look.running else find.ids_started_again()
    return found or find.unreadable() or (None if look.running else find.hidden())


def _not_answered(look: SessionStatus) -> bool:
    """Whether the failure is of the client's own: no provider answered with it."""
    return look.failure is not None and not look.failure.error.answered


def _unanswered(look: SessionStatus, recorded: Diagnosis | None, find: Finder) -> Diagnosis | None:
    """Find the cause where no provider is known to have answered or refused the newest prompt."""
    old = None if look.running else find.ids_started_again()
    if old is not None and old.ignored:
        return old
    found = find.unsendable(None if look.newer else look.failure) or recorded or old
    return found if found is not None or look.failure is not None else find.unanswered()
