"""From a refused session to the cheapest edits that the rules accept, or to an honest refusal."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from recoveryd.edits import edited, merged, stored
from recoveryd.model import Edit, Failure, Kind, Message, Refusal, Session
from recoveryd.repairs import REPAIRS, Bench, Settings
from recoveryd.rules import Claims, Violation, check, unbound
from recoveryd.wire import Request, Wire, build

SEARCH_LIMIT = 400  # plans looked at before the search goes straight ahead; measured: ordinary sessions need under 20
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
    """All that a plan is made from. `recovery` is the id that injected parts are marked with, `now` in ms."""

    session: Session
    failure: Failure
    evidence: Evidence
    settings: Settings
    recovery: str
    now: int

    @property
    def request(self) -> Request:
        return self.request_of(self.failure)

    @staticmethod
    def request_of(failure: Failure) -> Request:
        """The next request of a session: the same model is asked again."""
        return Request(failure.provider, failure.model)


def plan(case: Case) -> Plan | Refusal:
    """The cheapest edits after which the next prompt is accepted; checked, not assumed."""
    if case.evidence.kind not in REPAIRS and case.evidence.kind not in _SIGNATURE:
        return Refusal(UNREPAIRED.get(case.evidence.kind, "this kind of failure is not repaired by editing the store"))
    before = build(case.session, case.request)
    if before.unsendable:
        stuck = before.unsendable[0]
        return Refusal(f"part {stuck.part_id} can't be sent at all: {stuck.reason}")
    claims = claims_of(case, before)
    kinds = tuple(dict.fromkeys(v.kind for v in check(before, claims)))
    if not _explains(kinds, case.evidence.kind):
        return Refusal("the rules find nothing in the stored session that explains this error", understood=False)
    edits = _search(case, before, claims)
    if isinstance(edits, Refusal):
        return edits
    return Plan(edits, kinds, claims)


def objections(session: Session, request: Request, claims: Claims) -> list[Violation]:
    """What the rules still say of a session as it was read back; nothing, if it is healed."""
    wire = build(session, request)
    unsendable = [Violation(Kind.EMPTY_CONTENT, 0, None, stuck.reason) for stuck in wire.unsendable]
    return unsendable or check(wire, claims)


UNREPAIRED: Mapping[Kind, str] = {
    Kind.CONTEXT_OVERFLOW: "the conversation is longer than the model can take: /compact it, or start a new session",
    Kind.REASONING_MISSING: "this provider needs its reasoning back as it was; taking parts away would make it worse",
    Kind.REASONING_ITEM: "this is OpenAI's form of a conversation, which recoveryd can't check yet",
    Kind.ASSISTANT_PREFILL: "the request ended with the assistant's words: a new prompt clears it",
    Kind.TRAILING_WHITESPACE: "the request ended with the assistant's words: a new prompt clears it",
}


def claims_of(case: Case, wire: Wire) -> Claims:
    """What the error tells, looked up in the request that failed, not in the stored list."""
    evidence = case.evidence
    accused: frozenset[str] = frozenset()
    if evidence.kind in _SIGNATURE:
        accused = _accused(case, wire)
    unfinished = frozenset(
        part.id
        for message in case.session.messages
        for part in message.parts
        if part.type == "tool" and (part.data or {}).get("callID") in evidence.ids and _status(part.data) in _OPEN
    )
    return Claims(accused, unfinished, _thinking_modes(case, wire))


_OPEN = ("pending", "running")


def _status(data: Mapping[str, object] | None) -> object:
    state = (data or {}).get("state")
    return state.get("status") if isinstance(state, Mapping) else None


def _accused(case: Case, wire: Wire) -> frozenset[str]:
    """The thinking block that the error names and all behind it; all there is when it names none that can be found."""
    messages = list(case.session.messages)
    at = next((i for i, m in enumerate(messages) if m.id == case.failure.message), len(messages))
    position = case.evidence.position
    named = None
    if position is not None:
        failed = build(
            Session(case.session.store, case.session.id, tuple(messages[:at]), revert=case.session.revert),
            Request(case.failure.provider, case.failure.model, prompt=None),
        )
        named = failed.at(*position)
    thinking = [b.part_id for b in wire.blocks() if b.is_thinking]
    if named is None or named.part_id not in thinking or not case.settings.keep_thinking:
        return frozenset(thinking)
    return frozenset(thinking[thinking.index(named.part_id) :])


def _thinking_modes(case: Case, wire: Wire) -> frozenset[bool]:
    """Whether the next request has thinking on: not stored, so both are asked for, unless the session never had it."""
    prompt = next((m for m in reversed(case.session.messages) if m.role == "user"), None)
    never = not any(b.is_thinking for b in wire.blocks()) and not _variant(prompt)
    return frozenset({False}) if never and case.evidence.kind not in _ORDER else frozenset({True, False})


def _variant(message: Message | None) -> bool:
    if message is None:
        return False
    model = message.data.get("model")
    return bool(message.data.get("variant")) or (isinstance(model, Mapping) and bool(model.get("variant")))


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


@dataclass(frozen=True, slots=True)
class _Node:
    edits: tuple[Edit, ...]
    bench: Bench
    open: tuple[Violation, ...]


def _search(case: Case, before: Wire, claims: Claims) -> tuple[Edit, ...] | Refusal:
    """Best first: the cheapest set of edits, then the one that begins latest. Past the limit, first come."""
    start = _node(case, before, claims, ())
    order = count()
    heap: list[tuple[int, int, int, _Node]] = [(len(_turns(start)), 0, next(order), start)]
    seen: set[frozenset[tuple[tuple[str, str], str]]] = set()
    stuck: Violation | None = None
    looked = 0
    while heap:
        _, _, _, node = heapq.heappop(heap)
        if not node.open:
            return node.edits
        looked += 1
        if looked > SEARCH_LIMIT:
            heap.clear()  # straight ahead from the best so far: still proven by the rules, perhaps not the smallest
        proposals = list(_proposals(node))
        if not proposals:
            stuck = stuck or node.open[0]
        for proposal in proposals[: 1 if looked > SEARCH_LIMIT else None]:
            edits = merged(node.edits, proposal, case.session)
            key = frozenset((e.record, repr(e.after)) for e in edits)
            if key in seen:
                continue
            seen.add(key)
            following = _node(case, before, claims, edits)
            heapq.heappush(heap, (*_rank(case, following), next(order), following))
    if stuck is None:
        return Refusal("no set of edits satisfies all rules at once")
    return Refusal(f"nothing that recoveryd may do answers this: {stuck.reason} ({stuck.kind}, messages.{stuck.turn})")


def _node(case: Case, before: Wire, claims: Claims, edits: tuple[Edit, ...]) -> _Node:
    session = edited(case.session, edits)
    wire = build(session, case.request)
    found = check(wire, claims)
    if not found and edits:
        found = [
            Violation(
                Kind.THINKING_SIGNATURE_INVALID, 0, block, "this thinking may be bound to what was edited before it"
            )
            for block in unbound(before, wire)[:1]
        ]
    bench = Bench(session, wire, case.settings, case.recovery, case.now)
    return _Node(edits, bench, tuple(found))


def _proposals(node: _Node) -> Iterator[tuple[Edit, ...]]:
    """What may answer the first violation; every plan has to answer it, so no other needs to be branched on."""
    violation = node.open[0]
    repair = REPAIRS.get(violation.kind)
    if repair is not None:
        yield from (edits for edits in repair(node.bench, violation) if edits)


def _rank(case: Case, node: _Node) -> tuple[int, int]:
    """Cost so far and at least one more for each turn still refused; then later edits before earlier ones.

    What only adds (a placeholder, a closed turn) costs one however many parts it takes; what changes or takes away
    a stored part costs two each.
    """
    known = stored(case.session)
    changed = [e for e in node.edits if e.record in known]
    added = [e for e in node.edits if e.record not in known and not _is_half(e)]
    place = {message.id: index for index, message in enumerate(case.session.messages)}
    earliest = min((place.get(e.message_id, -1) for e in node.edits), default=0)
    return 2 * len(changed) + len(added) + len(_turns(node)), -earliest


def _is_half(edit: Edit) -> bool:
    """A closed turn is two parts and one deed, a new message and its text likewise."""
    return edit.part_id is None or (edit.action == "close_turn" and (edit.after or {}).get("type") == "step-start")


def _turns(node: _Node) -> set[int]:
    return {violation.turn for violation in node.open}
