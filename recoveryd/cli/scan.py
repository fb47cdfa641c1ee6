"""`recoveryd scan`"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console

from recoveryd import paths
from recoveryd.cli.common import config_of, open_ledger, stores_of, when
from recoveryd.cli.output import OK, WRONG, Result, console, plain, render, show_changes, wrapped
from recoveryd.config import Config
from recoveryd.diagnosis import Diagnosis
from recoveryd.errors import ActiveError, NotFoundError, RecoverydError
from recoveryd.ledger import Ledger, new_id
from recoveryd.model import Change, Entry, Failure, Json, Kind, Outcome, Refusal
from recoveryd.recovery import Recovery
from recoveryd.report import cause, told
from recoveryd.silent import UNANSWERED, Silence
from recoveryd.stores.base import Store, stand

UNREADABLE = "unreadable"
MOST = 20  # records of a diff; `show` has all of them
_UNEXPLAINED = {UNANSWERED: "a prompt without an answer", UNREADABLE: "a session that can't be looked into"}
_NOT_UNDERSTOOD = "not understood: nothing that is stored keeps its prompt from being answered; prompt it again"


@dataclass(frozen=True, slots=True)
class Finding:
    """A stuck session: what killed it, and what would be (or was) done about it."""

    failure: Failure
    title: str
    kind: Kind | None
    action: str
    parts: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    healed: bool = False
    recovery: str = ""
    reason: str = ""  # a stable code: the kind, or a key of _UNEXPLAINED
    evidence: Json = field(default_factory=dict)  # ids, times, and which rule

    @property
    def silent(self) -> bool:
        """Whether no error was recorded of it."""
        return bool(self.evidence) and "error" not in self.evidence

    @property
    def cause(self) -> str:
        """In words, and as the stable code."""
        about = _UNEXPLAINED.get(self.reason) if self.kind is None else None
        return f"{about or cause(self.kind)} ({self.reason})"

    def data(self) -> dict[str, Any]:
        return {
            "store": self.failure.store,
            "session": self.failure.session,
            "title": self.title,
            "message": self.failure.message,
            "kind": self.kind,
            "action": self.action,
            "parts": list(self.parts),
            "healed": self.healed,
            "reason": self.reason,
            "evidence": dict(self.evidence),
        }


def scan(arguments: argparse.Namespace) -> int:
    config = config_of(arguments)
    seen = 0
    found: list[Finding] = []
    names: list[str] = []
    with open_ledger() as ledger:
        recovery = Recovery(ledger, config, paths.state_dir())
        for store in stores_of(config):
            names.append(store.id)
            for session in _listed(store, arguments.session):
                seen += 1
                finding = find(store, config, session, recovery, ledger)
                if finding is None or (arguments.kind and finding.kind != arguments.kind):
                    continue
                if arguments.repair and not finding.healed and finding.kind is not None:
                    finding = _repair(store, recovery, finding, quiet=arguments.json)
                # Without a diff to show, only whether there is one: old sessions may be all that there are.
                found.append(finding if arguments.session else replace(finding, changes=finding.changes[:1]))
    if arguments.session and not seen:
        raise NotFoundError(f"There is no session {arguments.session} in any store.")
    data = {"stores": names, "sessions_seen": seen, "stuck": [finding.data() for finding in found]}
    code = WRONG if any(not finding.healed for finding in found) else OK
    shown = Result(data, lambda out: _show(out, names, seen, found, diff=bool(arguments.session)), code)
    return render(shown, as_json=arguments.json)


def find(
    store: Store, config: Config, session: str, recovery: Recovery | None = None, ledger: Ledger | None = None
) -> Finding | None:
    """What a session is stuck on; None when it is not. What goes wrong on the way is the finding's action."""
    if recovery is None:
        with open_ledger() as opened:
            return find(store, config, session, Recovery(opened, config, paths.state_dir()), opened)
    unread = Finding(Failure(store.id, session, "", 0, {}), "", None, "", reason=UNREADABLE)
    try:
        silence = Diagnosis(recovery.client, recovery.holders).of(store, session)
        if silence is None:
            return None  # not stuck; or a rate limit, a lost connection, an account: no business of ours
        return _planned(store, recovery, ledger, silence)
    except RecoverydError as error:
        return replace(unread, action=f"can't be read: {error.message}")
    except (ValueError, TypeError, AttributeError) as error:  # one odd record must not end the scan of all the others
        return replace(unread, action=f"a fault of recoveryd: {type(error).__name__}: {error}")


def _planned(store: Store, recovery: Recovery, ledger: Ledger | None, silence: Silence) -> Finding:
    """What would be done about it."""
    failure, kind, name = silence.failure, silence.kind, new_id()
    found = Finding(failure, "", kind, "", reason=silence.reason, evidence=silence.evidence)
    done = _healed(store, ledger, failure)
    if done is not None:
        action = f"{done.detail} ({done.id}); prompt it to go on"
        return replace(found, title=done.title, kind=done.kind, action=action, healed=True, reason=str(done.kind))
    if kind is None:
        return replace(found, title=store.load(failure.session).title, action=_NOT_UNDERSTOOD)
    try:
        loaded, planned = recovery.propose(store, failure, kind, name)
    except ActiveError as error:
        return replace(found, action=f"not repaired: {error.message}")
    found = replace(found, title=loaded.title)
    reason = store.live()
    running = kind not in (Kind.UNSENDABLE_PART, Kind.INTERRUPTED_TURN) and store.look(failure.session).running
    if reason is None and running:
        reason = "a turn of it is running, or was cut off; look again when it has ended"
    if reason is not None:
        return replace(found, action=f"not repaired: {reason}")
    if isinstance(planned, Refusal):
        return replace(found, action=f"not repaired: {planned.reason}")
    return replace(found, action=planned.detail, parts=planned.parts, changes=planned.changes, recovery=name)


def _healed(store: Store, ledger: Ledger | None, failure: Failure) -> Entry | None:
    """What was done about this failure, if it was and still stands: the next prompt will be accepted."""
    for entry in ledger.history(50, failure.session) if ledger is not None else ():
        if (entry.store, entry.message, entry.outcome) == (store.id, failure.message, Outcome.HEALED):
            changes = ledger.changes(entry.id) if ledger is not None else []
            if changes and stand(store, changes):
                return entry
    return None


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
        out.print(f"{plain(finding.title or finding.failure.session)}: {finding.action}")
        show_changes(out, finding.changes, MOST)
    assert finding.kind is not None
    event = recovery.attempt(store, finding.failure, finding.kind, finding.recovery)
    if event.outcome is Outcome.PENDING:
        return replace(finding, action=f"not now: {event.detail}", changes=())
    healed = event.outcome is Outcome.HEALED
    action = f"{event.detail} ({event.id})" if healed else event.detail
    return replace(finding, action=action, changes=event.changes, healed=healed)


def show_finding(out: Console, finding: Finding) -> None:
    failure = finding.failure
    out.print(f"{plain(finding.title or '(no title)')} ({failure.session})")
    said = "silent" if finding.silent else "refused"
    out.print(f"{said:10}{when(failure.time / 1000)}, message {failure.message}: {finding.cause}")
    if finding.evidence:
        wrapped(out, f"evidence  {told(finding.evidence)}")
    if finding.parts:
        out.print(f"parts     {', '.join(finding.parts)}")
    out.print(f"{'healed' if finding.healed else 'remedy':10}{plain(finding.action)}")


def _show(out: Console, names: Sequence[str], seen: int, found: Sequence[Finding], *, diff: bool) -> None:
    if not names:
        out.print(
            "No store of OpenCode was found. Set [opencode] data_dirs if yours is elsewhere (`recoveryd config path`)."
        )
        return
    stuck = sum(not finding.healed for finding in found)
    sessions = "1 session" if seen == 1 else f"{seen} sessions"
    out.print(
        f"{sessions} in {', '.join(plain(n) for n in names)}: " + ("none is stuck." if not stuck else f"{stuck} stuck.")
    )
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
    if stuck and any(finding.changes and not finding.healed for finding in found):
        out.print("\nTo heal them: recoveryd scan --repair")
