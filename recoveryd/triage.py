"""What is to be done about a session that was written to: nothing, look again, or recover."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from recoveryd.classify import classify
from recoveryd.client import Client
from recoveryd.config import Config
from recoveryd.crash import crashed, provider_spoke
from recoveryd.forms import forms_of
from recoveryd.guard import Admit, GiveUp, decide
from recoveryd.ledger import Handled, Ledger
from recoveryd.model import Entry, Failure, Kind, Outcome
from recoveryd.quiet import SETTLE_S, until_quiet
from recoveryd.recent import note
from recoveryd.resume import CLEARED_BY_PROMPT
from recoveryd.rules import VERSION
from recoveryd.stores.base import Look, Store, state

_SOON_S = 0.001
GRACE_S = 1.0  # a prompt without an answer may be one that is about to be sent


class Next(StrEnum):
    NOTHING = "nothing"
    AGAIN = "again"  # at the next sweep, or after `wait` seconds
    TOO_OLD = "too_old"  # stuck, but for too long to be news
    RECOVER = "recover"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`wait`: seconds until a look is worth while, 0 for the next sweep; `state`: what the verdict hangs on."""

    next: Next
    wait: float = 0.0
    reason: str = ""
    failure: Failure | None = None
    kind: Kind | None = None
    state: str = ""


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
        self._sound: dict[tuple[str, str], str] = {}  # sessions by the newest message up to which they can be sent

    def judge(self, store: Store, session: str) -> Verdict:
        """What to do about a session now. Errors of the store pass through."""
        look = store.look(session)
        failure, kind = look.failure, classify(look.failure.error) if look.failure else None
        if look.newer or (kind is None and (failure is None or not provider_spoke(failure))):
            found = self._crash(store, session, look)
            if isinstance(found, Failure):
                failure, kind = found, Kind.UNSENDABLE_PART
            elif kind is None or found.wait:
                return found
        if failure is None or kind is None:
            return _NOTHING
        now = self._clock()
        if failure.time < (now - self._config.lookback_hours * 3600) * 1000:
            return Verdict(Next.TOO_OLD)
        if look.running and kind is not Kind.UNSENDABLE_PART:
            return _AGAIN  # what becomes of the turn touches the session again
        reason = store.live()
        if reason is not None:
            self._say(store.id, reason)
            return _AGAIN
        stamp = store.stamp(session)
        if until_quiet(stamp, SETTLE_S, self._clock()):
            self._client.prepare()  # it takes a moment, and here is one
            return Verdict(Next.AGAIN, until_quiet(stamp, SETTLE_S, self._clock()) or _SOON_S)
        if look.newer and kind is not Kind.UNSENDABLE_PART and self._handled(failure):
            return _NOTHING  # nothing was to be done about it, and another prompt is on its way
        return self._guarded(store, failure, kind, look.last_answer / 1000, stamp.digest)

    def _crash(self, store: Store, session: str, look: Look) -> Failure | Verdict:
        """The failure of a client that can't send a part; else the verdict on a session that no provider refused."""
        quiet = _AGAIN if look.running else _NOTHING
        mark = f"{look.newest_user} {look.running} {look.failure.message if look.failure else ''}"
        if not look.waits or self._sound.get((store.id, session)) == mark:
            return quiet
        wait = until_quiet(store.stamp(session), GRACE_S, self._clock())
        if wait:
            return Verdict(Next.AGAIN, wait)
        failure = None if look.newer else look.failure
        found = crashed(store.load(session), failure, forms_of(store, self._client, session))
        if found is None:
            note(self._sound, (store.id, session), mark)
            return quiet
        return found

    def _handled(self, failure: Failure) -> Handled | None:
        return self._ledger.handled(failure.store, failure.session, failure.message)

    def _guarded(self, store: Store, failure: Failure, kind: Kind, since: float, state: str) -> Verdict:
        verdict = decide(
            failure,
            self._handled(failure),
            attempts=self._ledger.attempts(store.id, failure.session, since),
            gave_up=self._ledger.gave_up(store.id, failure.session, since),
            max_retries=self._config.max_retries,
            session_state=state,
            rules_version=VERSION,
            now=self._clock(),
            lookback_hours=self._config.lookback_hours,
            tried="told to go on" if kind in CLEARED_BY_PROMPT else "repaired",
        )
        if isinstance(verdict, Admit):
            return Verdict(Next.RECOVER, failure=failure, kind=kind, state=state)
        what = Next.GIVE_UP if isinstance(verdict, GiveUp) else Next.NOTHING
        return Verdict(what, reason=verdict.reason, failure=failure, kind=kind, state=state)


def stuck(store: Store, session: str, client: Client) -> tuple[Failure, Kind] | None:
    """What a session is stuck on, whenever that was and whatever was done about it; None when it is not.

    Other errors (a rate limit, an account) are none. Errors of the store pass through.
    """
    look = store.look(session)
    failure, kind = look.failure, classify(look.failure.error) if look.failure is not None else None
    told = kind is not None or (failure is not None and provider_spoke(failure))
    if look.waits and (look.newer or not told):
        found = crashed(store.load(session), None if look.newer else failure, forms_of(store, client, session))
        if found is not None:
            return found, Kind.UNSENDABLE_PART
    return None if failure is None or kind is None else (failure, kind)


def standing(store: Store, ledger: Ledger, failure: Failure) -> Entry | None:
    """The repair of this failure, if it was made and still stands: the next prompt will be accepted."""
    for entry in ledger.history(50, failure.session):
        if (entry.store, entry.message, entry.outcome) == (store.id, failure.message, Outcome.HEALED):
            changes = ledger.changes(entry.id)
            if changes and all(state(store, change) == "after" for change in changes):
                return entry
    return None
