"""`recoveryd scan`"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console

from recoveryd import paths
from recoveryd.cli.common import config_of, open_ledger, stores_of
from recoveryd.cli.findings import Finding, find, show_finding
from recoveryd.cli.output import OK, WRONG, Result, console, plain, render, show_changes, wrapped
from recoveryd.cli.progress import Bar
from recoveryd.errors import NotFoundError, RecoverydError
from recoveryd.model import Outcome
from recoveryd.recovery import Recovery
from recoveryd.report import told
from recoveryd.stores.base import Store

MOST = 20  # records of a diff; `show` has all of them


def scan(arguments: argparse.Namespace) -> int:
    config = config_of(arguments)
    seen = 0
    found: list[Finding] = []
    names: list[str] = []
    ignored = 0
    bar = Bar()
    with open_ledger() as ledger:
        recovery = Recovery(ledger, config, paths.state_dir())
        for store in stores_of(config):
            names.append(store.id)
            sessions = list(_listed(store, arguments.session))
            seen += len(sessions)
            for session in bar.over(sessions, len(sessions)):
                finding = find(store, config, session, recovery, ledger)
                if finding is None or (arguments.kind and finding.kind != arguments.kind):
                    continue
                if finding.ignored and not arguments.session:
                    ignored += 1
                    continue
                # A kind that is not wanted is no refusal to be put on record: it may be wanted later.
                left = finding.healed or finding.ignored or finding.kind not in config.kinds
                named = arguments.session or arguments.kind
                if arguments.repair and not left and (named or not finding.waits):
                    with bar.aside():
                        finding = _repair(store, recovery, finding, quiet=arguments.json)
                # Without a diff to show, only whether there is one: old sessions may be all that there are.
                found.append(finding if arguments.session else replace(finding, changes=finding.changes[:1]))
    if arguments.session and not seen:
        raise NotFoundError(f"There is no session {arguments.session} in any store.")
    data = {"stores": names, "sessions_seen": seen, "stuck": [finding.data() for finding in found]}
    code = WRONG if any(not finding.healed for finding in found) else OK

    def show(out: Console) -> None:
        _show(out, names, seen, found, diff=bool(arguments.session))
        if ignored:
            out.print()
            wrapped(out, f"{ignored} more {'is' if ignored == 1 else 'are'} stuck and ignored (`recoveryd ignore`).")

    return render(Result(data, show, code), as_json=arguments.json)


def _listed(store: Store, session: str | None) -> Iterator[str]:
    """A store that can't be read is said, and does not end the scan of the others."""
    try:
        yield from _wanted(store, session)
    except RecoverydError as error:
        console(stderr=True).print(f"recoveryd: {plain(str(error))}")


def _wanted(store: Store, session: str | None) -> Iterator[str]:
    if session is None:
        yield from store.session_ids()
    elif session in set(store.session_ids()):
        yield session


def _repair(store: Store, recovery: Recovery, finding: Finding, *, quiet: bool) -> Finding:
    if not quiet and finding.changes:
        out = console()
        wrapped(out, f"{finding.title or finding.failure.session}: {finding.action}")
        show_changes(out, finding.changes, MOST)
    assert finding.kind is not None
    event = recovery.attempt(store, finding.failure, finding.kind, finding.recovery)
    if event.outcome is Outcome.PENDING:
        return replace(finding, action=f"not now: {event.detail}", changes=())
    healed = event.outcome is Outcome.HEALED
    action = f"{event.detail} ({event.id})" if healed else event.detail
    return replace(finding, action=action, changes=event.changes, healed=healed)


def _show(out: Console, names: Sequence[str], seen: int, found: Sequence[Finding], *, diff: bool) -> None:
    if not names:
        where = "Set [opencode] data_dirs if yours is elsewhere (`recoveryd config path`)."
        wrapped(out, f"No store of OpenCode was found. {where}")
        return
    stuck = sum(not finding.healed for finding in found)
    sessions = "1 session" if seen == 1 else f"{seen} sessions"
    where = names[0] if len(names) == 1 else f"{len(names)} stores"
    out.print(f"{sessions} in {plain(where)}: " + ("none is stuck." if not stuck else f"{stuck} stuck."))
    if diff:
        for finding in found:
            out.print()
            show_finding(out, finding)
            show_changes(out, finding.changes, MOST)
    else:
        for finding in found:
            state = "healed" if finding.healed else "stuck"
            out.print()
            wrapped(out, finding.title or "(no title)")
            wrapped(out, f"{finding.failure.session}, {state}: {finding.cause}", 4)
            if finding.silent and not finding.healed:
                wrapped(out, told(finding.evidence), 4)
            would = "the repair: " if finding.changes and not finding.healed else ""
            wrapped(out, would + finding.action, 4)
    _advise(out, [finding for finding in found if finding.changes and not finding.healed])


def _advise(out: Console, left: Sequence[Finding]) -> None:
    waiting = sum(finding.waits for finding in left)
    if waiting < len(left):
        out.print("\nTo heal them: recoveryd scan --repair")
    if waiting:
        each = "1 is" if waiting == 1 else f"{waiting} are"
        out.print()
        wrapped(out, f"{each} in order until the next prompt. To heal: recoveryd scan --repair --kind wrapped_ids")
