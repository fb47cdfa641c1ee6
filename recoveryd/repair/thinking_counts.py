"""Whether a provider counts the thinking that it is sent back, from what it said of the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recoveryd.core import Request, Usage
from recoveryd.repair.measure import APART, Line, lined, middle, of_this_model
from recoveryd.repair.outline import Outline
from recoveryd.repair.scales import Scales

_FURTHER = 1.5  # of all thinking that may be missing: what is beyond was cleared


@dataclass(frozen=True, slots=True)
class _Step:
    """From one answer to the next, in tokens: what came since, by how much more the next request had, and the thinking
    that it lacks if all counts, none, or that of the present turn alone: which begins with a prompt, or also with a
    picture that a tool gave back, as that goes as the user's.
    """

    since: float
    grown: float
    missing: tuple[float, float, float, float]
    shown: bool = False

    def pair(self, way: int) -> tuple[float, float]:
        """Return what would have come in one way of counting, and what is there."""
        return self.grown + self.missing[way], self.since


def counts_thinking(request: Request, usages: Sequence[Usage]) -> bool:
    """Whether the provider counts all thinking that it is sent back, by what answers took; yes where none tells. The
    templates of many models leave out that of earlier turns, or all.

    If it does, a request has the tokens of the answer before it, and those of what came since. Else the thinking of
    that answer is missing, or behind a turn that of the whole turn. What came since may be of another density than the
    answers' own words; so each way of counting is held to the one that suits it best. Nothing is told by what was
    cleared in between, or since, by a repair or the client, nor by pictures, whose tokens differ from model to model.
    """
    line = lined(request, Scales())
    steps = list(_steps(request, line, usages))
    for told in ([one for one in steps if not one.shown], steps):
        all_counts, *others = (_off([step.pair(way) for step in told]) for way in range(4))
        if all_counts != min(others):
            return all_counts < min(others)
    return True


def _steps(request: Request, line: Line, usages: Sequence[Usage]) -> Iterator[_Step]:
    own, thought, shown = Counter[str](), Counter[str](), Counter[str]()
    for turn in request.turns:
        for block in turn.blocks:
            weight = line.scales.weight(block.body)
            own[block.message_id] += weight * (turn.role == "assistant")
            thought[block.message_id] += weight * block.is_thinking
            shown[block.message_id] += block.type in ("image", "document")
    turns = {one.block.message_id: one.turn for one in Outline.of(request).placed if not one.of_user}
    known = of_this_model(line, usages)
    rate = sum(usage.answered for usage in known) / max(1, sum(own[usage.message_id] for usage in known))
    of_turn = unseen = 0.0
    for one, then, messages in line.between(known):
        since = rate * (line.before[then.message_id] - line.before[one.message_id] - own[one.message_id])
        grown, thinking = then.given - one.given - one.answered, rate * thought[one.message_id]
        with_pictures = any(shown[message] for message in messages)
        of_turn, unseen = of_turn + thinking, unseen + thinking
        prompted = turns[one.message_id] != turns[then.message_id]
        missing = (0.0, thinking, of_turn * prompted, unseen * (prompted or with_pictures))
        if since > 0 and not one.cleared and grown >= -_FURTHER * max(missing):
            yield _Step(since, grown, missing, with_pictures)
        of_turn = 0.0 if prompted else of_turn
        unseen = 0.0 if prompted or with_pictures else unseen


def _off(pairs: Sequence[tuple[float, float]]) -> float:
    """Return by how much the first of each pair is off a multiple of the second, by the factor that suits them best."""
    factor = middle([(one / other, other) for one, other in pairs])
    factor = min(max(factor or 1.0, 1 / APART), APART)
    return sum(abs(one - factor * other) for one, other in pairs)
