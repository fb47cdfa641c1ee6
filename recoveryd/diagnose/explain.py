"""What a session is stuck on: one tree of questions, the cheapest first. Pure: who looks things up is handed in."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from recoveryd.clients import Look
from recoveryd.core import Failure, Json, Silence
from recoveryd.providers import classify, provider_of, turned_away


class Finder(Protocol):
    """Looks up one cause each; None when it is not that. What raises ends the tree."""

    def cut_off(self) -> Silence | None:
        """A turn that was never ended, and can't be under way."""

    def unreadable(self) -> Silence | None:
        """A part that the client can't read."""

    def repaired(self, failure: Failure) -> bool:
        """Whether a failure was repaired, and what was written then stands: what else is broken came since."""

    def ids_started_again(self) -> Silence | None:
        """Ids because of which the client takes new prompts for old ones, or will."""

    def unsendable(self, failure: Failure | None) -> Silence | None:
        """A part for which the client can't build a request. `failure`: as it was recorded, if it was."""

    def hidden(self) -> Silence | None:
        """Messages that are no longer sent since a compaction failed: nobody is told of it."""

    def unanswered(self) -> Silence | None:
        """A prompt that nothing came of, and that nothing else explains."""


def what_stands(look: Look) -> tuple[Look, Silence | None]:
    """Say which failure the next prompt would meet again: the look with that one, and what is known if its kind is.

    None where another provider was asked since. Who is turned away before anybody looks at the history, say
    by a rate limit, takes no refusal back: the one before it stands.
    """
    if look.failure is None:
        return look, None
    failures = (look.failure, *look.earlier)
    said = ((one, classify(one.error)) for one in failures)
    told = ((one, refused) for one, refused in said if refused is not None or not turned_away(one.error))
    failure, refused = next(told, (look.failure, None))
    if refused is None or (failure is not look.failure and _asks_another(look, failure)):
        failure, refused = look.failure, None
    if _asks_another(look, failure):
        return replace(look, failure=None), None
    return replace(look, failure=failure), Silence(failure, refused.kind, recorded(failure)) if refused else None


def recorded(failure: Failure) -> Json:
    """What of an error tells without its words."""
    return {"message": failure.message, "error": failure.error.name or None, "status": failure.error.status}


def _asks_another(look: Look, failure: Failure) -> bool:
    """Whether the newest prompt goes where a failure tells nothing: to another provider, or to other rules there."""
    provider, model = look.asked
    if not (provider and failure.provider) or look.asked == (failure.provider, failure.model):
        return False
    rules = provider_of(failure)
    return provider != failure.provider or rules is None or provider_of(replace(failure, model=model)) is not rules


def explain(look: Look, recorded: Silence | None, find: Finder, *, spoke: bool) -> Silence | None:
    """What keeps a session from going on; None when nothing does.

    `recorded`: the failure that stands in it, if its kind is known; `spoke`: whether a provider spoke in it.
    """
    if recorded is not None and not look.newer:
        broken = find.unreadable() if find.repaired(recorded.failure) else None
        return broken or recorded
    if look.running and not look.silent:
        return find.cut_off() or find.unreadable() or recorded
    if look.newer or (look.failure is not None and not spoke):
        found = _silent(look, recorded, find)
    else:
        found = None if look.running else find.ids_started_again()
    return found or find.unreadable() or (None if look.running else find.hidden())


def _silent(look: Look, recorded: Silence | None, find: Finder) -> Silence | None:
    """Of a prompt that no provider is known to have answered or refused."""
    old = None if look.running else find.ids_started_again()
    if old is not None and old.ignored:
        return old
    found = find.unsendable(None if look.newer else look.failure) or recorded or old
    return found if found is not None or look.failure is not None else find.unanswered()
