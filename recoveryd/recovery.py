"""One recovery from end to end: stop the turn, plan, keep the images, write, read back, tell."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loguru import logger

from recoveryd.classify import classify, named_ids, position
from recoveryd.client import Client
from recoveryd.config import Config
from recoveryd.errors import ConflictError, RecoverydError, StoreError
from recoveryd.family import family
from recoveryd.forms import forms_of
from recoveryd.ledger import Ledger, LedgerError, new_id
from recoveryd.locks import recovery_lock
from recoveryd.model import Change, Entry, Event, Failure, Kind, Outcome, Refusal, Session
from recoveryd.plan import Case, Evidence, Plan, objections, plan, requests_of
from recoveryd.repairs import Settings
from recoveryd.report import actions_of, cause, sentence
from recoveryd.rules import VERSION
from recoveryd.stores.base import Stamp, Store, state
from recoveryd.violation import Claims

ROUNDS = 3  # the first plan, and two more when the client wrote in between


@dataclass(frozen=True, slots=True)
class Callbacks:
    """A parent system's own code. What one raises is logged and changes nothing."""

    on_abort: Callable[[str], object] | None = None
    on_complete: Callable[[Event], object] | None = None


class Recovery:
    """Carries out recoveries. `abort` asks the running client to stop a turn; without one nothing is asked."""

    def __init__(
        self,
        ledger: Ledger,
        config: Config,
        state_dir: Path,
        *,
        callbacks: Callbacks | None = None,
        abort: Callable[[Failure], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._config = config
        self._state_dir = state_dir
        self._callbacks = callbacks or Callbacks()
        self._abort = abort
        self._clock = clock
        self._client = Client(config.opencode)
        self._claims: dict[str, Claims] = {}  # of recoveries that are yet to be confirmed

    def on_abort(self, session_id: str) -> None:
        """Before a session is touched: the parent system is told that its turn is over."""
        self._call("on_abort", self._callbacks.on_abort, session_id)

    def on_complete(self, event: Event) -> None:
        """After a recovery, whatever it came to."""
        self._call("on_complete", self._callbacks.on_complete, event)

    def attempt(self, store: Store, failure: Failure, kind: Kind, name: str = "") -> Event:
        """Repair the session of `failure`; the outcome is in the ledger when this returns. Raises no store's error.

        `name`: the id that a proposal was given.
        """
        started = time.monotonic()
        event = Event(name or new_id(), store.id, failure.session, "", failure.message, kind, Outcome.PENDING, "")
        event = self._locked(store, failure, event)
        return replace(event, seconds=time.monotonic() - started)

    def propose(self, store: Store, failure: Failure, kind: Kind, name: str = "") -> tuple[Session, Plan | Refusal]:
        """What `attempt` of this name would do, without doing it."""
        session = store.load(failure.session)
        return session, self._plan(store, session, failure, kind, name or new_id())

    def confirm(self, store: Store, failure: Failure, event: Event) -> Event:
        """Read back once more, after the client had time to clean up; what it undid is applied again, once."""
        event = self._locked(store, failure, event)
        self._claims.pop(event.id, None)
        return event

    def _locked(self, store: Store, failure: Failure, event: Event) -> Event:
        try:
            with recovery_lock(self._state_dir, store.id):
                if event.outcome is Outcome.PENDING:
                    return self._repair(store, failure, event)
                known = self._entry(event)
                if known is None or known.outcome is not Outcome.HEALED:
                    return replace(event, outcome=known.outcome if known else Outcome.UNDONE)  # undone by the user
                if all(state(store, change) == "after" for change in event.changes):
                    return event
                logger.info("{}: the client wrote over the repair {}; it is made again", failure.session, event.id)
                return self._repair(store, failure, event)
        except LedgerError:
            raise  # without a ledger nothing is written, and nothing can be recorded
        except RecoverydError as error:
            return self._failed(store, failure, event, error.message)
        except Exception as error:  # a record that nobody thought of: told and recorded once, like any failure
            logger.exception("{}: a fault of recoveryd", failure.session)
            return self._failed(store, failure, event, f"A fault of recoveryd: {type(error).__name__}: {error}.")

    def _failed(self, store: Store, failure: Failure, event: Event, detail: str) -> Event:
        known = self._entry(event)
        if known is not None and known.outcome is Outcome.HEALED:
            logger.warning("{}: {} could not be confirmed: {}", failure.session, event.id, detail)
            return event
        return self._close(store, failure, replace(event, outcome=Outcome.FAILED, detail=detail))

    def _repair(self, store: Store, failure: Failure, event: Event) -> Event:
        """Plan and write until it stands. An event that is healed already is made again, as the same recovery."""
        kind = event.kind
        assert kind is not None
        reason = store.live()
        if reason is not None:
            raise StoreError(reason)
        written = event.outcome is Outcome.HEALED
        for _ in range(ROUNDS):
            session = store.load(failure.session)
            event = replace(event, title=session.title)
            planned = self._plan(store, session, failure, kind, event.id)
            if isinstance(planned, Refusal):
                # Made again, and nothing is left to do: what the client wrote over it is accepted as well.
                return event if written and not planned.understood else self._refuse(store, failure, event, planned)
            changes, actions = tuple(store.changes(session, planned.edits)), actions_of(planned.edits)
            event = replace(event, changes=changes, actions=actions, detail=sentence(actions, kind))
            self._keep_images(failure, event, written=written)
            try:
                store.apply(changes)
            except ConflictError as error:
                logger.info("{}: {} It is planned again.", failure.session, error.message)
                continue
            written = True
            self._claims[event.id] = planned.claims
            if self._stands(store, failure, planned, changes):
                return self._close(store, failure, replace(event, outcome=Outcome.HEALED))
        detail = "The client kept writing to this session; its own version stays."
        return self._close(store, failure, replace(event, outcome=Outcome.CONFLICT, detail=detail))

    def _stands(self, store: Store, failure: Failure, planned: Plan, changes: Sequence[Change]) -> bool:
        """Whether what is read back is what was written, and the rules accept it."""
        if any(state(store, change) != "after" for change in changes):
            return False
        session = store.load(failure.session)
        left = objections(session, requests_of(failure, forms_of(store, self._client)), planned.claims)
        for violation in left:
            logger.warning("{}: read back, the rules object: {}", failure.session, violation.reason)
        return not left

    def _plan(self, store: Store, session: Session, failure: Failure, kind: Kind, recovery: str) -> Plan | Refusal:
        if kind not in self._config.kinds:
            return Refusal(f"{kind} is not among the kinds that your configuration names")
        if self._config.ignores(session.id, session.directory):
            return Refusal("your configuration says to leave this session or folder alone")
        if family(failure) is None:
            who = failure.provider or "this provider"
            return Refusal(f"how the client talks to {who} is not known to recoveryd, so nothing can be proved")
        settings = Settings(self._config.placeholder, self._config.cancelled_text, self._config.keep_thinking)
        evidence = Evidence(kind, named_ids(failure.error), position(failure.error))
        forms, claims = forms_of(store, self._client), self._claims.get(recovery)
        return plan(Case(session, failure, evidence, settings, recovery, int(self._clock() * 1000), forms, claims))

    def _keep_images(self, failure: Failure, event: Event, *, written: bool) -> None:
        """Before any edit: the exact bytes of all that it touches, on the disk. `written`: some edits stand by now."""
        if self._entry(event) is None:
            self.on_abort(failure.session)
            if self._abort is not None:
                self._call("abort", self._abort, failure)
            self._ledger.begin(
                event.id,
                failure,
                event.title,
                event.kind,
                event.changes,
                event.actions,
                event.detail,
                session_state="",  # counts for a refusal alone
                rules_version=VERSION,
            )
        else:
            self._ledger.rewrite(event.id, event.changes, event.actions, event.detail, keep=written)

    def _entry(self, event: Event) -> Entry | None:
        return self._ledger.find(event.id)

    def _refuse(self, store: Store, failure: Failure, event: Event, refusal: Refusal) -> Event:
        outcome = Outcome.REFUSED if refusal.understood else Outcome.NOT_UNDERSTOOD
        detail = f"{refusal.reason[:1].upper()}{refusal.reason[1:]}."
        return self._close(store, failure, replace(event, outcome=outcome, detail=detail, changes=()))

    def _close(self, store: Store, failure: Failure, event: Event) -> Event:
        """The outcome into the ledger. What was begun and stands half written stays pending: the next start ends it."""
        if self._entry(event) is not None:
            if event.outcome is not Outcome.FAILED or self._untouched(store, event):
                self._ledger.finish(event.id, event.outcome, event.detail)
            return event
        try:
            seen = session_state(store.stamp(failure.session))
        except RecoverydError:
            seen = ""
        self._ledger.record(
            event.id,
            failure,
            event.title,
            event.kind,
            event.outcome,
            event.detail,
            session_state=seen,
            rules_version=VERSION,
        )
        return event

    def _untouched(self, store: Store, event: Event) -> bool:
        try:
            return all(state(store, change) == "before" for change in self._ledger.changes(event.id))
        except RecoverydError:
            return False

    def _call(self, name: str, function: Callable[..., object] | None, *arguments: object) -> None:
        if function is None:
            return
        try:
            function(*arguments)
        except Exception:
            logger.exception("{} failed; the recovery goes on", name)


def session_state(stamp: Stamp) -> str:
    """A short fingerprint of the whole session, for "has it changed since we refused?"."""
    return hashlib.sha256(repr(stamp.fingerprint).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def kind_of(failure: Failure) -> Kind | None:
    return classify(failure.error)


def headline(event: Event) -> str:
    """One line for the log: what was wrong, and what became of it."""
    return f"{event.session}: {cause(event.kind)}: {event.outcome} ({event.detail})"
