"""How many tokens each block of a request takes: from what providers said of the answers in it, and of its refusal.

Of two good answers one after the other, the one request has the tokens of the other and of what stands between them. So
each stretch between two answers has its own tokens a character: code, words and numbers differ by a factor of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import Any

from recoveryd.core import Block, Json, Request, Size, Usage

IMAGE = 1_600  # tokens, about what one of the usual size takes
_LIKELY = 0.28  # tokens a character, where nothing was measured
_LEAST, _MOST = 0.04, 1.6  # beyond, a usage is not of what stands there: a lie, or something was taken away since
_APART = 2.5  # how far one stretch may be from the usual
_IMAGE_CHARACTERS = IMAGE * 4
_ENOUGH = 4_000  # characters that have to be measured for a rate to be one
_BYTES_OF_A_TOKEN = 4
_OVERHEAD = 24  # characters that frame a block


class _Scales:
    """Weighs each body once: by its characters, or by its bytes."""

    def __init__(self, *, by_bytes: bool = False) -> None:
        self.by_bytes = by_bytes
        self._known: dict[int, tuple[Json, int]] = {}  # by identity of what is weighed: held, so it stays its own

    def weight(self, body: Json) -> int:
        known = self._known.get(id(body))
        if known is None:
            known = self._known[id(body)] = body, part_in_bytes(body) if self.by_bytes else weight(body)
        return known[1]


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
    scales: _Scales = field(default_factory=_Scales, repr=False, compare=False)

    def unweighed(self) -> Measure:
        """Return the same without what it weighed so far, of which a long session has much."""
        return replace(self, scales=_Scales(by_bytes=self.scales.by_bytes))

    @property
    def a_token(self) -> float:
        """Return how many of what it counts a token is, about."""
        return _BYTES_OF_A_TOKEN if self.scales.by_bytes else 1

    def part(self, value: Any, block: Block) -> float:
        """Return what a part of a block takes."""
        return (part_in_bytes(value) if self.scales.by_bytes else characters(value)) * self.rate(block)

    def tokens(self, block: Block) -> float:
        return self.scales.weight(block.body) * self.rate(block)

    def rate(self, block: Block) -> float:
        return self.rates.get(block.message_id, self.usual)

    def total(self, request: Request) -> float:
        """Return the tokens of a request, also of one that was edited."""
        weight, rates, usual = self.scales.weight, self.rates, self.usual
        blocks = (block for turn in request.turns for block in turn.blocks)
        return self.base + sum(weight(block.body) * rates.get(block.message_id, usual) for block in blocks)

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
    characters: int
    tokens: int | None = None
    trusted: bool = True

    @property
    def rate(self) -> float | None:
        if self.tokens is None or not self.characters:
            return None
        rate = self.tokens / self.characters
        return rate if _LEAST <= rate <= _MOST else None


@dataclass(slots=True)
class _Line:
    """A request as one line of messages, each with the characters that stand before it."""

    messages: list[str] = field(default_factory=list)
    before: dict[str, int] = field(default_factory=dict)
    whole: int = 0
    scales: _Scales = field(default_factory=_Scales)


def measure(
    request: Request, usages: Sequence[Usage], refused: Size, *, sent: Request, without_base: bool = False
) -> Measure:
    """Measure what the blocks of `request` take. `refused` is what the refusal told of it, or of `sent`: less of it,
    where a failed compaction hides some.

    `without_base`: what was refused had neither system nor tools, as a client asks for a summary.
    """
    scales = _Scales()
    line = _lined(request, scales)
    known = [usage for usage in usages if usage.message_id in line.before and usage.given > 0]
    stretches = list(_stretches(line, known))
    usual = _usual(stretches)
    measured = bool(known)
    rate = usual or _LIKELY
    rates = {
        message: near if (near := _near(stretch, rate)) is not None else rate
        for stretch in stretches
        for message in stretch.messages
    }
    base = _base(line, known, rates, rate)
    plain = Measure(base, rates, rate, measured, scales=line.scales)
    if not refused.asked:
        return plain
    asked = refused.asked + (base if without_base else 0)
    if sent is not request:
        lines = line, _lined(sent, scales)
        line = min(lines, key=lambda one: abs(asked - base - _taken(one, plain)))
    return _closed(plain, line, [usage for usage in known if usage.message_id in line.before], asked)


def at_most(request: Request, usages: Sequence[Usage], sources: Callable[[Json], Iterator[Json]]) -> float:
    """Return how many tokens a request can have, given what the newest answer of the same model in it took; infinity
    where none tells, or files came since: nobody knows what their pages take. `sources`: those that a block holds.
    """
    line = _lined(request, _Scales())
    known = [usage for usage in usages if usage.same_model and usage.given > 0 and usage.message_id in line.before]
    if not known:
        return inf
    last = max(known, key=lambda usage: line.before[usage.message_id])
    newest = set(line.messages[line.messages.index(last.message_id) :])
    if any(True for block in request.blocks() if block.message_id in newest for _ in sources(block.body)):
        return inf
    return last.given + _MOST * (line.whole - line.before[last.message_id])


def counts_thinking(request: Request, usages: Sequence[Usage]) -> bool:
    """Whether the provider counts all thinking that it is sent back, by what answers took; yes where none tells. The
    templates of many models leave out that of earlier turns, or all.

    If it does, a request has the tokens of the answer before it, and those of what came since, here taken to be like
    the answers' own a character. Answers of much thinking tell it best, and requests that got shorter.
    """
    line = _lined(request, _Scales())
    own, thought = Counter[str](), Counter[str]()
    for block in (block for turn in request.turns if turn.role == "assistant" for block in turn.blocks):
        own[block.message_id] += line.scales.weight(block.body)
        thought[block.message_id] += line.scales.weight(block.body) * block.is_thinking
    known = [usage for usage in usages if usage.same_model and usage.given > 0 and usage.message_id in line.before]
    known.sort(key=lambda usage: line.before[usage.message_id])
    rate = sum(usage.answered for usage in known) / max(1, sum(own[usage.message_id] for usage in known))
    found: list[tuple[float, float, float]] = []  # tokens that are missing; of the thinking; of what came since
    for one, then in pairwise(known):
        since = rate * (line.before[then.message_id] - line.before[one.message_id] - own[one.message_id])
        grown = then.given - one.given - one.answered
        found.append((max(0.0, since - grown), rate * thought[one.message_id], since))  # more may be cleared since
    found.sort()
    telling = [one for one in found if one[1] >= one[2] or one[0] > one[2]]
    kept = (telling if len(telling) > 2 else found)[:-1]  # but the most, which may be a compaction's
    return sum(missing for missing, _, _ in kept) <= sum(thinking for _, thinking, _ in kept) / 2


def _lined(request: Request, scales: _Scales) -> _Line:
    line = _Line(scales=scales)
    for block in request.blocks():
        if block.message_id not in line.before:
            line.messages.append(block.message_id)
            line.before[block.message_id] = line.whole
        line.whole += line.scales.weight(block.body)
    return line


def _stretches(line: _Line, known: Sequence[Usage]) -> Iterable[_Stretch]:
    """Go from the first answer to the last; those of which the usage goes back tell nothing."""
    ordered = sorted(known, key=lambda usage: line.before[usage.message_id])
    places = {message: place for place, message in enumerate(line.messages)}
    for one, then in pairwise(ordered):
        begin, end = places[one.message_id], places[then.message_id]
        grown = then.given - one.given if one.same_model == then.same_model else None
        characters = line.before[then.message_id] - line.before[one.message_id]
        yield _Stretch(line.messages[begin:end], characters, grown if grown is not None and grown > 0 else None)


def _usual(stretches: Iterable[_Stretch]) -> float | None:
    """Return the rate of the stretch in the middle, by characters."""
    rated = sorted((stretch.rate, stretch.characters) for stretch in stretches if stretch.rate is not None)
    whole = sum(characters for _, characters in rated)
    if whole < _ENOUGH:
        return None
    half = whole / 2
    for rate, characters in rated:
        half -= characters
        if half <= 0:
            return rate
    return None


def _near(stretch: _Stretch, usual: float) -> float | None:
    """Return the stretch's own rate, if it can be one: else part of it was taken away since it was sent, or the usage
    lies.
    """
    rate = stretch.rate
    return rate if rate is not None and usual / _APART <= rate <= usual * _APART else None


def _base(line: _Line, known: Sequence[Usage], rates: Mapping[str, float], usual: float) -> float:
    """Return what an answer's request took beside the blocks before it: the least, as of older ones more was sent
    then.
    """
    found: list[float] = []
    told = sorted(known, key=lambda usage: line.before[usage.message_id])
    passed, at = 0.0, 0
    for usage in told:
        while line.messages[at] != usage.message_id:
            here, following = line.messages[at], line.messages[at + 1]
            passed += (line.before[following] - line.before[here]) * rates.get(here, usual)
            at += 1
        found.append(usage.given - passed)
    return min((base for base in found if base >= 0), default=0.0)


def _closed(plain: Measure, line: _Line, known: Sequence[Usage], asked: float) -> Measure:
    """Close the measure with the length of the whole request known: what is left of it is in the messages since the
    last answer.
    """
    last = max((line.before[usage.message_id] for usage in known if usage.same_model), default=None)
    newest = [message for message in line.messages if last is None or line.before[message] >= last]
    since = line.whole - (last or 0)
    of_this_model = last is not None and all(usage.same_model for usage in known)
    before = _taken(line, plain, without=set(newest))
    rate = (asked - plain.base - before) / since if since else 0.0
    if of_this_model and plain.usual / _APART <= rate <= plain.usual * _APART:
        return replace(plain, rates={**plain.rates, **dict.fromkeys(newest, rate)}, measured=True, exact=True)
    whole = _taken(line, plain)
    factor = (asked - plain.base) / whole if whole else 0.0
    if factor > _APART * 1.6:  # what is stored can't be all that: the rest is the client's own
        return replace(plain, base=asked - whole, measured=True, exact=True)
    if factor < 1 / _APART:
        return plain
    rates = {message: rate * factor for message, rate in plain.rates.items()}
    return replace(plain, rates=rates, usual=plain.usual * factor, measured=True, exact=True)


def _taken(line: _Line, plain: Measure, *, without: Collection[str] = ()) -> float:
    """Return the tokens of all messages of a line but some."""
    sizes = (pair for pair in _sizes(line) if pair[0] not in without)
    return sum(plain.rates.get(message, plain.usual) * characters for message, characters in sizes)


def _sizes(line: _Line) -> Iterable[tuple[str, int]]:
    ends = [*(line.before[message] for message in line.messages[1:]), line.whole]
    return ((message, end - line.before[message]) for message, end in zip(line.messages, ends, strict=True))


def weight(body: Json) -> int:
    """Measure the characters of a block, an image counting as those that take as many tokens."""
    return _OVERHEAD + characters(body)


def characters(value: Any) -> int:
    """Measure the characters of a part of a block, as `weight` counts them."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        if value.get("type") in ("image", "document"):
            return _IMAGE_CHARACTERS
        found = 0
        for key, item in value.items():
            if key not in ("type", "signature"):
                found += len(key) + 4 + (len(item) if isinstance(item, str) else characters(item))
        return found
    if isinstance(value, (list, tuple)):
        return sum(map(characters, value))
    return 6


def in_bytes() -> Measure:
    """Make the measure that counts the bytes of a request's conversation, about."""
    return Measure(0.0, {}, 1.0, measured=True, exact=True, scales=_Scales(by_bytes=True))


def part_in_bytes(value: Any) -> int:
    """Measure a part of a request in bytes, about: of images those of their base64."""
    if isinstance(value, str):
        escaped = value.count("\n") + value.count('"') + value.count("\\")
        return escaped + (len(value) if value.isascii() else len(value.encode("utf-8", "replace")))
    if isinstance(value, Mapping):
        return sum(len(key) + 6 + part_in_bytes(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return sum(map(part_in_bytes, value))
    return 6
