"""Find what a session is stuck on, and what would be done about it: for `scan` and `explain`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from recoveryd.cli.output import local_time, print_labelled, print_wrapped
from recoveryd.cli.reasons import REASONS
from recoveryd.clients import Store, Whose, root_title
from recoveryd.core import (
    KINDS,
    REFUSED,
    UNDONE,
    UNREADABLE,
    ActiveError,
    Change,
    Diagnosis,
    Entry,
    Failure,
    FormError,
    Json,
    Kind,
    LeftAloneError,
    Outcome,
    PastRecovery,
    RecoverydError,
    Refusal,
    command_line,
    kind_info,
    uncapital,
)
from recoveryd.diagnose import (
    Assessment,
    Case,
    Context,
    assess,
    at_cap,
    in_vain,
    is_put_back,
    left_alone,
    undone_repair,
    vain_repairs,
)
from recoveryd.heal import Recovery, ahead, find_store, not_understood
from recoveryd.ledger import FORGOTTEN, Ledger
from recoveryd.tell import cause, evidence_line, next_step, still_to_tell


@dataclass(frozen=True, slots=True)
class Finding:
    """A stuck session as a command shows it: what it is stuck on, and what would be (or was) done about it.

    `case` is its repair as it was planned, which has not begun yet. The code of `diagnosis` is a key of `REASONS`.
    """

    diagnosis: Diagnosis
    title: str
    action: str = ""
    case: Case | None = None
    parts: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    healed: bool = False
    earlier: bool = False  # healed before it was looked at now, and not prompted since
    go_on: str = ""  # how its user goes on once it is healed
    recovery: str = ""
    ignored: bool = False
    undone: PastRecovery | None = None  # it was repaired, and the user took that back
    stamp: str = ""  # what the session was like when its repair was planned

    @property
    def failure(self) -> Failure:
        """What failed."""
        return self.diagnosis.failure

    @property
    def kind(self) -> Kind | None:
        """The kind of the failure; None where nothing explains it."""
        return self.diagnosis.kind

    @property
    def evidence(self) -> Json:
        """What says so: ids, times, and which rule."""
        return self.diagnosis.evidence

    @property
    def silent(self) -> bool:
        """Whether no error was recorded of it."""
        return bool(self.evidence) and "error" not in self.evidence

    @property
    def elsewhere(self) -> bool:
        """Whether its newest prompt has no answer for what is not stored: a rate limit, a lost connection, an account,
        because none was asked for, or because the request ended with the assistant's words.
        """
        return not (self.healed or self.diagnosis.stuck)

    @property
    def stuck(self) -> bool:
        """Whether its next prompt would fail for what is stored."""
        return not self.healed and self.diagnosis.stuck

    @property
    def waits(self) -> bool:
        """Whether it is in order until it is prompted: then it is repaired only if it, or its kind, is asked for."""
        return kind_info(self.kind).waits and not self.evidence.get("ignored") and not self.healed

    @property
    def cause(self) -> str:
        """What it is stuck on, in words, and as the stable code."""
        reason = self.diagnosis.reason
        about = REASONS[reason].cause if self.kind is None and reason in REASONS else None
        return f"{about or cause(self.kind)} ({reason})"

    @property
    def said(self) -> str:
        """The `action` for a person, with the id that `undo` needs, and how to go on."""
        if not self.healed:
            return self.action
        return f"{self.action} ({self.recovery}). {still_to_tell(self.action, self.go_on)}".strip()

    @property
    def taken_back(self) -> str:
        """When its repair was undone, in words; "" when it was not."""
        if self.undone is None:
            return ""
        at = f" on {local_time(self.undone.undone)[:16]}" if self.undone.undone else ""
        done = f"it was healed ({self.undone.recovery}), and you undid that{at}"
        if not self.changes:
            return done
        again = command_line("scan", "--repair", session=self.failure.session)
        return f"{done}; it is repaired only by `{again}`"

    @property
    def outlook(self) -> str:
        """All that a person is told of what was, or would be, done about it."""
        if self.undone and self.changes:
            return self.taken_back
        return "; ".join(filter(None, (self.taken_back, self.said)))

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
            "recovery": self.recovery if self.healed else None,
            "undone": self.undone.recovery if self.undone else None,
            "reason": self.diagnosis.reason,
            "evidence": dict(self.evidence),
        }


def finding_of(store: Store, session: str, recovery: Recovery) -> Finding | None:
    """Make the finding of `scan` and `explain` for a session: what it is stuck on; None when it is not. An error on the
    way becomes the finding's action.
    """
    known = assess(recovery.context, store, session)
    if known is None:
        return _undone(store, session, recovery)
    go_on = recovery.context.clients.of(store).go_on(store, session)
    found = Finding(known.diagnosis, known.title, known.trouble, ignored=known.ignored, go_on=go_on)
    if known.repaired is not None:
        return _healed(found, known, known.repaired)
    if known.trouble:
        return found
    unread = Finding(Diagnosis(found.failure, None, code=UNREADABLE), known.title)
    try:
        return _planned(store, recovery, found)
    except RecoverydError as error:
        return replace(unread, action=f"can't be read: {error.in_a_line}")
    except Exception as error:  # one odd record must not end the scan of all the others
        return replace(unread, action=f"a fault of recoveryd: {type(error).__name__}: {error}")


def _undone(store: Store, session: str, recovery: Recovery) -> Finding | None:
    """Make the finding of a session that went on, and whose repair was undone behind that (`undo --force`)."""
    ledger, failure = recovery.context.ledger, Failure(store.id, session, "", 0)
    newest = next((entry for entry in ledger.history(20, session) if _is_of(store, ledger, entry)), None)
    if newest is None or newest.outcome is not Outcome.UNDONE:
        return None
    try:
        undone = undone_repair(store, ledger, failure)
        if undone is None or left_alone(recovery.context, store, session):
            return None
        loaded, title = store.load(session), root_title(store, session)
    except RecoverydError:
        return None
    failed = loaded.message(undone.message)
    if failed is not None and failed.error is None:
        return None  # nothing had been refused: it was made shorter by hand, or repaired ahead
    try:
        sent = is_put_back(recovery.context, store, loaded, undone)
    except Exception:  # one odd record must not end the scan of all the others
        sent = True
    if not sent:
        return None  # it is not sent now: its turn was taken back, or a compaction took its place
    then = "nothing is refused now, and its next prompt may be, as before the repair"
    return Finding(Diagnosis(failure, None, code=UNDONE), title, then, undone=undone)


def finding_ahead(store: Store, session: str, recovery: Recovery) -> Finding | None:
    """Make the finding of `scan` for what the next prompt of a session that is not stuck would be refused for; None
    where nothing is known.
    """
    try:
        case = ahead.foresee(recovery.context, store, session) if ahead.may_foresee(store.look(session)) else None
        if case is None:
            return None
        _, planned = recovery.propose(case)
        found = Finding(Diagnosis(case.failure, case.refused), root_title(store, session))
        found = replace(found, undone=undone_repair(store, recovery.context.ledger, case.failure))
        before = ahead.foreseen_before(recovery.context, case)
    except RecoverydError:  # what can't be read, or is to be left alone, is told of a session that is stuck
        return None
    if isinstance(planned, Refusal):
        return replace(found, action=f"not repaired ahead: {planned.reason}")
    if found.undone:
        return replace(found, action=f"not repaired ahead: {found.taken_back}")
    if before:
        return replace(found, action="not repaired ahead: that was tried before, and it is tried once")
    return replace(found, action=planned.would, parts=planned.parts, changes=planned.changes[:1])


def _healed(found: Finding, known: Assessment, done: Entry) -> Finding:
    says = f"; {known.late}" if known.late else ""
    if done.detail == FORGOTTEN:
        action = f"what was done is not known any more, as you had that forgotten{says}"
    else:
        action = done.detail if says in done.detail else done.detail + says
    return replace(found, action=action, recovery=done.id, healed=True, earlier=True)


def _planned(store: Store, recovery: Recovery, found: Finding) -> Finding:
    """Plan the repair, and tell what would be done."""
    ledger, failure, refused = recovery.context.ledger, found.failure, found.diagnosis.refused
    found = replace(found, undone=undone_repair(store, ledger, failure))
    if refused is None:
        about = str(found.evidence.get("about", ""))
        reason = found.diagnosis.reason
        then = not_understood(recovery.context, store, failure) if reason == REFUSED else ""
        says = REASONS[reason].remedy.format(about=about, then=then)
        return replace(found, action=says)
    found = replace(found, stamp=store.stamp(failure.session).digest)
    case = Case.begin(store, failure, refused)
    found = _given_up(recovery.context, case, _proposed(recovery, case, replace(found, case=case)))
    begun = [entry for entry in ledger.pending() if entry.session == failure.session]
    cut_off = [entry for entry in begun if _is_of(store, ledger, entry)]
    if cut_off:
        what, ends = "repair", command_line("scan", "--repair")
        if cut_off[0].outcome is Outcome.UNDOING:  # which a scan leaves: it is not repaired against its user's wish
            what, ends = "undo of", command_line("undo", cut_off[0].id)
        start = command_line("restart")  # it starts one that does not run, too
        ended = f"its {what} {cut_off[0].id} was cut off half way; `{start}` and `{ends}` end that"
        return replace(found, action=f"{ended} first. Then: {found.action}" if found.changes else ended)
    return found


def _given_up(context: Context, case: Case, found: Finding) -> Finding:
    """Tell of a session that had all its repairs, as its last notice did, and what there is to do about it."""
    store, failure = case.store, case.failure
    tries = vain_repairs(context, store, failure, store.look(failure.session).last_answer)
    if found.undone or not tries or not at_cap(tries, context.config.max_retries):
        return found
    gave_up = f"given up: {uncapital(in_vain(tries, case.kind))}"
    if not found.changes:
        return replace(found, action=f"{gave_up}; {found.action}")
    by_hand = command_line("scan", "--repair", session=failure.session)
    step = next_step(case.kind, context.clients.of(store), store, failure.session)
    only = f"by itself nothing is done until a prompt is answered. `{by_hand}` {uncapital(found.action)}; or {step}"
    return replace(found, action=f"{gave_up}, and {only}")


def _is_of(store: Store, ledger: Ledger, entry: Entry) -> bool:
    """Whether a recovery is one of this store, be it under the path that it had before it was moved."""
    return find_store((store,), ledger, entry.store) is not None


def _proposed(recovery: Recovery, case: Case, found: Finding) -> Finding:
    store = case.store
    try:
        _, planned = recovery.propose(case)
    except (ActiveError, LeftAloneError, FormError) as error:
        return replace(found, action=f"not repaired: {uncapital(error.message)}")
    reason = store.live()
    if reason is None and not KINDS[case.kind].open_turn and store.look(case.session).running:
        reason = "a turn of it is running, or was cut off; look again when it has ended"
    if reason is None and isinstance(planned, Refusal):
        reason = planned.reason
    if isinstance(planned, Refusal) and planned.again_s:
        return replace(found, action=f"not now: {reason}; scan again in a moment")
    if reason is not None or isinstance(planned, Refusal):
        return replace(found, action=f"not repaired: {reason}")
    return replace(found, action=planned.would, parts=planned.parts, changes=planned.changes, recovery=case.recovery)


def show_finding(out: Console, finding: Finding, whose: Whose) -> None:
    """Write a finding as a block of lines."""
    failure = finding.failure
    print_wrapped(out, f"{finding.title or '(no title)'} ({failure.session})")
    if told := whose.told(failure.store):
        print_labelled(out, "client" if whose.several else "store", told)
    if failure.message:
        said = f"{local_time(failure.time / 1000)}, message {failure.message}"
        print_labelled(out, "silent" if finding.silent else "refused", said)
    print_labelled(out, "cause", finding.cause)
    if finding.evidence:
        print_labelled(out, "evidence", evidence_line(finding.evidence))
    if finding.parts:
        print_labelled(out, "parts", ", ".join(finding.parts))
    if finding.undone:
        print_labelled(out, "undone", finding.taken_back)
    print_labelled(out, "healed" if finding.healed else "remedy", finding.said)
