"""`recoveryd compact`"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any

from rich.console import Console

from recoveryd.cli.asking import agreed, before_question, is_asked
from recoveryd.cli.common import config_of, in_brackets, known_ledger, no_session, open_ledger, stores_of
from recoveryd.cli.findings import Finding, finding_of
from recoveryd.cli.output import OK, WRONG, Result, console, print_wrapped, render
from recoveryd.clients import Clients, Store, Whose, look_up, root_title
from recoveryd.core import (
    UNREADABLE,
    ByHand,
    Event,
    Failure,
    Kind,
    NotFoundError,
    Outcome,
    RecoverydError,
    Refusal,
    Refused,
    RefusedError,
    capital,
    command_line,
)
from recoveryd.diagnose import Case, Context
from recoveryd.heal import Recovery, follow_moved, recover_one
from recoveryd.settings import paths
from recoveryd.tell import deeds_by_place

_KIND = Kind.CONTEXT_OVERFLOW


def compact(arguments: argparse.Namespace) -> int:
    """Run `recoveryd compact`: make a session shorter to its model, stuck or not."""
    config = config_of(arguments)
    dry = arguments.dry_run or config.dry_run
    with known_ledger() if dry else open_ledger() as ledger:
        stores, unread = look_up(Clients(config), there := stores_of(config), arguments.session)
        if not stores:
            raise no_session(arguments.session, there, map(str, unread.values()))
        store = stores[0]
        if not dry:
            with suppress(RecoverydError):
                follow_moved(store, ledger)
        recovery = Recovery(Context(ledger, config, paths.state_dir()), by_hand=ByHand(arguments.target))
        case = Case.begin(store, _failure(recovery.context, store, arguments.session), Refused(_KIND))
        if store.look(arguments.session).running:
            raise RefusedError("A turn of this session is running, or was cut off.", "Try again when it has ended.")
        session, planned = recovery.propose(case)
        data: dict[str, Any] = {
            "store": store.id,
            "client": store.client,
            "session": session.id,
            "title": root_title(store, session.id),
        }
        if isinstance(planned, Refusal):
            return _nothing(arguments, data, planned)
        places = deeds_by_place(planned.places, planned.actions, _KIND, done=False)
        data |= {"compacted": False, "recovery": None, "action": planned.would, "places": places}
        if not arguments.json:
            title = (data["title"] or session.id) + in_brackets(Whose(config), store.id)
            _announce(console() if dry else before_question(arguments), title, planned.would, places)
        if dry:
            why = "" if arguments.dry_run else " `dry_run` is set in the configuration."
            return render(
                Result(data, lambda out: out.print(f"\nDry run: nothing was written.{why}")), as_json=arguments.json
            )
        if is_asked(arguments) and not agreed("Make it shorter?"):
            return render(Result({}, lambda out: out.print("Nothing was changed."), WRONG), as_json=False)
        return _done(arguments, data, recover_one(recovery, case))


def _failure(context: Context, store: Store, session: str) -> Failure:
    """Return what it is stuck on, if that is its length; else what its next prompt would be refused for.

    RefusedError: it is stuck on something else, which would be taken for repaired.
    """
    found = finding_of(store, session, Recovery(context))  # as `scan` tells it
    if found is not None and found.kind is _KIND:
        return found.failure
    if found is not None and _on_something_else(found):
        first = found.changes and not (found.ignored or context.config.dry_run)
        repair = f"First: {command_line('scan', '--repair', session=session)}"
        how = repair if first else f"{capital(found.outlook).rstrip('.')}."
        raise RefusedError(f"This session is stuck on something else: {found.cause}.", how)
    made = context.clients.of(store).next_failure(store.load(session))
    if made is None:
        raise NotFoundError(f"Session {session} has no message yet.")
    return made


def _on_something_else(found: Finding) -> bool:
    """Whether a session has to be healed first. What nothing stored explains of a summary that was refused, its client
    asks for no more once it is shorter.
    """
    if found.kind is None:
        return found.stuck and found.diagnosis.reason == UNREADABLE
    return found.stuck and not (found.failure.of_summary and not found.changes)


def _nothing(arguments: argparse.Namespace, data: dict[str, Any], refusal: Refusal) -> int:
    said = f"{capital(refusal.reason)}."
    if refusal.understood:
        raise RefusedError(said, "Try again in a moment." if refusal.again_s else "")
    result = {**data, "compacted": False, "recovery": None, "action": refusal.reason, "places": []}
    return render(Result(result, lambda out: print_wrapped(out, said)), as_json=arguments.json)


def _announce(out: Console, title: str, would: str, places: list[str]) -> None:
    print_wrapped(out, title)
    print_wrapped(out, would, 4)
    for place in places:
        print_wrapped(out, place, 4)


def _done(arguments: argparse.Namespace, data: dict[str, Any], event: Event) -> int:
    healed = event.outcome is Outcome.HEALED
    data |= {"compacted": healed, "recovery": event.id if healed else None, "action": event.detail}

    def show(out: Console) -> None:
        out.print()
        print_wrapped(out, f"{event.detail}." if healed else f"Not done: {event.detail}")
        if healed:
            print_wrapped(out, f"To take it back: {command_line('undo', event.id)}")

    return render(Result(data, show, OK if healed else WRONG), as_json=arguments.json)
