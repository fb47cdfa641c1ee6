"""What to write about a stuck session, of whatever kind, and how to tell that what is read back is sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from recoveryd.clients import Client, Store
from recoveryd.core import (
    KINDS,
    ActiveError,
    Change,
    Claims,
    Edit,
    Failure,
    Kind,
    LeftAloneError,
    Marks,
    Refusal,
    Refused,
    Session,
    Wire,
)
from recoveryd.diagnose import Context, left_alone
from recoveryd.heal.shorten import shortened
from recoveryd.providers import NO_RULES, Provider, binds_thinking, classify, rules_for, size_of, unknown
from recoveryd.repair import Case, LeftToClient, Settings, objections, plan
from recoveryd.tell import actions_of, names, places, sentence


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes that heal a session. `objections` says what is still wrong with it, as it is read back; nothing: healed.

    `detail` says what was done once it is, `would` the same before, each with `also`. `places` says of each action
    where it is done; a renaming has neither places nor edits. `lead` stands before what is done; `files` are written
    first, for the model to read. `kinds` are what the rules found wrong, also before an
    earlier proposal was written; `claims` are what the provider's error said. Both are for a second plan.
    """

    changes: tuple[Change, ...]
    actions: tuple[str, ...]
    kind: Kind
    objections: Callable[[Session], Sequence[str]]
    kinds: tuple[Kind, ...]
    edits: tuple[Edit, ...] = ()
    places: tuple[str, ...] = ()
    claims: Claims | None = None
    also: str = ""
    lead: str = ""
    files: Mapping[Path, str] = field(default_factory=dict)

    @property
    def detail(self) -> str:
        return self._told(done=True)

    @property
    def would(self) -> str:
        return self._told(done=False)

    def _told(self, *, done: bool) -> str:
        said = sentence(self.actions, self.kind, done=done)
        return (f"{self.lead}{said[:1].lower()}{said[1:]}" if self.lead else said) + self.also

    @property
    def parts(self) -> tuple[str, ...]:
        """Those that are edited."""
        return tuple(dict.fromkeys(edit.part_id for edit in self.edits if edit.part_id))


class Proposer:
    """Makes proposals by the configuration, and what the user ordered since. Writes nothing; errors of the store pass.

    `share`: a person wants sessions shorter, stuck or not: to this share of what their model takes.
    ActiveError: what is to be ended may still be under way. LeftAloneError: the user wants it so.
    """

    def __init__(self, context: Context, share: float | None = None) -> None:
        self._share = share
        self._context = context
        self._config = context.config
        self._clients = context.clients

    def propose(
        self, store: Store, session: Session, failure: Failure, kind: Kind, name: str, earlier: Proposal | None = None
    ) -> Proposal | Refusal:
        """`name` is the recovery's id; `earlier` is what was proposed for the same failure before the client wrote."""
        self.heed(store, session.id)
        if kind not in self._config.kinds:
            return Refusal(f"{kind} is not among the kinds that your configuration names")
        if KINDS[kind].cured_by_client:
            return self._cured(store, session, kind, name, self._context.now_ms)
        return self._editing(store, session, failure, kind, name, earlier)

    def heed(self, store: Store, session: str) -> None:
        """LeftAloneError if the user wants this session left alone by now."""
        if left_alone(self._context, store, session):
            raise LeftAloneError("You said to leave this session or folder alone (`recoveryd ignore` lists both).")

    def _editing(
        self, store: Store, session: Session, failure: Failure, kind: Kind, name: str, earlier: Proposal | None
    ) -> Proposal | Refusal:
        client = self._clients.of(store)
        wires = client.wires(store, failure)
        provider = _rules(client, wires, failure, kind)
        if isinstance(provider, Refusal):
            return provider
        if (shorter := self._shorter(store, session, failure, kind, name)) is not None:
            return shorter
        # Of other kinds a turn that runs is left alone in any case; this one it may look like.
        busy = client.at_work(store, session) if KINDS[kind].open_turn else None
        if busy is not None:
            raise ActiveError(f"It is left alone: {busy}.")
        settings = Settings(self._config.placeholder, self._config.cancelled_text, self._config.keep_thinking)
        refused = classify(failure.error)
        evidence = replace(refused, kind=kind) if refused is not None else Refused(kind)
        claims, known = (earlier.claims, earlier.kinds) if earlier else (None, ())
        editor, kinds, binds = client.editor(self._marks(name)), frozenset(self._config.kinds), _may_bind(failure, kind)
        planned = plan(Case(session, failure, evidence, settings, wires, provider, editor, claims, kinds, known, binds))
        if isinstance(planned, Refusal):
            return planned
        asked, late = planned.claims, client.unread(store, session.id, self._context.clock())

        def still(found: Session) -> list[str]:
            return [v.reason for v in objections(found, client.wires(store, failure), provider, asked)]

        return Proposal(
            changes=tuple(store.changes(session, planned.edits)),
            actions=actions_of(planned.edits),
            kind=kind,
            objections=still,
            kinds=tuple(dict.fromkeys((*known, *planned.kinds))),
            edits=planned.edits,
            places=places(session, planned.edits),
            claims=asked,
            also=f"; {late}" if late else "",
        )

    def _marks(self, name: str) -> Marks:
        return Marks(name, self._context.now_ms)

    def _shorter(
        self, store: Store, session: Session, failure: Failure, kind: Kind, name: str
    ) -> Proposal | Refusal | None:
        """That less of it is sent, so that it is taken; None where its length is not the fault, or not all of it."""
        if kind is Kind.MEDIA_REJECTED and size_of(failure.error).by_bytes:
            fewer = self._less(store, session, failure, kind, name)
            return None if isinstance(fewer, Refusal) else fewer
        return self._less(store, session, failure, kind, name) if KINDS[kind].shortened else None

    def _less(self, store: Store, session: Session, failure: Failure, kind: Kind, name: str) -> Proposal | Refusal:
        client, by_hand = self._clients.of(store), self._share is not None
        if not (self._config.compact.enabled or by_hand):
            return Refusal("`[compact] enabled` is off: /compact it, or run `recoveryd compact`")
        known = self._clients.shortening(store, session, failure, self._marks(name))
        if known is None:
            return Refusal("sessions of this client can't be made shorter yet: /compact it, or start a new session")
        share = self._config.compact.target if self._share is None else self._share
        wires = client.wires(store, failure)
        done = shortened(session, failure, known, wires, rules_for(failure, wires), share=share, by_hand=by_hand)
        if isinstance(done, Refusal):
            return done
        edits = done.shorter.edits
        return Proposal(
            changes=tuple(store.changes(session, edits)),
            actions=actions_of(edits),
            kind=kind,
            objections=done.objections,
            kinds=(kind,),
            edits=edits,
            places=places(session, edits),
            lead=done.lead,
            also=f"{done.tail}{names(session, edits)}",
            files=done.wholes,
        )

    def _cured(self, store: Store, session: Session, kind: Kind, name: str, now: int) -> Proposal | Refusal:
        cure = self._clients.of(store).cure(store, session, kind, name, now)
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
            also=cure.also,
        )


def _rules(client: Client, wires: Sequence[Wire], failure: Failure, kind: Kind) -> Provider | Refusal:
    """What the next request is held to, or why nothing of this kind is edited."""
    if KINDS[kind].unrepaired:
        return Refusal(KINDS[kind].unrepaired)
    if client.heals(kind):
        return Refusal(f"the newest {client.title} mends this by itself: update it. {client.go_on(failure.session)}")
    provider = rules_for(failure, wires)
    if provider is not NO_RULES:
        return LeftToClient(provider, client.heals)
    if KINDS[kind].by_client:
        return provider
    return Refusal(f"{unknown(failure)}, so nothing can be proved: {KINDS[kind].instead}")


def _may_bind(failure: Failure, kind: Kind) -> bool:
    """Whether thinking may be tied to all before it. Of what was rejected that is not certain, whatever the model."""
    return KINDS[kind].signature or binds_thinking(failure, failure.error.texts)
