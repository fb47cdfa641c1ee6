"""What is to be done about a session that was written to: nothing, look again, or recover."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from recoveryd.clients.base import Look, Store
from recoveryd.clients.opencode.holders import Holders
from recoveryd.clients.opencode.server import Client
from recoveryd.clients.opencode.silent import cut_off, ids_started_again, unreadable, unsendable
from recoveryd.clients.opencode.unsendable import provider_spoke
from recoveryd.clients.opencode.versions import forms_of
from recoveryd.clients.quiet import SETTLE_S, until_quiet
from recoveryd.core.bounded import note
from recoveryd.core.kinds import CLEARED_BY_PROMPT, OPEN_TURNS
from recoveryd.core.model import Failure, Kind
from recoveryd.core.silence import Silence
from recoveryd.diagnose.diagnosis import tries
from recoveryd.diagnose.guard import Admit, GiveUp, decide
from recoveryd.heal.book import state_of
from recoveryd.ledger.ledger import Handled, Ledger
from recoveryd.providers.sentences.classify import classify
from recoveryd.providers.version import VERSION
from recoveryd.settings.load import Config

_SOON_S = 0.001
_READ_S = 60.0
GRACE_S = 1.0  # a prompt without an answer may be one that is about to be sent


class Next(StrEnum):
    NOTHING = "nothing"
    AGAIN = "again"  # at the next sweep, or after `wait` seconds
    TOO_OLD = "too_old"  # stuck, but for too long to be news
    RECOVER = "recover"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`wait`: seconds until a look is worth while, 0 for the next sweep; `state`: what the verdict hangs on;
    `handled`: what was known to have become of the failure.
    """

    next: Next
    wait: float = 0.0
    reason: str = ""
    failure: Failure | None = None
    kind: Kind | None = None
    state: str = ""
    handled: Handled | None = None
    answered: int = 0  # `Look.last_answer`


_NOTHING = Verdict(Next.NOTHING)
_AGAIN = Verdict(Next.AGAIN)


class Triage:
    """Judges sessions. `say(store id, reason)` hears why a whole store is left alone."""

    def __init__(
        self,
        ledger: Ledger,
        config: Config,
        say: Callable[[str, str], object],
        client: Client,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._config = config
        self._say = say
        self._clock = clock
        self._client = client
        self._holders = Holders(config.interrupted_minutes, clock)
        self._read: dict[tuple[str, str], float] = {}  # when the parts of a session were last looked at
        self._sound: dict[tuple[str, str], str] = {}  # sessions by the newest message up to which they can be sent

    def judge(self, store: Store, session: str) -> Verdict:
        """What to do about a session now. Errors of the store pass through."""
        look = store.look(session)
        failure, kind = look.failure, classify(look.failure.error) if look.failure else None
        silent = False
        if look.newer or (kind is None and (failure is None or not provider_spoke(failure))):
            found = self._silent(store, session, look)
            if isinstance(found, Silence):
                failure, kind, silent = found.failure, found.kind, True
            elif kind is None or found.wait:
                return found
        elif kind is None:  # refused for something else
            found = self._unreadable(store, session, failure.time if failure else 0) or _NOTHING
            if isinstance(found, Verdict):
                return found
            failure, kind, silent = found.failure, found.kind, True
        if failure is None or kind is None:
            return _NOTHING
        now = self._clock()
        if failure.time < (now - self._config.lookback_hours * 3600) * 1000:
            return Verdict(Next.TOO_OLD)
        if look.running and kind not in OPEN_TURNS:
            return _AGAIN  # what becomes of the turn touches the session again
        reason = store.live()
        if reason is not None:
            self._say(store.id, reason)
            return _AGAIN
        stamp = store.stamp(session)
        if until_quiet(stamp, SETTLE_S, self._clock()):
            self._client.prepare()  # it takes a moment, and here is one
            return Verdict(Next.AGAIN, until_quiet(stamp, SETTLE_S, self._clock()) or _SOON_S)
        if look.newer and not silent and self._handled(failure):
            return _NOTHING  # nothing was to be done about it, and another prompt is on its way
        return self._guarded(store, failure, kind, look.last_answer, state_of(stamp, self._config))

    def _silent(self, store: Store, session: str, look: Look) -> Silence | Verdict:
        """What a session is stuck on that no provider refused, if it is; else the verdict on it."""
        if look.running and not look.silent:
            return (
                self._cut_off(store, session) or self._unreadable(store, session, look.running, running=True) or _AGAIN
            )
        quiet = _AGAIN if look.running else _NOTHING
        mark = f"{look.newest_user} {look.running} {look.failure.message if look.failure else ''}"
        if not look.waits:
            return self._unreadable(store, session, look.last_answer) or quiet
        if self._sound.get((store.id, session)) == mark:
            return quiet
        wait = until_quiet(store.stamp(session), GRACE_S, self._clock())
        if wait:
            return Verdict(Next.AGAIN, wait)
        found = self._explained(store, session, look)
        if found is None:
            note(self._sound, (store.id, session), mark)
            return quiet
        return found

    def _explained(self, store: Store, session: str, look: Look) -> Silence | None:
        if look.newest_user is not None and not look.running:
            found = ids_started_again(store, session, self._client, self._clock())
            if found is not None and found.ignored:
                return found
        failure = None if look.newer else look.failure
        return unsendable(store.load(session), failure, forms_of(store, self._client, session))

    def _unreadable(self, store: Store, session: str, since: int, *, running: bool = False) -> Silence | Verdict | None:
        """A part that the client can't read, where no prompt tells: one that names no model fails before it is stored.

        `since` (ms) is when something last came of a prompt. While a turn runs there is a look a minute at the most.
        """
        key, now = (store.id, session), self._clock()
        too_old = since < (now - self._config.lookback_hours * 3600) * 1000
        if too_old or (running and 0 <= now - self._read.get(key, 0.0) < _READ_S):
            return None
        if not store.unreadable(session):
            note(self._read, key, now)
            return None
        wait = until_quiet(store.stamp(session), GRACE_S, now)
        return (
            Verdict(Next.AGAIN, wait)
            if wait
            else unreadable(store.load(session), forms_of(store, self._client, session))
        )

    def _cut_off(self, store: Store, session: str) -> Silence | None:
        """A turn whose client is gone, if such are to be ended."""
        if Kind.INTERRUPTED_TURN not in self._config.kinds or self._holders.under_way(store, session):
            return None
        return cut_off(store.load(session))

    def _handled(self, failure: Failure) -> Handled | None:
        return self._ledger.handled(failure.store, failure.session, failure.message)

    def _guarded(self, store: Store, failure: Failure, kind: Kind, answered: int, state: str) -> Verdict:
        handled = self._handled(failure)
        verdict = decide(
            failure,
            handled,
            tries=tries(store, self._ledger, failure, answered),
            max_retries=self._config.max_retries,
            session_state=state,
            rules_version=VERSION,
            now=self._clock(),
            lookback_hours=self._config.lookback_hours,
            tried="told to go on" if kind in CLEARED_BY_PROMPT else "repaired",
        )
        if isinstance(verdict, Admit):
            return Verdict(Next.RECOVER, failure=failure, kind=kind, state=state, handled=handled)
        what = Next.GIVE_UP if isinstance(verdict, GiveUp) else Next.NOTHING
        return Verdict(what, reason=verdict.reason, failure=failure, kind=kind, state=state, answered=answered)
