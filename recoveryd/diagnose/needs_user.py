"""List the sessions that need their user: they are stuck, and nobody wants them left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from recoveryd.clients import SessionStatus, Stamp, Store, is_abandoned, is_store_of, is_there
from recoveryd.core import Entry, Outcome, RecoverydError
from recoveryd.diagnose.assessment import Assessment, assess
from recoveryd.diagnose.context import Context
from recoveryd.diagnose.diagnosis import hangs_on_asker
from recoveryd.ledger import Upkeep
from recoveryd.settings import ignored_mark

Found: TypeAlias = Assessment | None
_Known: TypeAlias = dict[tuple[str, str], tuple[tuple[object, ...], Found]]  # sessions, and what they were like then
_UNHEALED = frozenset(Outcome) - {Outcome.HEALED}
_RESTING_MS = 600_000  # a prompt that nothing came of for so long, while no turn runs, waits for its user


@dataclass(frozen=True, slots=True)
class Needing:
    """A session that needs its user. `recovery`: its newest one, which did not heal it; None where there was none."""

    store: str
    session: str
    title: str
    recovery: str | None


class NeedsUser:
    """Finds the sessions that need their user. One object is to be asked again and again: what did not change is not
    read twice.
    """

    def __init__(self) -> None:
        self._known: _Known = {}
        self._before: _Known = {}
        self._listed: set[str] = set()  # those that could be
        self.unlisted: dict[str, str] = {}  # stores that could not be listed at the last call, and why

    def find(self, context: Context, stores: Iterable[Store]) -> list[Needing]:
        """List the stuck sessions that `scan` lists, of those written to within `lookback_hours` and of those whose
        newest recovery did not heal them.

        Of a store that can't be listed, or is not there, nothing is said (`unlisted`).
        """
        self.unlisted, self._listed = {}, set()
        known = Upkeep(context.ledger).newest(frozenset(Outcome))
        self._before, self._known = self._known, {}  # what is not there any more is forgotten
        return [needing for store in stores for needing in self._in_store(context, store, known)]

    def count(self, context: Context, stores: Iterable[Store]) -> dict[str, int | None]:
        """Count for each of the stores, by its id, what `find` lists. None: it can't be listed, so nobody knows."""
        found = Counter(needing.store for needing in self.find(context, stores))
        return {**{name: found[name] for name in self._listed}, **dict.fromkeys(self.unlisted)}

    def _in_store(self, context: Context, store: Store, known: Iterable[Entry]) -> Iterator[Needing]:
        newest = {entry.session: entry for entry in known if is_store_of(store, entry.store)}
        try:
            if is_abandoned(store):
                return
            recent = set(store.written_since(context.since_ms))
            unhealed = [session for session, entry in newest.items() if entry.outcome in _UNHEALED]
            of_old = {session for session in unhealed if is_there(store, session)}
        except RecoverydError as error:
            self.unlisted[store.id] = error.in_a_line
            return
        self._listed.add(store.id)
        alone = ignored_mark(context.state_dir)
        for session in sorted(recent | of_old):
            entry = newest.get(session)
            found = self._look(context, store, session, entry, alone)
            if found is not None and found.stuck and not found.ignored:
                yield Needing(store.id, session, found.title, None if entry is None else entry.id)

    def _look(self, context: Context, store: Store, session: str, newest: Entry | None, ignored: str) -> Found:
        key, stamp = (store.id, session), _stamp(store, session)
        state = stamp.digest if stamp is not None else ""
        basis = state, newest and (newest.id, newest.outcome), context.config.digest, ignored
        known = self._before.get(key)
        if state and known is not None and known[0] == basis:
            self._known[key] = known
            return known[1]
        look = _looked_at(store, session)
        found = assess(context, store, session, look)
        resting = stamp is not None and context.now_ms - stamp.newest_mtime_ns / 1e6 > _RESTING_MS
        if state and look is not None and _lasts(context, store, session, look, found, resting=resting):
            self._known[key] = basis, found
        return found


def _stamp(store: Store, session: str) -> Stamp | None:
    try:
        return store.stamp(session)
    except RecoverydError:
        return None


def _looked_at(store: Store, session: str) -> SessionStatus | None:
    try:
        return store.look(session)
    except Exception:  # the assessment tells what is wrong with it
        return None


def _lasts(context: Context, store: Store, session: str, look: SessionStatus, found: Found, *, resting: bool) -> bool:
    """Whether an assessment holds until something is written. What waits for an answer may get stuck by itself (a
    prompt not any more once it is `resting`), a client that has it open may end, what can't be read now may be read
    later, and the session that asked a refused subagent may go on.
    """
    if look.newer and (look.running or not resting):
        return False
    if found is None:
        return True
    late = found.late and _open(context, store, session)
    return not (late or found.trouble or hangs_on_asker(store, found.diagnosis))


def _open(context: Context, store: Store, session: str) -> bool:
    """Whether a client may have a session open."""
    try:
        return context.clients.of(store).under_way(store, session) is not None
    except RecoverydError:
        return True
