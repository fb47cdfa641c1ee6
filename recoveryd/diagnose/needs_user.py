"""List the sessions that need their user: they are stuck, and nobody wants them left alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from recoveryd.clients import Store, is_abandoned
from recoveryd.core import Entry, Outcome, RecoverydError, keep_newest
from recoveryd.diagnose.assessment import Assessment, assess
from recoveryd.diagnose.context import Context
from recoveryd.ledger import Upkeep

_HOUR_MS = 3_600_000
_UNHEALED = frozenset(Outcome) - {Outcome.HEALED}


@dataclass(frozen=True, slots=True)
class Needing:
    """A session that needs its user. `recovery`: its newest one, which did not heal it; None where there was none."""

    store: str
    session: str
    title: str
    recovery: str | None


class NeedsUser:
    """Finds them. One object is to be asked again and again: what it found in order is not read twice."""

    def __init__(self) -> None:
        self._sound: dict[tuple[str, str], str] = {}  # sessions by what they were like then

    def find(self, context: Context, stores: Iterable[Store]) -> list[Needing]:
        """List the stuck sessions that `scan` lists, of those written to within `lookback_hours` and of those whose
        newest recovery did not heal them.

        Of a store that can't be listed, or is not there, nothing is said.
        """
        known = Upkeep(context.ledger).newest(frozenset(Outcome))
        return [needing for store in stores for needing in self._in_store(context, store, known)]

    def _in_store(self, context: Context, store: Store, known: Iterable[Entry]) -> Iterator[Needing]:
        newest = {entry.session: entry for entry in known if store.id in (entry.store, os.path.realpath(entry.store))}
        since = context.now_ms - int(context.config.lookback_hours * _HOUR_MS)
        try:
            if is_abandoned(store):
                return
            recent = set(store.written_since(since))
            of_old = {session for session, entry in newest.items() if entry.outcome in _UNHEALED and store.has(session)}
        except RecoverydError:
            return
        for session in sorted(recent | of_old):
            found = self._look(context, store, session)
            if found is not None and found.stuck and not found.ignored:
                entry = newest.get(session)
                yield Needing(store.id, session, found.title, None if entry is None else entry.id)

    def _look(self, context: Context, store: Store, session: str) -> Assessment | None:
        key, state = (store.id, session), _state(store, session)
        if state and self._sound.get(key) == state:
            return None
        found = assess(context, store, session)
        if found is None and state and _at_rest(store, session):
            keep_newest(self._sound, key, state)
        return found


def _state(store: Store, session: str) -> str:
    try:
        return store.stamp(session).digest
    except RecoverydError:
        return ""


def _at_rest(store: Store, session: str) -> bool:
    """Whether all was answered: what waits may be found stuck though nothing is written any more."""
    try:
        look = store.look(session)
    except RecoverydError:
        return False
    return look.failure is None and not look.newer
