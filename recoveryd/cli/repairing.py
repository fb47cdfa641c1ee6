"""Make the repairs that `scan --repair` found, and tell of each what stands then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from recoveryd.cli.findings import Finding, finding_of
from recoveryd.clients import Store
from recoveryd.core import Event, Failure, Outcome, RecoverydError
from recoveryd.diagnose import undone_repair
from recoveryd.disk import recovery_lock
from recoveryd.heal import Lifecycle, Recovery
from recoveryd.ledger import Ledger


def repair_found(recovery: Recovery, found: list[Finding], due: Sequence[tuple[int, Store]], *, named: bool) -> None:
    """Repair what is due and as it was shown, then read all of it back: what is told is what stands then.

    `due`: the places in `found`, with the store of each; `named`: by the user, who may want a repair that was undone to
    be made again.
    """
    ledger = recovery.context.ledger
    ended: dict[tuple[str, str], Event] = {}  # by store and session: a copy of the session may be in another store
    lifecycle = Lifecycle(recovery, lambda case: ended.update({(case.store.id, case.session): case.event}))
    for number, store in due:
        finding = found[number]
        assert finding.case is not None
        if _stamp(store, finding.failure.session) == finding.stamp:
            still = partial(_not_undone, store, ledger, finding.failure, named=named)
            lifecycle.begin(finding.case, still)
    lifecycle.finish()
    for number, store in due:
        event = ended.get((store.id, found[number].failure.session))
        found[number] = _became(found[number], event)
        if event is None or event.outcome is Outcome.PENDING:
            found[number] = _healed_meanwhile(store, recovery, found[number])


def _stamp(store: Store, session: str) -> str:
    try:
        return store.stamp(session).digest
    except RecoverydError:  # what can't be read is told by the finding
        return ""


def _not_undone(store: Store, ledger: Ledger, failure: Failure, *, named: bool) -> bool:
    return named or undone_repair(store, ledger, failure) is None


def _became(finding: Finding, event: Event | None) -> Finding:
    if event is None:
        return replace(finding, action="not repaired: the session changed meanwhile; scan again", changes=())
    if event.outcome is Outcome.PENDING:
        return replace(finding, action=f"not now: {event.detail}", changes=())
    healed = event.outcome is Outcome.HEALED
    undone = None if healed else finding.undone
    return replace(finding, action=event.detail, changes=(), healed=healed, recovery=event.id, undone=undone)


def _healed_meanwhile(store: Store, recovery: Recovery, finding: Finding) -> Finding:
    """Look again at what another recoveryd may have been first at, once that is done with it; what it healed is told as
    healed, anything else as before.
    """
    try:
        with recovery_lock(store.lock_path, recovery.context.lock_dir, store.id, doing="a scan"):
            now = finding_of(store, finding.failure.session, recovery)
    except RecoverydError:
        return finding
    if now is None or not now.healed:
        return finding
    says = f"healed meanwhile by another recoveryd: {now.action}"
    return replace(finding, action=says, healed=True, recovery=now.recovery, undone=None)
