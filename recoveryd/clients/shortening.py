"""What a client knows about the length of its sessions: the port of those whose sessions can be made shorter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from recoveryd.clients.store import Store
from recoveryd.core import Change, Diagnosis, Edits, Failure, Marks, RecordedError, Session, Shortener, Usage, Wire


def _as_it_is(wire: Wire) -> Wire:
    return wire


@dataclass(frozen=True, slots=True)
class Shortening:
    """What a client knows of a session's length beside its refusal, and who makes it shorter.

    `logged`: the refusal of the conversation as the client's log has it, where the store does not; `earlier`: what the
    same model refused before, newest first; `context`: the limit by the client's settings, 0 where they don't say.
    `says_client`: what is stored of the refusal are the client's own words; `unlogged`: its log may yet tell others.
    `unanswered`: a client that listens was too busy to tell its settings. `without_base`: what was refused had neither
    system nor tools. `cleared_since`: outputs were cleared since the refusal. `by_itself`: the edits that the client is
    about to make. `drops_bound`: it has the provider drop thinking that no longer fits. `sent`: the tokens of the next
    request, where a repair told them; `left`: those of the newest request behind a compaction since the prompt that
    failed, where an answer tells them. `weighed` makes the wire that shows also what is sent and nothing is judged by.
    `wholes`: the texts that edits cut, by the file that is to hold them.
    """

    editor: Callable[[Session], Shortener]
    usages: Sequence[Usage]
    wholes: Callable[[Session, Edits], Mapping[Path, str]]
    logged: RecordedError | None = None
    says_client: bool = False
    unlogged: bool = False
    earlier: Sequence[RecordedError] = ()
    context: int = 0
    unanswered: bool = False
    without_base: bool = False
    cleared_since: bool = False
    by_itself: Edits = ()
    drops_bound: bool = False
    sent: int = 0
    left: int = 0
    weighed: Callable[[Wire], Wire] = _as_it_is

    def after_repair(self, sent: int) -> Shortening:
        """Return what is known of a session that a repair left `sent` tokens of, and where nothing was answered since:
        what it cleared is counted in them.
        """
        return replace(self, sent=sent, cleared_since=False, without_base=False)


@runtime_checkable
class CanShorten(Protocol):
    """A client whose sessions can be made shorter."""

    def shortening(self, store: Store, session: Session, failure: Failure, marks: Marks) -> Shortening:
        """Return what is known of the length of `session`. Errors of the store pass."""

    def hidden(self, store: Store, session: str) -> Diagnosis | None:
        """Find out whether messages are no longer sent since a compaction failed. Errors of the store pass."""

    def put_beside(self, store: Store, changes: Sequence[Change]) -> Mapping[Path, str]:
        """Return the texts that a repair cut, by the file that it put each into; `changes` are all that it wrote."""
