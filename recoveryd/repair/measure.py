"""How many tokens each block of a request takes: from what providers said of the answers in it, and of its refusal.

Of two good answers one after the other, the one request has the tokens of the other and of what stands between them. So
each stretch between two answers has its own tokens a character: code, words and numbers differ by a factor of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import inf
from typing import Any

from recoveryd.core import Block, Json, Request, Size, Usage
from recoveryd.repair.scales import Scales, documents, part_in_bytes, part_in_characters

_LIKELY = 0.28  # tokens a character, where nothing was measured
_LEAST, _MOST = 0.04, 1.6  # beyond, a usage is not of what stands there: a lie, or something was taken away since
APART = 2.5  # how far one stretch may be from the usual
_ENOUGH = 4_000  # characters that have to be measured for a rate to be one
_BYTES_OF_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Measure:
    """Tokens a character, by message, and the tokens of what is no block: system and tools.

    `exact`: the whole was told by a refusal, or the newest stretch by an answer. One `in_bytes` counts bytes, wherever
    it says tokens.
    """

    base: float
    rates: Mapping[str, float]
    usual: float
    measured: bool  # false: nothing but a guess
    exact: bool = False
    with_pages: bool = False  # of `base`: a document stands before the first answer that tells what was sent
    scales: Scales = field(default_factory=Scales, repr=False, compare=False)

    def unweighed(self) -> Measure:
        """Return the same without what it weighed so far, of which a long session has much."""
        return replace(self, scales=Scales(by_bytes=self.scales.by_bytes, pages=self.scales.pages))

    @property
    def a_token(self) -> float:
        """Return how many of what it counts a token is, about."""
        return _BYTES_OF_A_TOKEN if self.scales.by_bytes else 1

    def part(self, value: Any, block: Block) -> float:
        """Return what a part of a block takes."""
        if self.scales.by_bytes:
            return part_in_bytes(value) * self.rate(block)
        pages = self.scales.pages.get(block.message_id, 0) * documents({"content": value})
        return (part_in_characters(value) + pages) * self.rate(block)

    def tokens(self, block: Block) -> float:
        return self.scales.of(block) * self.rate(block)

    def rate(self, block: Block) -> float:
        return self.rates.get(block.message_id, self.usual)

    def total(self, request: Request) -> float:
        """Return the tokens of a request, also of one that was edited."""
        weight, rates, usual = self.scales.of, self.rates, self.usual
        blocks = (block for turn in request.turns for block in turn.blocks)
        return self.base + sum(weight(block) * rates.get(block.message_id, usual) for block in blocks)

    def pages(self, request: Request) -> float:
        """Return the tokens of the documents of which a usage or a refusal tells what they take."""
        blocks = (block for block in request.blocks() if block.message_id in self.scales.pages)
        return sum(self.tokens(block) for block in blocks if documents(block.body))

    def since(self, request: Request, message_id: str) -> float:
        """Return the tokens of a message and of all behind it; 0 where it is not sent."""
        found = passed = 0.0
        for block in (block for turn in reversed(request.turns) for block in reversed(turn.blocks)):
            passed += self.tokens(block)
            if block.message_id == message_id:
                found = passed
            elif found:
                break
        return found


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What stands from one answer to the next: its messages, its characters, and its tokens if they are known."""

    messages: Sequence[str]
    characters: float
    tokens: int | None = None
    trusted: bool = True

    @property
    def rate(self) -> float | None:
        if self.tokens is None or not self.characters:
            return None
        rate = self.tokens / self.characters
        return rate if _LEAST <= rate <= _MOST else None


@dataclass(slots=True)
class Line:
    """A request as one line of messages: the characters of each and of all before it, with the pages in them."""

    scales: Scales
    words: Mapping[str, int]  # characters without pages, by message
    documents: Mapping[str, int]  # their weight, by message
    sizes: Mapping[str, float] = field(init=False)
    before: Mapping[str, float] = field(init=False)
    whole: float = field(init=False)

    def __post_init__(self) -> None:
        self.weigh()

    def weigh(self) -> None:
        """Reckon with the pages that are known by now."""
        pages, held = self.scales.pages, self.documents
        self.sizes = {one: words + pages.get(one, 0) * held.get(one, 0) for one, words in self.words.items()}
        *before, self.whole = accumulate(self.sizes.values(), initial=0.0)
        self.before = dict(zip(self.sizes, before, strict=True))

    def between(self, known: Iterable[Usage]) -> Iterator[tuple[Usage, Usage, Sequence[str]]]:
        """Go from each answer to the next, with the messages from the one up to the other."""
        messages = list(self.sizes)
        places = {message: place for place, message in enumerate(messages)}
        for one, then in pairwise(sorted(known, key=lambda usage: self.before[usage.message_id])):
            yield one, then, messages[places[one.message_id] : places[then.message_id]]


def measure(
    request: Request, usages: Sequence[Usage], refused: Size, *, sent: Request, without_base: bool = False
) -> Measure:
    """Measure what the blocks of `request` take. `refused` is what the refusal told of it, or of `sent`: less of it,
    where a failed compaction hides some.

    `without_base`: what was refused had neither system nor tools, as a client asks for a summary.
    """
    scales = Scales()
    line = lined(request, scales)
    known = [usage for usage in usages if usage.message_id in line.before and usage.given > 0]
    scales.pages.update(_answered_pages(line, known))
    line.weigh()
    plain = _plain(line, known)
    if not refused.asked:
        return plain
    asked = refused.asked + (plain.base if without_base else 0)
    lines = [line] if sent is request else [line, lined(sent, scales)]
    line = min(lines, key=lambda one: abs(asked - plain.base - _taken(one, plain)))
    known = [usage for usage in known if usage.message_id in line.before]
    scales.pages.update(_refused_pages(plain, line, known, asked))
    line.weigh()
    return _closed(plain, line, known, asked)


def _plain(line: Line, known: Sequence[Usage]) -> Measure:
    """Measure by what answers took alone."""
    stretches = list(_stretches(line, known))
    usual = _usual(stretches)
    rate = usual or _LIKELY
    rates = {
        message: near if (near := _near(stretch, rate)) is not None else rate
        for stretch in stretches
        for message in stretch.messages
    }
    first = min((line.before[usage.message_id] for usage in known), default=inf)
    with_pages = any(line.before[message] < first for message in line.documents)
    base = _base(line, known, rates, rate)
    return Measure(base, rates, rate, measured=bool(known), with_pages=with_pages, scales=line.scales)


def _answered_pages(line: Line, known: Sequence[Usage]) -> Mapping[str, float]:
    """Return what the pages of a document weigh, by message: what a stretch took that is not of its words."""
    stretches = list(_stretches(line, known)) if line.documents else []
    usual = _usual(one for one in stretches if not any(message in line.documents for message in one.messages))
    rate = usual or _LIKELY
    found: dict[str, float] = {}
    for one in stretches:
        held = {message: line.documents[message] for message in one.messages if message in line.documents}
        if held and (one.tokens or 0) > APART * rate * one.characters:
            more = (one.tokens or 0) / rate - one.characters
            found |= dict.fromkeys(held, more / sum(held.values()))
    return found


def _refused_pages(plain: Measure, line: Line, known: Sequence[Usage], asked: float) -> Mapping[str, float]:
    """Return what the pages weigh of the documents that came since the last answer, or else of those that no answer
    tells of: what is left of the whole request that is not of its words.
    """
    newest = _newest(line, known)
    behind = [message for message in line.documents if message in newest]
    held = behind or [message for message in line.documents if message not in plain.scales.pages]
    whole = _taken(line, plain)
    left = asked - plain.base - whole
    words = whole - _taken(line, plain, without=newest) if behind else whole
    if not held or left <= (APART - 1) * words:
        return {}
    each = left / sum(line.documents[message] for message in held)
    return {message: each / plain.rates.get(message, plain.usual) for message in held}


def _newest(line: Line, known: Sequence[Usage]) -> Collection[str]:
    """Return the messages since the last answer of this model, itself included."""
    last = max((line.before[usage.message_id] for usage in known if usage.same_model), default=0)
    return {message for message, before in line.before.items() if before >= last}


def at_most(request: Request, usages: Sequence[Usage], sources: Callable[[Json], Iterator[Json]]) -> float:
    """Return how many tokens a request can have, given what the newest answer of the same model in it took; infinity
    where none tells, or files came since: nobody knows what their pages take. `sources`: those that a block holds.
    """
    line = lined(request, Scales())
    known = of_this_model(line, usages)
    if not known:
        return inf
    last = max(known, key=lambda usage: line.before[usage.message_id])
    newest = {message for message, before in line.before.items() if before >= line.before[last.message_id]}
    if any(True for block in request.blocks() if block.message_id in newest for _ in sources(block.body)):
        return inf
    return last.given + _MOST * (line.whole - line.before[last.message_id])


def of_this_model(line: Line, usages: Iterable[Usage]) -> list[Usage]:
    """List the usages that count for the model that is asked: its own, of more than nothing, with an answer that is
    sent.
    """
    return [usage for usage in usages if usage.same_model and usage.given > 0 and usage.message_id in line.before]


def lined(request: Request, scales: Scales) -> Line:
    """Line up a request's messages, with what each weighs."""
    words, held = Counter[str](), Counter[str]()
    last = ""
    for block in request.blocks():
        last = last if block.message_id in words else block.message_id
        words[last] += scales.weight(block.body)
        if count := documents(block.body):
            held[block.message_id] += count
    return Line(scales, words, held)


def _stretches(line: Line, known: Sequence[Usage]) -> Iterable[_Stretch]:
    """Go from the first answer to the last; those of which the usage goes back tell nothing."""
    for one, then, messages in line.between(known):
        grown = then.given - one.given if one.same_model == then.same_model else None
        characters = line.before[then.message_id] - line.before[one.message_id]
        yield _Stretch(messages, characters, grown if grown is not None and grown > 0 else None)


def _usual(stretches: Iterable[_Stretch]) -> float | None:
    """Return the rate of the stretch in the middle, by characters."""
    rated = [(stretch.rate, stretch.characters) for stretch in stretches if stretch.rate is not None]
    return middle(rated) if sum(characters for _, characters in rated) >= _ENOUGH else None


def middle(weighed: Iterable[tuple[float, float]]) -> float | None:
    """Return the first in the middle, by the second of each; None of none."""
    ordered = sorted(weighed)
    half = sum(weight for _, weight in ordered) / 2
    reached = accumulate(weight for _, weight in ordered)
    return next((value for (value, _), passed in zip(ordered, reached, strict=True) if passed >= half), None)


def _near(stretch: _Stretch, usual: float) -> float | None:
    """Return the stretch's own rate, if it can be one: else part of it was taken away since it was sent, or the usage
    lies.
    """
    rate = stretch.rate
    return rate if rate is not None and usual / APART <= rate <= usual * APART else None


def _base(line: Line, known: Sequence[Usage], rates: Mapping[str, float], usual: float) -> float:
    """Return what an answer's request took beside the blocks before it: the least, as of older ones more was sent
    then.
    """
    found: list[float] = []
    given, passed = {usage.message_id: usage.given for usage in known}, 0.0
    for message, size in line.sizes.items():
        if message in given:
            found.append(given[message] - passed)
        passed += size * rates.get(message, usual)
    return min((base for base in found if base >= 0), default=0.0)


def _closed(plain: Measure, line: Line, known: Sequence[Usage], asked: float) -> Measure:
    """Close the measure with the length of the whole request known: what is left of it is in the messages since the
    last answer.
    """
    last = max((line.before[usage.message_id] for usage in known if usage.same_model), default=None)
    newest = _newest(line, known)
    since = line.whole - (last or 0)
    alone = last is not None and all(usage.same_model for usage in known)
    before = _taken(line, plain, without=newest)
    rate = (asked - plain.base - before) / since if since else 0.0
    if alone and plain.usual / APART <= rate <= plain.usual * APART:
        return replace(plain, rates={**plain.rates, **dict.fromkeys(newest, rate)}, measured=True, exact=True)
    whole = _taken(line, plain)
    factor = (asked - plain.base) / whole if whole else 0.0
    if factor > APART * 1.6:  # what is stored can't be all that: the rest is the client's own
        pages = plain.with_pages or any(message not in plain.scales.pages for message in line.documents)
        return replace(plain, base=asked - whole, measured=True, exact=True, with_pages=pages)
    if factor < 1 / APART:
        return plain
    rates = {message: rate * factor for message, rate in plain.rates.items()}
    return replace(plain, rates=rates, usual=plain.usual * factor, measured=True, exact=True)


def _taken(line: Line, plain: Measure, *, without: Collection[str] = ()) -> float:
    """Return the tokens of all messages of a line but some."""
    sizes = (pair for pair in line.sizes.items() if pair[0] not in without)
    return sum(plain.rates.get(message, plain.usual) * characters for message, characters in sizes)


def in_bytes() -> Measure:
    """Make the measure that counts the bytes of a request's conversation, about."""
    return Measure(0.0, {}, 1.0, measured=True, exact=True, scales=Scales(by_bytes=True))
