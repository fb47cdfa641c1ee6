"""What a session is stuck on: one tree of questions, the cheapest first. Pure: who looks things up is handed in."""

from __future__ import annotations

from typing import Protocol

from recoveryd.clients.base import Look
from recoveryd.core.model import Failure
from recoveryd.core.silence import Silence


class Finder(Protocol):
    """Looks up one cause each; None when it is not that. What raises ends the tree."""

    def cut_off(self) -> Silence | None:
        """A turn that was never ended, and can't be under way."""

    def unreadable(self) -> Silence | None:
        """A part that the client can't read."""

    def ids_started_again(self) -> Silence | None:
        """Ids because of which the client takes new prompts for old ones, or will."""

    def unsendable(self, failure: Failure | None) -> Silence | None:
        """A part for which the client can't build a request. `failure`: as it was recorded, if it was."""

    def unanswered(self) -> Silence | None:
        """A prompt that nothing came of, and that nothing else explains."""


def explain(look: Look, recorded: Silence | None, find: Finder, *, spoke: bool) -> Silence | None:
    """What keeps a session from going on; None when nothing does.

    `recorded`: the failure that stands in it, if its kind is known; `spoke`: whether a provider spoke in it.
    """
    if recorded is not None and not look.newer:
        return recorded
    if look.running and not look.silent:
        return find.cut_off() or find.unreadable() or recorded
    if look.newer or (look.failure is not None and not spoke):
        found = _silent(look, recorded, find)
    else:
        found = None if look.running else find.ids_started_again()
    return found or find.unreadable()


def _silent(look: Look, recorded: Silence | None, find: Finder) -> Silence | None:
    """Of a prompt that no provider is known to have answered or refused."""
    old = None if look.running else find.ids_started_again()
    if old is not None and old.ignored:
        return old
    found = find.unsendable(None if look.newer else look.failure) or recorded or old
    return found if found is not None or look.failure is not None else find.unanswered()
