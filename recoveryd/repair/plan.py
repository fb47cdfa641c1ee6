"""From a refused session to the cheapest edits that the rules accept, or to an honest refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recoveryd.clients.opencode.wire.anthropic import Request, build
from recoveryd.clients.opencode.wire.form import OLD, Form
from recoveryd.core.kinds import UNREPAIRED
from recoveryd.core.model import Edit, Failure, Kind, Refusal, Session
from recoveryd.core.request import Block, Wire
from recoveryd.core.violation import Claims, Violation
from recoveryd.providers.anthropic.media import sources
from recoveryd.providers.anthropic.rules import check
from recoveryd.repair.kinds import REPAIRS, Settings
from recoveryd.repair.search import ALL_KINDS, Search

_ORDER = frozenset({Kind.THINKING_BLOCK_ORDER, Kind.THINKING_DISABLED_VIOLATION})
_STRUCTURE = frozenset({Kind.TOOL_RESULT_MISSING, Kind.TOOL_RESULT_ORPHAN, Kind.THINKING_FINAL_BLOCK})
_SIGNATURE = frozenset({Kind.THINKING_SIGNATURE_INVALID, Kind.THINKING_BLOCK_MODIFIED})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the error says besides its kind: ids of tool calls, and `messages.N.content.M`."""

    kind: Kind
    ids: tuple[str, ...] = ()
    position: tuple[int, int | None] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Edits whose result the rules accept, what they objected to before, and the claims that they were asked with."""

    edits: tuple[Edit, ...]
    kinds: tuple[Kind, ...]
    claims: Claims


@dataclass(frozen=True, slots=True)
class Case:
    """All that a plan is made from. `recovery` is the id that injected parts are marked with, `now` in ms.

    `forms`: how the client may send it; a plan is right under each. `kinds`: those that may be repaired; each edit of a
    plan answers a violation of one of them. `claims` and `known` are those of an earlier plan for the same failure, and
    the kinds that it found: once something is edited, the place that the error names is another one, and what the error
    is about may be healed while the rest is not.
    """

    session: Session
    failure: Failure
    evidence: Evidence
    settings: Settings
    recovery: str
    now: int
    forms: tuple[Form, ...] = (OLD,)
    claims: Claims | None = None
    kinds: frozenset[Kind] = ALL_KINDS
    known: tuple[Kind, ...] = ()

    @property
    def requests(self) -> tuple[Request, ...]:
        return requests_of(self.failure, self.forms)


def requests_of(failure: Failure, forms: Sequence[Form]) -> tuple[Request, ...]:
    """The next request of a session, in each form: the same model is asked again."""
    return tuple(Request(failure.provider, failure.model, form=form) for form in forms)


def plan(case: Case) -> Plan | Refusal:
    """The cheapest edits after which the next prompt is accepted; checked, not assumed."""
    if case.evidence.kind not in REPAIRS and case.evidence.kind not in _SIGNATURE:
        return Refusal(UNREPAIRED.get(case.evidence.kind, "this kind of failure is not repaired by editing the store"))
    claims = case.claims or claims_of(case, build(case.session, case.requests[0]))
    # A provider says either of a rejected signature, and the rules find it as the first: who allowed what was said
    # means that.
    allowed = case.kinds | {Kind.THINKING_SIGNATURE_INVALID} if case.evidence.kind in _SIGNATURE else case.kinds
    search = Search(case.session, case.requests, claims, case.settings, case.recovery, case.now, allowed)
    kinds = tuple(dict.fromkeys(violation.kind for violation in search.found))
    if not any(_explains(kinds, kind) for kind in (case.evidence.kind, *case.known)):
        return Refusal("the rules find nothing in the stored session that explains this error", understood=False)
    edits = search.run()
    return edits if isinstance(edits, Refusal) else Plan(edits, kinds, claims)


def objections(session: Session, requests: Sequence[Request], claims: Claims) -> list[Violation]:
    """What the rules still say of a session as it was read back; nothing, if it is healed."""
    found: list[Violation] = []
    for request in requests:
        found += check(build(session, request), claims)
    return found


def claims_of(case: Case, wire: Wire) -> Claims:
    """What the error tells, looked up in the request that failed, not in the stored list."""
    evidence = case.evidence
    accused: frozenset[str] = frozenset()
    if evidence.kind in _SIGNATURE:
        accused = _accused(case, wire)
    elif evidence.kind is Kind.MEDIA_REJECTED and not any(v.kind is evidence.kind for v in check(wire, Claims())):
        named = _named(case)  # an image that the rules find nothing wrong with: damaged further in, say
        accused = frozenset({named.part_id} if named is not None and any(True for _ in sources(named.body)) else ())
    unfinished = frozenset(
        part.id
        for message in case.session.messages
        for part in message.parts
        if part.type == "tool" and (part.data or {}).get("callID") in evidence.ids and _status(part.data) in _OPEN
    )
    return Claims(accused, unfinished)


_OPEN = ("pending", "running")


def _status(data: Mapping[str, object] | None) -> object:
    state = (data or {}).get("state")
    return state.get("status") if isinstance(state, Mapping) else None


def _named(case: Case) -> Block | None:
    """The block that the error names, looked up in the request that failed."""
    if case.evidence.position is None:
        return None
    messages = case.session.messages
    at = next((i for i, m in enumerate(messages) if m.id == case.failure.message), len(messages))
    session = replace(case.session, messages=messages[:at])
    return build(session, replace(case.requests[0], prompt=None)).at(*case.evidence.position)


def _accused(case: Case, wire: Wire) -> frozenset[str]:
    """The thinking block that the error names and all behind it; all there is when it names none that can be found."""
    named = _named(case)
    thinking = [b.part_id for b in wire.blocks() if b.is_thinking]
    if named is None or named.part_id not in thinking or not case.settings.keep_thinking:
        return frozenset(thinking)
    return frozenset(thinking[thinking.index(named.part_id) :])


def _explains(found: Sequence[Kind], kind: Kind) -> bool:
    """A provider names one fault of a request and stops; which one of several that lie in the order is its choice."""
    accepted = {kind}
    if kind in _SIGNATURE:
        accepted |= _SIGNATURE
    elif kind in _STRUCTURE:
        accepted |= _STRUCTURE
    elif kind in _ORDER:
        accepted |= _ORDER | _STRUCTURE
    return not accepted.isdisjoint(found)
