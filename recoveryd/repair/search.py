"""The search for the cheapest edits that satisfy all rules at once.

Best first over sets of edits, where few turns are refused. Faults of different turns hardly touch each other, so beyond
that one refused turn after the other is settled by a search of its own; and where very many are refused, the first
choices of the repairs are tried on all of them at once. Whatever is found was accepted by the rules.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

from recoveryd.core import (
    KINDS,
    Claims,
    Edit,
    Editor,
    Kind,
    Refusal,
    Request,
    Session,
    Violation,
    Wire,
    edited,
    merged,
    stored,
    why_off,
)
from recoveryd.providers import Provider
from recoveryd.repair.fixes import REPAIRS, RepairInput, Settings
from recoveryd.repair.unsent import Unsent, name_unsent, unsent

LIMIT = 400  # sets of edits looked at, in a session of a hundred turns; a look takes time by the turn
_PATIENCE = 20  # how many times the limit a greedy search may go on
_IN_VAIN = 4  # how often a way may add what leaves no fewer faults; of those that heal, none did more than twice
FEW = 5  # refused turns up to which the cheapest plan for all of them is searched for
Key = tuple[Kind, object]


@dataclass(frozen=True, slots=True)
class _Node:
    """A set of edits, the session with them, what the rules still say of it, of the request of which wire, and what is
    not sent any more. Of the way to it: where it was nearest to a request that is accepted, and what it added since.
    """

    edits: tuple[Edit, ...]
    given: RepairInput
    wire: int
    open: tuple[Violation, ...]
    keys: frozenset[Key]
    unsent: tuple[Unsent, ...] = ()
    nearest: tuple[int, int] = (0, 0)
    in_vain: int = 0

    @property
    def distance(self) -> tuple[int, int]:
        """How far it is from a request that is accepted: the later the wire, and the fewer the faults, the nearer."""
        return -self.wire, len(self.open)


class Search:
    """Finds edits for one session, or says why there are none. `found`: what the rules object to without any.

    Violations of other kinds than `kinds` are not answered; they may only vanish by what answers another.
    """

    def __init__(
        self,
        session: Session,
        wires: Sequence[Wire],
        provider: Provider,
        editor: Callable[[Session], Editor],
        claims: Claims,
        settings: Settings,
        kinds: Collection[Kind],
        *,
        binds: bool,
    ) -> None:
        self._session = session
        self._kinds = kinds
        self._off: dict[Kind, Violation] = {}  # met on the way, and not to be repaired: the first of each kind
        self._wires = wires
        self._provider = provider
        self._editor = editor
        self._claims = claims
        self._settings = settings
        self._binds = binds
        self._known = stored(session)
        self._place = {message.id: index for index, message in enumerate(session.messages)}
        self._before = [wire.build(session) for wire in wires]
        self._refused_before = [provider.check(request, claims) for request in self._before]
        self.found = [violation for found in self._refused_before for violation in found]

    def run(self) -> tuple[Edit, ...] | Refusal:
        """Find the cheapest edits that the rules accept; a refusal names what nothing may be done about.

        All else that was sent is sent then, or the edits tell what is not; what somebody said, or a tool gave back, is.
        """
        found = self._cheapest()
        return found if isinstance(found, Refusal) else name_unsent(found.edits, found.unsent, self._session)

    def _cheapest(self) -> _Node | Refusal:
        start = self._start()
        if len({violation.turn for violation in start.open}) <= FEW:
            whole = self._settle(start, None)
            if whole is not None and all(one.action for one in whole.unsent):
                return whole
        node = self._all_at_once(start)
        while node.open:
            settled = self._settle(
                node, {_key(v, node.given.request) for v in node.open if v.turn == node.open[0].turn}
            )
            if settled is None:
                stuck = (v for v in node.open if not any(self._proposals(node, v)))
                return self._refusal(next(stuck, next(iter(self._off.values()), node.open[0])))
            node = settled
        return node

    def _all_at_once(self, node: _Node) -> _Node:
        shunned: set[object] = set()
        while len({violation.turn for violation in node.open if KINDS[violation.kind].local}) > FEW:
            edits, taken = node.edits, set[tuple[str, str]]()
            for _, violation in sorted({v.turn: v for v in reversed(node.open) if KINDS[v.kind].local}.items()):
                proposals = (p for p in self._proposals(node, violation) if shunned.isdisjoint(map(_deed, p)))
                proposal = next(proposals, ())
                records = {edit.record for edit in proposal}
                if taken.isdisjoint(records):  # else it knows nothing of the other edit of that record: the next round
                    edits, taken = merged(edits, proposal, self._session), taken | records
            following = self._node(edits)
            if following.unsent:  # other choices are made for those messages, or it is left to a search
                where = {one.record[0] for one in following.unsent}
                blamed = {_deed(edit) for edit in edits if edit.message_id in where} - shunned
                if not blamed:
                    return node
                shunned |= blamed
                continue
            if len(following.open) >= len(node.open):
                return node
            node = following
        return node

    def _settle(self, start: _Node, targets: set[Key] | None) -> _Node | None:
        """Find the cheapest way on after which no violation of `targets` (None: none at all) is left, and no new one.

        None when there is none, or it is not found within the limit. For `targets` the search then goes on greedily,
        where the fewest violations are left: still proven by the rules, perhaps not the cheapest. A way after which
        something else is not sent any more is only taken where no other was found.
        """
        order = count()
        heap: list[tuple[tuple[int, ...], int, _Node]] = [((0,), next(order), self._new_way(start))]
        seen: set[int] = set()  # what edits say can be as long as the session, thousands of times: its hash does
        limit, looked, greedy = self._limit(start), 0, False
        while heap and looked < limit * (_PATIENCE if targets else 1):
            node = heapq.heappop(heap)[-1]
            due = self._due(node, start, targets)
            if not due:
                return node
            if looked > limit and targets and not greedy:
                greedy = True
                heap = [(self._rank(known, greedy), number, known) for _, number, known in heap]
                heapq.heapify(heap)
            for proposal in self._branches(node, due, targets is None):
                edits = merged(node.edits, proposal, self._session)
                key = hash(frozenset((e.record, repr(e.after)) for e in edits))
                if key not in seen:
                    seen.add(key)
                    looked += 1
                    following = self._node(edits)
                    if (following.wire, following.open, following.unsent) == (node.wire, node.open, node.unsent):
                        continue  # it answers nothing, and may be done to one record again and again
                    following = self._further(node, following, proposal)
                    if following.in_vain <= _IN_VAIN:
                        heapq.heappush(heap, (self._rank(following, greedy), next(order), following))
        return next((node for *_, node in sorted(heap) if not self._due(node, start, targets)), None)

    @staticmethod
    def _new_way(node: _Node) -> _Node:
        return replace(node, nearest=node.distance, in_vain=0)

    def _further(self, node: _Node, following: _Node, proposal: Sequence[Edit]) -> _Node:
        """Tell of a node, to which a proposal for `node` leads, how often the way there has added something in vain.

        What is stored can be changed or taken out so many times only. But what is added may bring the very fault that
        the next addition answers, without end.
        """
        changes = any(edit.record in self._known and not edit.companion for edit in proposal)
        if changes or not following.open or following.distance < node.nearest:
            return self._new_way(following)
        return replace(following, nearest=node.nearest, in_vain=node.in_vain + 1)

    def _refusal(self, violation: Violation) -> Refusal:
        kind = violation.kind
        where = self._where(violation)
        if kind in self._off:
            what = f"this would also have to be repaired: {violation.reason} ({where})"
            return Refusal(f"{what}; {why_off(kind)}")
        return Refusal(f"nothing that recoveryd may do answers this: {violation.reason} ({kind}, {where})")

    def _where(self, violation: Violation) -> str:
        """Name the place of a violation: in the request that was refused, where it stands there."""
        if violation.turn < 0:
            return f"part {violation.part_id}"
        meant = violation.block and (violation.block.part_id, violation.block.body)
        refused = ((n, one) for n, turn in enumerate(self._before[0].turns) for one in turn.blocks)
        return f"messages.{next((n for n, one in refused if (one.part_id, one.body) == meant), violation.turn)}"

    @staticmethod
    def _limit(start: _Node) -> int:
        return min(LIMIT, max(20, 100 * LIMIT // max(1, len(start.given.request.turns))))

    @staticmethod
    def _due(node: _Node, start: _Node, targets: set[Key] | None) -> list[Violation]:
        if targets is None:
            return list(node.open)
        return [v for v in node.open if (key := _key(v, node.given.request)) in targets or key not in start.keys]

    def _branches(self, node: _Node, due: Sequence[Violation], whole: bool) -> list[tuple[Edit, ...]]:
        """List the next edits to try. With `whole`, about any violation: what answers one may settle another on the
        way.

        Else about the first refused turn, whose violations all have to be answered.
        """
        here = due if whole else [violation for violation in due if violation.turn == due[0].turn]
        return [edits for violation in here for edits in self._proposals(node, violation)]

    def _start(self) -> _Node:
        """Make the node without edits: what was checked at first."""
        wire = next((number for number, found in enumerate(self._refused_before) if found), 0)
        return self._node_of((), self._session, wire, self._before[wire], self._refused_before[wire])

    def _node(self, edits: tuple[Edit, ...]) -> _Node:
        session = edited(self._session, edits)
        requests = [wire.build(session) for wire in self._wires]
        node = self._node_of(edits, session, *self._refused(requests))
        gone = unsent(self._session, self._before, requests, edits)
        return replace(node, unsent=gone) if gone else node

    def _node_of(
        self, edits: tuple[Edit, ...], session: Session, wire: int, request: Request, found: Sequence[Violation]
    ) -> _Node:
        given = RepairInput(request, tuple(found), self._provider, self._editor(session), self._settings, self._claims)
        return _Node(edits, given, wire, tuple(found), frozenset(_key(violation, request) for violation in found))

    def _refused(self, requests: Sequence[Request]) -> tuple[int, Request, list[Violation]]:
        """Return the first of `requests` that is refused, its wire's number, and why; any of them where none is."""
        for wire, request in enumerate(requests):
            if found := self._provider.check(request, self._claims):
                return wire, request, found
        for wire, (before, after) in enumerate(zip(self._before, requests, strict=True)) if self._binds else ():
            if loose := self._provider.bound(before, after):
                reason = "this thinking may be bound to what was edited before it"
                turn = next(n for n, one in enumerate(after.turns) if loose[0] in one.blocks)
                return wire, after, [Violation(Kind.THINKING_SIGNATURE_INVALID, turn, loose[0], reason)]
        return 0, requests[0], []

    def _proposals(self, node: _Node, violation: Violation) -> Iterator[tuple[Edit, ...]]:
        repair = REPAIRS.get(violation.kind)
        if repair is not None and violation.kind not in self._kinds:
            self._off.setdefault(violation.kind, violation)
        elif repair is not None:
            with suppress(ValueError):  # two ids with no room between them: another proposal may do
                yield from (edits for edits in repair(node.given, violation) if edits)

    def _rank(self, node: _Node, greedy: bool) -> tuple[int, ...]:
        """Order nodes by what is not sent any more, cost (at least one more while something is refused), what is still
        refused, later edits first.

        What only adds (a placeholder, a closed turn) costs one however many parts it takes; what changes or takes away
        a stored part costs two each.
        """
        changed = sum(edit.record in self._known for edit in node.edits)
        added = sum(edit.record not in self._known and not edit.companion for edit in node.edits)
        earliest = min((self._place.get(edit.message_id, -1) for edit in node.edits), default=0)
        cost, left = 2 * changed + added + bool(node.open), len(node.open)
        harm = sum(not one.action for one in node.unsent), len(node.unsent)
        return (left, *harm, cost, -earliest) if greedy else (*harm, cost, left, -earliest)


def _deed(edit: Edit) -> object:
    """Identify what is done to a record, whatever is written there."""
    return edit.record, edit.action, edit.after is None


def _key(violation: Violation, request: Request) -> Key:
    """Identify a violation, whatever its turn's number has become."""
    if violation.block is not None:
        return violation.kind, (violation.block.message_id, violation.block.part_id)
    if violation.part_id:
        return violation.kind, violation.part_id
    return violation.kind, request.turns[violation.turn].origins
