"""From a conversation that is too long for its model to the least harm that makes it fit. No model is asked.

In this order, and no further than the target: give back what a failed compaction hid; cut one thing that is a quarter
of the limit alone; clear old tool outputs; those of the present turn; cut old inputs of tools; set the oldest thinking
aside. Where all that can't do it, the documents that no answer stands behind go first. Only where that can't do it
either, and then instead of it, all before a point is replaced by an extract.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf

from recoveryd.core import (
    KINDS,
    Claims,
    Edits,
    Kind,
    Refusal,
    Request,
    Size,
    Violation,
    in_words,
    merged,
    without_collector,
)
from recoveryd.core import edited as with_edits
from recoveryd.repair import shorten_steps as steps
from recoveryd.repair.inputs import ShortenInput
from recoveryd.repair.measure import Measure, at_most, in_bytes, measure
from recoveryd.repair.scales import part_in_bytes
from recoveryd.repair.shorten_steps import ShorterSoFar
from recoveryd.repair.unsent import name_unsent, unsent

_FLAT = "conversations in this form can't be made shorter yet: start a new one"
CLOSING = "[Tool execution completed.]"
_ROOM = 0.1  # of the limit, beside what is asked for the answer
_FAR_BELOW = 0.5  # of the limit by settings: what is refused at so few tokens disproves it
_ESTIMATED = 0.6  # of what was refused, where no limit is known
_OWN = 0.9  # of the limit: where system and tools take more, nothing stored can help
_MOST = 0.5  # of the target: where system and tools take more, all that fits will do
_LESS = "turn off tools and MCP servers"
_TAKE_BACK = "take the prompt with them back"
_ORDER = KINDS[Kind.THINKING_BLOCK_ORDER].group
_SHORT = 20_000  # tokens: less is short for any model
MAX_BYTES = 32 * 1024 * 1024
_FURTHER = 8  # the part of all bytes that stays where half of them was refused too
_FEW_BYTES = 50_000  # of a conversation: fewer are too many for no server, so the rest of the request is to blame


@dataclass(frozen=True, slots=True)
class ShorterPlan:
    """What `shorten` found: edits after which a session fits. `before`, `after`, `target` and `limit` are tokens (of a
    refusal by its bytes, bytes); `limit` is 0 where none is known. `output`: the tokens of the limit that were asked
    for the answer.
    """

    edits: Edits
    before: int
    after: int
    target: int
    limit: int
    measure: Measure
    by_bytes: bool = False
    output: int = 0

    @property
    def uncounted(self) -> str:
        return _uncounted(self.measure)

    def length(self, request: Request) -> float:
        return self.measure.total(request)


@without_collector()
def shorten(case: ShortenInput) -> ShorterPlan | Refusal:
    """Make a session fit with the least harm; checked against the measure and the provider's rules."""
    request = case.wires[0].build(case.session)
    if request.unsendable:
        return Refusal("a part of it can't be sent at all, which is to be mended first", understood=False)
    given_back = tuple(edit for deed in case.editor(case.session).give_back() for edit in deed)
    if request.flat and not given_back:
        return Refusal(_FLAT)
    whole = case.wires[0].build(with_edits(case.session, given_back)) if given_back else request
    unknown = case.by_settings and case.refused and not case.size.asked
    most = at_most(whole, case.usages, case.provider.sources) if unknown else inf
    if most < _FAR_BELOW * case.size.limit:  # and it was refused: the model takes less
        case = replace(case, size=replace(case.size, limit=0))
    by_bytes = case.size.by_bytes
    size = in_bytes() if by_bytes else _measured(case, whole, request)
    before, limit = size.total(request), _limit(case)
    target = _target_bytes(case, request, size) if by_bytes else _target(case, before, size.total(whole))
    obstacle = _obstacle(case, size, limit, before)
    if obstacle is not None:
        return obstacle
    work = ShorterSoFar(case, size, target, request)
    work.add([given_back])
    if request.flat and not work.fits:
        return Refusal(_FLAT)
    if by_bytes:
        steps.take(work, [steps.oldest_media])
    words = not (by_bytes and work.fits)
    _make_room(work, limit or max(before, target))
    refused = _too_long(work) if not work.fits else _sound(work, request)
    if refused is not None:
        return refused
    if not work.edits:
        return _short_enough(case, size, before, target)
    edits = _edits(work, request, words=words)
    if isinstance(edits, Refusal):
        return edits
    known = case.size.most_bytes if by_bytes else case.size.limit
    length = size.total(whole)  # what was refused: not what is left since a failed compaction hid the rest
    amounts = round(length), round(work.total), round(work.target), known
    return ShorterPlan(edits, *amounts, size.unweighed(), by_bytes, case.size.output)


def _edits(work: ShorterSoFar, request: Request, *, words: bool) -> Edits | Refusal:
    """Complete the edits: they tell of all that is not sent any more. What stands before an extract is told with it."""
    edits = merged(work.edits, _lower_usage(work, request) if words else (), work.case.session)
    order = [message.id for message in work.session.messages]
    extract = max((order.index(edit.message_id) for edit in edits if edit.action == "compact"), default=0)
    gone = unsent(work.case.session, [request], [work.request], edits, order[:extract])
    return name_unsent(edits, gone, work.case.session)


def _limit(case: ShortenInput) -> int:
    """Return what the conversation and its answer may have, in tokens or in bytes; 0 where that is not known."""
    if case.size.by_bytes:
        return case.size.most_bytes
    return case.size.limit - case.size.output if case.size.limit else 0


def _too_long(work: ShorterSoFar) -> Refusal:
    case, base = work.case, work.measure.base
    unit = "" if case.size.by_bytes else " tokens"
    aim = f"even without all that may go it would have more than the {_said(case, work.target)}{unit} that are aimed at"
    help_ = "choose a model that takes more, or start a new session" if unit else "start a new session"
    if (pages := work.measure.pages(work.request)) > _MOST * work.target:
        beside = "" if base else ", with system prompt and tools,"
        aim, help_ = f"{aim}, and documents in it{beside} have about {_said(case, pages)}", f"{_TAKE_BACK}, {help_}"
    elif base > _MOST * work.target:
        aim, help_ = f"{aim}, and {_own(work.measure)} have about {_said(case, base)}", f"{_LESS}, {help_}"
    return Refusal(f"{aim}: {help_}")


def _short_enough(case: ShortenInput, size: Measure, before: float, target: float) -> Refusal:
    unit = "" if case.size.by_bytes else " tokens"
    of = f" of {_said(case, known)}" if (known := case.size.most_bytes or case.size.limit) else ""
    if _fitted(case):
        help_ = "prompt it again, and ask for less at once, or choose a model that takes more"
        return Refusal(f"it has about {_said(case, before)}{of}{unit}, and its answer did not fit behind it: {help_}")
    return Refusal(
        f"it has about {_said(case, before)}{of}{unit}{_uncounted(size)}, and {_said(case, target)} are aimed at",
        understood=False,
    )


def _uncounted(size: Measure) -> str:
    """Tell what a length leaves out, as words behind it: nothing tells what system prompt and tools take."""
    return "" if size.measured else " without system prompt and tools"


def _said(case: ShortenInput, amount: float) -> str:
    return in_words(amount, by_bytes=case.size.by_bytes)


def _lower_usage(work: ShorterSoFar, request: Request) -> Edits:
    """Set the stored usage right; `request` is what the answers tell of."""
    tokens, whole = work.measure, work.total
    if work.case.size.by_bytes:
        tokens = measure(request, work.case.usages, Size(), sent=request)
        whole = tokens.total(work.request)
    return work.editor.lower_usage(whole, partial(tokens.since, work.request))


def _measured(case: ShortenInput, whole: Request, sent: Request) -> Measure:
    """Measure by what answers took of all that is given back: most were asked for before it was hidden."""

    def by(known: Size) -> Measure:
        return measure(whole, case.usages, known, sent=sent, without_base=case.without_base)

    known = Size() if case.cleared_since else case.size
    found = by(known)
    room = known.limit - known.output
    if case.refused and not _fitted(case) and not case.cleared_since and not known.asked and found.total(sent) <= room:
        # It was refused, so it is longer than what there is room for: by how much is not told.
        return by(Size(asked=room + 1))
    return found


def _fitted(case: ShortenInput) -> bool:
    """Whether the request itself fitted, and its answer did not: by a limit of settings, which may be wrong, nobody
    knows.
    """
    return case.refused and case.begun and not case.by_settings


def _target(case: ShortenInput, before: float, whole: float) -> float:
    """Return the tokens that are aimed at. `whole`: those with what a failed compaction hid."""
    size = case.size
    if case.fits_below and case.by_hand is None and whole <= (case.fits_below * size.limit or whole):
        return whole
    if not size.limit and not case.refused and case.by_hand is None:
        return max(before, _SHORT, case.aim * _longest_answered(case))
    if not size.limit:
        refused = whole if case.without_base else before  # the summary of the whole was refused, or what is sent now
        return case.aim * before if case.by_hand is not None else _ESTIMATED * refused
    if size.output:
        return min(case.aim * size.limit, size.limit - size.output - _ROOM * size.limit)
    return case.aim * size.limit


def _target_bytes(case: ShortenInput, request: Request, size: Measure) -> float:
    """Return the bytes that are aimed at. Of images so many go at once that a server takes it which takes less than
    Anthropic; where that was in vain, nearly all.
    """
    if case.size.most_bytes:
        return case.aim * case.size.most_bytes
    before = size.total(request)
    if case.by_hand is not None:
        return case.aim * before
    media = sum(part_in_bytes(list(case.provider.sources(block.body))) for block in request.blocks() if block.part_id)
    aim = min(MAX_BYTES, before) / (_FURTHER if case.tried else 2)
    return aim if before - media <= aim else _ESTIMATED * before


def _longest_answered(case: ShortenInput) -> float:
    """Return the tokens of the longest request that the same model answered: so many it takes, if no limit is known."""
    return max((usage.given for usage in case.usages if usage.same_model), default=0)


def _obstacle(case: ShortenInput, size: Measure, limit: float, before: float) -> Refusal | None:
    if case.size.by_bytes and case.refused and before < (case.aim * limit or _FEW_BYTES):
        of = f" of {_said(case, limit)}" if limit else ""
        return Refusal(
            f"the conversation has {_said(case, before)}{of}, so it is not what makes the request too large: "
            "turn off tools and MCP servers, or ask who runs the server or a proxy before it what it takes"
        )
    if case.size.limit and (size.base > _OWN * limit or limit <= _ROOM * case.size.limit):
        return Refusal(_without_room(case, size))
    if not limit and not size.measured and case.refused:
        return Refusal(
            "neither the refusal nor an earlier answer tells how long the conversation is and may be: "
            "choose a model that takes more, or start a new session"
        )
    if case.by_hand is not None and not limit and before < _SHORT * size.a_token:
        unit = "" if case.size.by_bytes else " tokens"
        has = f"it has about {_said(case, before)}{unit}{_uncounted(size)}"
        return Refusal(f"{has}: there is nothing to make shorter", understood=False)
    # What it clears breaks thinking that is bound to it: that would be refused next.
    if case.refused and case.by_itself and not case.binds:
        pruned = case.wires[0].build(with_edits(case.session, case.by_itself))
        if size.total(pruned) < (limit or _ESTIMATED * before) and not any(map(_of_open_turn, _refused(case, pruned))):
            return Refusal(
                "the client clears old tool outputs by itself at the end of the next prompt, and then it fits: "
                "prompt it again, twice if need be"
            )
    if case.refused and case.cleared_since and limit and before < limit:
        return Refusal("the client cleared old tool outputs since, and it fits again: prompt it again")
    return None


def _without_room(case: ShortenInput, size: Measure) -> str:
    """Say that what is not stored takes all that the model takes, and what helps."""
    most, own = in_words(case.size.limit), _own(size)
    nothing = f"nothing {'else that is ' if size.with_pages else ''}stored can help"
    if case.size.output:
        has = f", and {own} have about {in_words(size.base)}" if size.base else ""
        return (
            f"the answer may have {in_words(case.size.output)} of the {most} tokens that the model takes{has}, so "
            f"{nothing}: lower the limit of the answer in the client's settings, or choose a model that takes more"
        )
    help_ = f"{_LESS}, start a new session without it" if size.with_pages else _LESS
    return (
        f"{own} alone take about {in_words(size.base)} of the {most} tokens that the model takes, so {nothing}: "
        f"{help_}, or choose a model that takes more"
    )


def _own(size: Measure) -> str:
    """Name what no answer tells the length of: a document that was sent before the first one counts as part of it."""
    return "system prompt, tools and the first document" if size.with_pages else "system prompt and tools"


def _make_room(work: ShorterSoFar, limit: float) -> None:
    """Take the steps to the target; where it can't be met, and system, tools and documents take most of it, to what
    will do. Not where a person named the target, or wants it shorter than that by hand.
    """
    case, begun, before = work.case, work.edits, work.total
    steps.make_room(work, limit)
    most = (1 - _ROOM) * case.size.limit - case.size.output if case.size.limit else 0
    own = work.measure.base + work.measure.pages(work.request)
    held = case.by_hand is not None and (case.by_hand.target is not None or before <= most)
    if not work.fits and own > _MOST * work.target and most > work.target and not held:
        work.target = most
        work.back_to(begun)
        steps.make_room(work, limit)


def _sound(work: ShorterSoFar, request: Request) -> Refusal | None:
    """Add the edits that others bring about: thinking that is bound to what was edited goes, an open turn is closed.

    `request` is what the first wire builds of the session as it is stored.
    """
    case = work.case
    for number, wire in enumerate(case.wires):
        before = wire.build(case.session) if number else request
        known: set[tuple[Kind, str]] | None = None
        loose = case.provider.bound(before, wire.build(work.session)) if case.binds else ()
        work.add([work.editor.set_aside(loose, "set_aside_thinking")] if loose else [])
        for _ in range(3):
            after = wire.build(work.session) if number else work.request
            new = _refused(case, after)
            if new and known is None:
                known = set(map(_mark, _refused(case, before)))
            new = [v for v in new if _of_open_turn(v) or _mark(v) not in (known or ())]
            if not new:
                break
            turns = {violation.turn for violation in new if violation.turn >= 0}
            work.add([work.editor.close_turn(after.turns[turn], CLOSING) for turn in turns])
        else:
            return Refusal(
                f"the provider would refuse it for another reason then ({new[0].reason}): start a new session"
            )
    return None


def _refused(case: ShortenInput, request: Request) -> list[Violation]:
    """List all that the provider would refuse, with thinking as this session has it: on where there is any.

    Also thinking that is not sent, say of another model, tells that it is on.
    """
    thinks = any(part.type == "reasoning" for message in case.session.messages for part in message.parts)
    return case.provider.check(request, Claims(thinking=frozenset({thinks})))


def _of_open_turn(violation: Violation) -> bool:
    """Whether a fault counts also where it was there before: only the length was told so far."""
    return KINDS[violation.kind].group is _ORDER


def _mark(violation: Violation) -> tuple[Kind, str]:
    return violation.kind, violation.block.part_id if violation.block else ""
