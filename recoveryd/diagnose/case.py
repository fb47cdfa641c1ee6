"""Carry a failure, as one value, from its diagnosis to what the user is told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from recoveryd.clients import Store, root_title
from recoveryd.core import Entry, Event, Failure, Kind, Outcome, Refused, RefusedError
from recoveryd.ledger import new_id


@dataclass(frozen=True, slots=True)
class Case:
    """What a session in `store` is stuck on, why (`refused`), and what came of repairing it so far (`event`)."""

    store: Store
    failure: Failure
    refused: Refused
    event: Event
    begun: float = 0.0  # when what is done now began, time.monotonic()

    @classmethod
    def begin(cls, store: Store, failure: Failure, refused: Refused, recovery: str = "") -> Case:
        """Make the case of a recovery that is yet to be made. `recovery`: its id, if it has one by now."""
        session, message = failure.session, failure.message
        event = Event(recovery or new_id(), store.id, session, "", message, refused.kind, Outcome.PENDING, "")
        return cls(store, failure, refused, event)

    @classmethod
    def of_entry(cls, store: Store, entry: Entry, time_ms: int) -> Case:
        """Make the case of a recovery of the ledger; `time_ms` is when its failure was.

        RefusedError: it is of a kind that this version does not know.
        """
        if entry.kind is None:
            raise RefusedError(f"{entry.id} is of a kind that this version of recoveryd does not know.")
        failure = Failure(store.id, entry.session, entry.message, time_ms)
        case = cls.begin(store, failure, Refused(entry.kind), entry.id).became(entry.outcome, entry.detail)
        return case.updated(title=entry.title, actions=entry.actions, kinds=entry.kinds)

    @property
    def recovery(self) -> str:
        """The id of the recovery."""
        return self.event.id

    @property
    def session(self) -> str:
        """The id of the session."""
        return self.failure.session

    @property
    def kind(self) -> Kind:
        """The kind of the failure."""
        return self.refused.kind

    @property
    def outcome(self) -> Outcome:
        """How the recovery ended; `pending` while it has not."""
        return self.event.outcome

    def became(self, outcome: Outcome, detail: str | None = None) -> Case:
        """Return the case with this outcome, and this `detail` if there is a new one."""
        return self.updated(outcome=outcome, detail=self.event.detail if detail is None else detail)

    def updated(self, **fields: Any) -> Case:
        """Return the case with these fields of its event."""
        return replace(self, event=replace(self.event, **fields))

    def titled(self) -> Case:
        """Return the case with the title of its session; of a subagent, that of the session which a person began."""
        return self.updated(title=root_title(self.store, self.session))


def case_from_ledger(store: Store, entry: Entry) -> Case:
    """Make a case anew of what the ledger has of its recovery. Errors of the store pass."""
    failed = store.load(entry.session).message(entry.message)
    return Case.of_entry(store, entry, failed.created if failed is not None else 0)
