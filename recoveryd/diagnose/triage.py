"""Decide what to do about a session that was written to: nothing, look again, or repair it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from recoveryd.clients import SETTLE_S, Quiet, SessionStatus, Store
from recoveryd.core import KINDS, Diagnosis, Failure, Kind, Outcome, keep_newest
from recoveryd.diagnose import without_error
from recoveryd.diagnose.context import Context
from recoveryd.diagnose.decision_tree import find_cause, standing_failure
from recoveryd.diagnose.earlier_repairs import (
    all_stand,
    as_refused,
    is_besides,
    repaired_later,
    unread_repair,
    vain_repairs,
)
from recoveryd.diagnose.named_places import as_meant, place_moved
from recoveryd.diagnose.retry_policy import Admit, GiveUp, decide_retry, judged_state
from recoveryd.ledger import Handled
from recoveryd.providers import VERSION

_SOON_S = 0.001
_READ_S = 60.0
GRACE_S = 1.0  # a prompt without an answer may be one that is about to be sent


class Next(StrEnum):
    """What the daemon does next about a session."""

    NOTHING = "nothing"
    AGAIN = "again"  # at the next sweep, or after `wait` seconds
    TOO_OLD = "too_old"  # stuck, but for too long to be news
    RECOVER = "recover"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do next about a session, and on what it is stuck (`diagnosis`, whose kind is known then).

    `wait`: seconds until a look is worth while, 0 for the next sweep. `state`: what the verdict depends on. `handled`:
    what had become of the failure before.
    """

    next: Next
    wait: float = 0.0
    reason: str = ""
    diagnosis: Diagnosis | None = None
    state: str = ""
    handled: Handled | None = None
    answered: int = 0  # `SessionStatus.last_answer`

    @property
    def kind(self) -> Kind | None:
        """The kind of what the session is stuck on; None where it is not."""
        return self.diagnosis.kind if self.diagnosis is not None else None


_NOTHING = Verdict(Next.NOTHING)
_AGAIN = Verdict(Next.AGAIN)


class Triage:
    """Judges sessions. `say(store id, reason)` is called where a whole store is left alone."""

    def __init__(self, context: Context, say: Callable[[str, str], object]) -> None:
        self.context = context
        self._say = say
        self.quiet = Quiet(context.clock)
        self.read: dict[tuple[str, str], float] = {}  # when the parts of a session were last looked at
        self.late: dict[tuple[str, str], str] = {}  # failures of clients that had not read the repair before it
        self.sound: dict[tuple[str, str], str] = {}  # sessions by the newest message up to which they can be sent

    def judge(self, store: Store, session: str) -> Verdict:
        """Decide what to do about a session now. Errors of the store pass."""
        context = self.context
        look, refused = standing_failure(as_refused(context.ledger, store.look(session)))
        try:
            found = find_cause(look, refused, _Finder(self, store, session, look))
        except _Later as later:
            return Verdict(Next.AGAIN, later.seconds)
        if found is None or found.kind is None:
            return _AGAIN if look.running else _NOTHING
        failure, kind = found.failure, found.kind
        late = unread_repair(context, store, found)
        if late is not None and is_besides(context.clients.of(store), found, late[0]):
            return _AGAIN  # until its client has ended
        if late is not None:
            keep_newest(self.late, (store.id, session), failure.message)
            return Verdict(Next.NOTHING, reason=f"it was repaired ({late[0].id}): {late[1]}")
        if self.late.get((store.id, session)) == failure.message:
            return _NOTHING  # the client has read the repair since, and was not prompted yet
        if failure.time < context.since_ms:
            return _NOTHING if self.repaired(store, failure) else Verdict(Next.TOO_OLD)
        if look.running and not (KINDS[kind].open_turn or KINDS[kind].stopped):
            return _AGAIN  # what becomes of the turn touches the session again
        reason = store.live()
        if reason is not None:
            self._say(store.id, reason)
            return _AGAIN
        stamp = store.stamp(session)
        if KINDS[kind].stopped:  # it never gets quiet by itself; and once is enough
            told = self._handled(failure) is not None
            state = judged_state(stamp, context.config)
            return _NOTHING if told else Verdict(Next.RECOVER, diagnosis=found, state=state)
        if self.quiet.wait((store.id, session), stamp, SETTLE_S):
            context.clients.of(store).server.prepare()  # it takes a moment, and here is one
            return Verdict(Next.AGAIN, self.quiet.wait((store.id, session), stamp, SETTLE_S) or _SOON_S)
        if look.newer and (found is refused or KINDS[kind].cleared_by_prompt) and self._handled(failure):
            return _NOTHING  # nothing was to be done about it, and another prompt is on its way
        return self._guarded(store, found, kind, look.last_answer, judged_state(stamp, context.config))

    def repaired(self, store: Store, failure: Failure) -> bool:
        """Whether a failure was repaired, and all that was written for it stands."""
        handled = self._handled(failure)
        return (
            handled is not None and handled.outcome is Outcome.HEALED and all_stand(store, self.context.ledger, failure)
        )

    def _handled(self, failure: Failure) -> Handled | None:
        return self.context.ledger.handled(failure.store, failure.session, failure.message)

    def _guarded(self, store: Store, found: Diagnosis, kind: Kind, answered: int, state: str) -> Verdict:
        context, failure = self.context, found.failure
        handled = self._handled(failure)
        # What broke behind a repair that is still stored has the same message, and is new.
        new = KINDS[kind].by_client and self.repaired(store, failure)
        verdict = decide_retry(
            None if new else handled,
            tries=vain_repairs(context, store, failure, answered),
            undone=context.ledger.taken_back(failure.store, failure.session, answered, failure.message),
            max_retries=context.config.max_retries,
            session_state=state,
            rules_version=VERSION,
            kind=kind,
        )
        if isinstance(verdict, Admit):
            return Verdict(Next.RECOVER, diagnosis=found, state=state, handled=handled)
        what = Next.GIVE_UP if isinstance(verdict, GiveUp) else Next.NOTHING
        return Verdict(what, reason=verdict.reason, diagnosis=found, state=state, answered=answered)


class _Later(Exception):
    """The client may still write: look again after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class _Finder:
    """Looks for what a daemon repairs by itself: once nobody writes any more, and nothing twice. Raises `_Later`."""

    def __init__(self, triage: Triage, store: Store, session: str, look: SessionStatus) -> None:
        self._triage = triage
        self._context = triage.context
        self._client = triage.context.clients.of(store)
        self._store = store
        self._session = session
        self._look = look
        self._key = store.id, session

    def cut_off(self) -> Diagnosis | None:
        """Look for it only where such turns are to be ended."""
        if not any(KINDS[kind].left_open for kind in self._context.config.kinds):
            return None
        if self._client.under_way(self._store, self._session):
            return None
        return self._client.cut_off(self._store.load(self._session))

    def ids_started_again(self) -> Diagnosis | None:
        """Report only what keeps a prompt from being answered: `scan` finds those that will."""
        if self._look.newest_user is None or not self._to_be_read():
            return None
        found = self._client.ids_started_again(self._store, self._session, self._context.clock())
        return found if found is not None and found.ignored else None

    def unsendable(self, failure: Failure | None) -> Diagnosis | None:
        if not self._to_be_read():
            return None
        found = without_error.diagnose_unsendable(self._client, self._store, self._store.load(self._session), failure)
        if found is None:
            keep_newest(self._triage.sound, self._key, self._mark)
        return found

    def hidden(self) -> Diagnosis | None:
        """Look for it as long as that compaction is what failed last; what is older is for `scan`."""
        if self._look.failure is None or self._look.newer:
            return None
        self._wait()
        found = without_error.diagnose_hidden(self._client, self._store, self._session)
        return found if found is not None and found.evidence["compaction"] == self._look.failure.message else None

    def unanswered(self) -> Diagnosis | None:
        """Look for nothing: a daemon does nothing about it."""
        return None

    def unreadable(self) -> Diagnosis | None:
        """Look for it where no stored prompt tells: one that names no model fails before it is stored.

        While a turn runs, at most once a minute.
        """
        look, now = self._look, self._context.clock()
        if look.waits and not (look.failure is not None and not look.newer):
            return None  # the request was built
        since = look.running or (look.failure.time if look.failure is not None else look.last_answer)
        too_old = since < self._context.since_ms
        if too_old or (look.running and 0 <= now - self._triage.read.get(self._key, 0.0) < _READ_S):
            return None
        if not self._store.unreadable(self._session):
            keep_newest(self._triage.read, self._key, now)
            return None
        self._wait()
        return without_error.diagnose_unreadable(self._client, self._store, self._store.load(self._session))

    def still_refused(self, recorded: Diagnosis, *, places: bool) -> Diagnosis | None:
        self._wait()
        session = self._store.load(self._session)
        return without_error.still_refused(self._client, self._store, session, recorded, places=places)

    def repaired(self, failure: Failure) -> bool:
        return self._triage.repaired(self._store, failure)

    def repaired_later(self, recorded: Diagnosis) -> bool:
        return repaired_later(self._store, self._context.ledger, recorded) is not None

    def place_moved(self, recorded: Diagnosis) -> bool:
        return place_moved(self._client, self._store, self._context.ledger, recorded)

    def as_meant(self, recorded: Diagnosis) -> Diagnosis:
        return as_meant(self._client, self._store, recorded)

    def _to_be_read(self) -> bool:
        """Whether the session is to be read: as it is now it is not known to be sound."""
        if self._triage.sound.get(self._key) == self._mark:
            return False
        self._wait()
        return True

    def _wait(self) -> None:
        wait = self._triage.quiet.wait(self._key, self._store.stamp(self._session), GRACE_S)
        if wait:
            raise _Later(wait)

    @property
    def _mark(self) -> str:
        look = self._look
        return f"{look.newest_user} {look.running} {look.failure.message if look.failure else ''}"
