"""Plan what to write about a stuck session, of whatever kind, and how to tell that what is read back is sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recoveryd.clients import Client, Store, way_back
from recoveryd.core import (
    KINDS,
    ActiveError,
    ByHand,
    Change,
    Claims,
    Diagnosis,
    Edit,
    Failure,
    Kind,
    LeftAloneError,
    Marks,
    Refusal,
    Refused,
    Session,
    Wire,
    command_line,
    deed_names,
    keep_newest,
    uncapital,
    why_off,
)
from recoveryd.diagnose import Case, Context, left_alone, maybe_unread, mended_before, standing_repair, vain_repairs
from recoveryd.heal.ahead import FORESEEN, only_adds
from recoveryd.heal.propose_shorter import not_told_yet, propose_shorter, why_left_over
from recoveryd.providers import NO_RULES, Provider, binds_thinking, rules_for, size_of, takes_alike, why_unknown
from recoveryd.tell import deeds_sentence, next_step, no_longer_seen, places

if TYPE_CHECKING:
    from recoveryd.repair import PlanInput

_ASKED = 5  # times, a minute in all


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes that heal a session. `objections` says what is still wrong with it, as it is read back; nothing: healed.

    `detail` says what was done once it is, `would` the same before, each with `also` (before it is done `first`, if
    that is other words). `places` says of each action where it is done; a renaming has neither places nor edits. `lead`
    stands before what is done; `files` are written first, for the model to read; `sent`: the tokens that are sent then.
    `parts` are the stored ones to blame: those edited, else (where edits only add) those that the rules object to.
    `kinds` are what the rules found wrong, also before an earlier proposal was written; `claims` are what the
    provider's error said. Both are for a second plan.
    """

    changes: tuple[Change, ...]
    actions: tuple[str, ...]
    kind: Kind
    objections: Callable[[Session], Sequence[str]]
    kinds: tuple[Kind, ...]
    edits: tuple[Edit, ...] = ()
    places: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    claims: Claims | None = None
    also: str = ""
    first: str = ""
    lead: str = ""
    files: Mapping[Path, str] = field(default_factory=dict)
    sent: int = 0

    @property
    def detail(self) -> str:
        return self._said(done=True)

    @property
    def would(self) -> str:
        return self._said(done=False)

    def told(self, case: Case, *, again: bool) -> Case:
        """Return the case with what is done. A repair that is made `again` in part is the same, and told whole."""
        case = case.updated(changes=self.changes, kinds=tuple(dict.fromkeys((*case.event.kinds * again, *self.kinds))))
        if again and set(self.actions) <= set(case.event.actions):
            return case
        return case.updated(actions=self.actions, detail=self.detail, places=self.places, sent=self.sent)

    def _said(self, *, done: bool) -> str:
        said = deeds_sentence(self.actions, self.kind, done=done)
        return (f"{self.lead}{uncapital(said)}" if self.lead else said) + (
            self.also if done else self.first or self.also
        )


class Proposer:
    """Makes proposals by the configuration, and what the user ordered since. Writes nothing; errors of the store pass.

    `by_hand`: a person wants sessions shorter, stuck or not.
    ActiveError: what is to be ended may still be under way. LeftAloneError: the user wants it so.
    """

    def __init__(self, context: Context, by_hand: ByHand | None = None) -> None:
        self._by_hand = by_hand
        self._context = context
        self._config = context.config
        self._clients = context.clients
        self._asked: dict[tuple[str, str, str], int] = {}  # by failure: how often a client did not tell something

    def propose(self, case: Case, session: Session, earlier: Proposal | None = None) -> Proposal | Refusal:
        """Plan what to write about a case, given the session as it is now, or tell why nothing is.

        `earlier` is what was proposed for the same failure before the client wrote.
        """
        self.heed(case)
        if case.kind not in self._config.kinds:
            return Refusal(why_off(case.kind))
        if KINDS[case.kind].stopped:
            known = self._clients.shortening(case.store, session, case.failure, self._marks(case))
            return Refusal(why_left_over(known, KINDS[case.kind].unrepaired))
        if unknown := self._clients.of(case.store).sends_unknown(case.store, case.failure):
            return Refusal(unknown)
        return self._cured(case, session) if KINDS[case.kind].cured_by_client else self._editing(case, session, earlier)

    def heed(self, case: Case) -> None:
        """Raise LeftAloneError if the user wants the session left alone by now."""
        if left_alone(self._context, case.store, case.session):
            lists = command_line("ignore")
            raise LeftAloneError(f"You said to leave this session or folder alone (`{lists}` lists both).")

    def _editing(self, case: Case, session: Session, earlier: Proposal | None) -> Proposal | Refusal:
        from recoveryd.repair import objections, plan  # late: only a stuck session needs it

        store, failure, kind = case.store, case.failure, case.kind
        client = self._clients.of(store)
        wires = client.wires(store, failure)
        provider = _rules(client, wires, case, session, invents=self._config.invent_reasoning)
        if isinstance(provider, Refusal):
            return provider
        shorter = self._shorter(case, session)
        if isinstance(shorter, Proposal) or (shorter is not None and KINDS[kind].shortened):
            return shorter
        _at_rest(client, case, session)
        planned = plan(self._given(case, session, wires, provider, earlier))
        if isinstance(planned, Refusal):
            if planned.understood:
                return replace(planned, reason=f"{planned.reason}: {next_step(kind, client, case.store, session.id)}")
            return shorter or self._unexplained(case, session, wires, planned)
        ahead = case.event.ahead
        if ahead and not only_adds(planned.edits):
            return Refusal("what would heal it takes something out: that waits until it is refused")
        asked, late = planned.claims, client.unread(store, session.id, self._context.clock())

        def still(found: Session) -> list[str]:
            return [v.reason for v in objections(found, client.wires(store, failure), provider, asked)]

        return Proposal(
            changes=tuple(store.changes(session, planned.edits)),
            actions=deed_names(planned.edits),
            kind=kind,
            objections=still,
            kinds=tuple(dict.fromkeys((*(earlier.kinds if earlier else ()), *planned.kinds))),
            edits=planned.edits,
            places=places(session, planned.edits),
            parts=_to_blame(session, planned.edits, planned.accused),
            claims=asked,
            lead="Ahead of a refusal: " if ahead else "",
            first=f"; {late}" if late else "",
        )

    def _unexplained(self, case: Case, session: Session, wires: Sequence[Wire], planned: Refusal) -> Refusal:
        """Say of a fault that the rules do not find what the client does about such by itself."""
        from recoveryd.repair import faults_of

        client, rules, error = self._clients.of(case.store), rules_for(case.failure, wires), case.failure.error
        if any(client.heals(v.kind, v.block, error) for v in faults_of(case.kind, rules, wires, session)):
            return _mended(client, case)
        return replace(planned, reason=f"{planned.reason}; {client.mends}") if client.mends else planned

    def _given(
        self, case: Case, session: Session, wires: Sequence[Wire], provider: Provider, earlier: Proposal | None
    ) -> PlanInput:
        from recoveryd.repair import PlanInput, Settings

        config, client = self._config, self._clients.of(case.store)
        # Without its words only what the rules find in what is stored is answered.
        unsaid = case.event.ahead or (
            client.edits_shift and maybe_unread(self._context.ledger, client, case.store, session, case.failure)
        )
        return PlanInput(
            session=session,
            failure=case.failure,
            evidence=case.refused,
            settings=Settings(config.placeholder, config.cancelled_text, config.keep_thinking),
            wires=wires,
            provider=provider,
            editor=client.editor(self._marks(case)),
            claims=earlier.claims if earlier else Claims() if unsaid else None,
            kinds=FORESEEN.intersection(config.kinds) if case.event.ahead else frozenset(config.kinds),
            known=earlier.kinds if earlier else mended_before(case.store, self._context.ledger, case.failure),
            binds=_may_bind(case),
            by_others=_by_others(client, session, case.failure),
        )

    def _marks(self, case: Case) -> Marks:
        return Marks(case.recovery, self._context.now_ms)

    def _shorter(self, case: Case, session: Session) -> Proposal | Refusal | None:
        """Plan that less of the session is sent; None where its length is not the fault."""
        too_large = case.kind is Kind.MEDIA_REJECTED and size_of(case.failure.error).by_bytes
        return self._less(case, session) if too_large or KINDS[case.kind].shortened else None

    def _less(self, case: Case, session: Session) -> Proposal | Refusal:
        store, failure, kind = case.store, case.failure, case.kind
        by_hand, client = self._by_hand, self._clients.of(store)
        if not (self._config.compact.enabled or by_hand):
            return Refusal(f"`[compact] enabled` is off: run `recoveryd compact {session.id}`")
        known = self._clients.shortening(store, session, failure, self._marks(case))
        if known is None:
            then = client.advice(store, failure, kind) or way_back(client, store, session.id)
            return Refusal(f"recoveryd can't make sessions of this client shorter yet: {then}")
        if (what := not_told_yet(failure, known)) and (wait := self._wait(failure)):
            return Refusal(f"{client.title} {what}, on which this hangs", again_s=wait)
        wires = client.wires(store, failure)
        tried = bool(vain_repairs(self._context, store, failure, store.look(session.id).last_answer))
        rules = rules_for(failure, wires)
        made = standing_repair(store, self._context.ledger, Diagnosis(failure, case.refused)) if by_hand else None
        known = known.after_repair(made.sent) if made is not None and made.sent else known
        share = self._config.compact.target
        done = propose_shorter(case, session, known, wires, rules, share=share, by_hand=by_hand, tried=tried)
        if isinstance(done, Refusal):
            return done
        edits = done.shorter.edits
        unseen = no_longer_seen(session, edits)
        return Proposal(
            changes=tuple(store.changes(session, edits)),
            actions=deed_names(edits),
            kind=kind,
            objections=done.objections,
            kinds=(kind,),
            edits=edits,
            places=places(session, edits),
            parts=_to_blame(session, edits),
            lead=done.lead,
            also=f"{done.tail(done=True)}{unseen}",
            first=f"{done.tail(done=False)}{unseen}",
            files=done.wholes,
            sent=0 if done.shorter.by_bytes else done.shorter.after,
        )

    def _wait(self, failure: Failure) -> float:
        """Return the seconds until a client that did not answer is asked again, each time twice as many; 0: no more."""
        key = failure.store, failure.session, failure.message
        asked = self._asked.get(key, 0) + 1
        keep_newest(self._asked, key, asked)
        return 2.0**asked if asked <= _ASKED else 0.0

    def _cured(self, case: Case, session: Session) -> Proposal | Refusal:
        kind, marks = case.kind, self._marks(case)
        cure = self._clients.of(case.store).cure(case.store, session, kind, marks.recovery, marks.now)
        if isinstance(cure, Refusal):
            return cure
        return Proposal(
            changes=cure.changes,
            actions=cure.actions,
            kind=kind,
            objections=cure.objections,
            kinds=(kind,),
            edits=cure.edits,
            places=places(session, cure.edits),
            parts=_to_blame(session, cure.edits),
            also=cure.also,
        )


def not_understood(context: Context, store: Store, failure: Failure) -> str:
    """Tell, behind that nothing explains a failure: what failed, where that was no prompt, and what its user can do."""
    client = context.clients.of(store)
    failed, way = "", way_back(client, store, failure.session)
    again = "prompt it again. If it is refused each time, " if client.takes_prompts(store, failure.session) else ""
    if failure.of_summary:
        how = "was refused" if failure.error.answered else "failed"
        failed = f"; what {how} is the summary that {client.title} asks for"
        if _can_be_shorter(context, store, failure.session):  # a copy is as long
            way = f"go on without one (`{command_line('compact', failure.session)}`)"
    return f"{failed}: {again}{way}, and please send what `{command_line('report', failure.session)}` makes"


def _can_be_shorter(context: Context, store: Store, session_id: str) -> bool:
    """Whether `recoveryd compact` would find something to do."""
    session = store.load(session_id)
    failure = context.clients.of(store).next_failure(session)
    if failure is None:
        return False
    proposer = Proposer(context, ByHand())
    try:
        planned = proposer.propose(Case.begin(store, failure, Refused(Kind.CONTEXT_OVERFLOW)), session)
    except (ActiveError, LeftAloneError):
        return False
    return not isinstance(planned, Refusal) or planned.again_s > 0


def _to_blame(session: Session, edits: Sequence[Edit], accused: Sequence[str] = ()) -> tuple[str, ...]:
    """List the ids of the stored parts among those edited; where there is none, of those accused."""
    known = {part.id for message in session.messages for part in message.parts}
    edited = (edit.part_id for edit in edits if edit.part_id in known)
    return tuple(dict.fromkeys(edited)) or tuple(part for part in dict.fromkeys(accused) if part in known)


def _at_rest(client: Client, case: Case, session: Session) -> None:
    """Raise ActiveError where a turn runs that may look like the fault; of other kinds it is left alone in any case."""
    busy = client.at_work(case.store, session) if KINDS[case.kind].open_turn else None
    if busy is not None:
        raise ActiveError(f"It is left alone: {busy}.")


def _rules(client: Client, wires: Sequence[Wire], case: Case, session: Session, *, invents: bool) -> Provider | Refusal:
    """Return the rules that the next request is held to, or why nothing of this kind is edited."""
    kind, failure, store, provider = case.kind, case.failure, case.store, rules_for(case.failure, wires)
    offer = KINDS[kind].offer if kind in provider.finds else ""
    if KINDS[kind].unrepaired and not (offer and invents):
        return Refusal("; or ".join(filter(None, (KINDS[kind].unrepaired, client.advice(store, failure, kind), offer))))
    from recoveryd.repair import LeftToClient, faults_of

    heals, sent = client.heals, faults_of(kind, provider, wires, session)
    if heals(kind, None, failure.error) and all(heals(v.kind, v.block) for v in sent):
        return _mended(client, case)
    if provider is not NO_RULES:
        return LeftToClient(provider, heals, failure.error, case.refused)
    if KINDS[kind].by_client:
        return provider
    then = next_step(kind, client, store, failure.session)
    return Refusal(f"{why_unknown(failure)}, so nothing can be proved: {then}")


def _by_others(client: Client, session: Session, failure: Failure) -> frozenset[str]:
    """Return the answers that tell nothing of what the model which is asked takes: another's, and of a command."""
    given = {"providerID": failure.provider, "modelID": failure.model}
    answers = ((m, {**given, **m.data}) for m in session.messages if m.role == "assistant")
    others = (m for m, by in answers if client.by_shell(m) or not takes_alike(failure, by["providerID"], by["modelID"]))
    return frozenset(m.id for m in others)


def _may_bind(case: Case) -> bool:
    """Whether thinking may be tied to all before it. Of what was rejected that is not certain, whatever the model."""
    return KINDS[case.kind].signature or binds_thinking(case.failure, case.failure.error.texts)


def _mended(client: Client, case: Case) -> Refusal:
    """Tell that a newer client heals the session without us."""
    goes_on = client.go_on(case.store, case.failure.session)
    return Refusal(f"the newest {client.title} mends nearly all such faults, so update an older one. {goes_on}")
