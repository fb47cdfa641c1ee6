"""Cases of failures and the notices of what came of them, as a test has them."""

from __future__ import annotations

from dataclasses import replace

from recoveryd.clients import Store
from recoveryd.core.model import Event, Failure, Kind, Refused
from recoveryd.diagnose import Case
from recoveryd.tell import event_words
from recoveryd.tell.toast import Button, Toast
from tests.support.refused import refused


def case(store: Store, failure: Failure, kind: Kind | None = None, recovery: str = "") -> Case:
    """The case of a failure, of the kind that its words tell if no other is given."""
    said = refused(failure.error)
    kind = kind or (said.kind if said is not None else Kind.EMPTY_CONTENT)
    return Case.begin(store, failure, Refused(kind) if said is None else replace(said, kind=kind), recovery)


def case_of(store: Store, failure: Failure, event: Event) -> Case:
    """The case that came to this event."""
    return replace(case(store, failure, event.kind, event.id), event=event)


def notice(
    event: Event,
    buttons: tuple[Button, ...] = (),
    go_on: str = "Say “continue” to go on",
    who: str = "OpenCode",
    *,
    of_subagent: bool = False,
) -> Toast:
    """The notice of an event, if nothing else is said of a session of OpenCode."""
    return event_words.notice(event, buttons, go_on, who, of_subagent=of_subagent)
