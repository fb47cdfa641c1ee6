"""How a sentence of a provider is written down, read and looked for.

Letters and digits are compared, nothing else: case, blanks, quotes and punctuation do not count (`classify` says why).
` * ` stands for up to 80 letters, `#` for a number or nothing, `{a/b}` for one of the words, `{/a}` for it or nothing.
`[unless a, b]`: not if these words are anywhere in the error. `media_rejected over bytes`: of a `Limit`; `of one`: of
one image or document, whatever the others are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from recoveryd.core import Kind, Limit

_GAP = 80
_NO_LETTERS = re.compile(r"[\W_]+")
_GROUP = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Row:
    """One sentence of a provider. `kind` is None for a trap; `over` is what it says that there is too much of, `of_one`
    that a single image or document can't be read.

    A text must hold one word of each of `needs` for `pattern` to match, so also `mark`, the longest word that there is
    no other for ("" where there is none).
    """

    kind: Kind | None
    words: str
    said_by: str
    unless: tuple[str, ...] = ()
    over: Limit | None = None
    of_one: bool = False
    needs: tuple[tuple[str, ...], ...] = field(init=False)
    mark: str = field(init=False)
    _pattern: str = field(init=False)

    def __post_init__(self) -> None:
        first, *rest = pieces = self.words.split("*")
        # Atomic groups: a gap is tried once, so that no text makes the search slow.
        pattern = _regex(first) + "".join(f"(?>.{{0,{_GAP}}}?{_regex(piece)})" for piece in rest)
        object.__setattr__(self, "_pattern", pattern)
        needs = sorted((need for piece in pieces for need in _needs(piece)), key=lambda need: -min(map(len, need)))
        object.__setattr__(self, "needs", tuple(needs))  # the longest first: it is rarely there
        object.__setattr__(self, "mark", next((need[0] for need in needs if len(need) == 1), ""))
        object.__setattr__(self, "unless", tuple(map(squeeze, self.unless)))

    @property
    def pattern(self) -> re.Pattern[str]:
        """What a squeezed text is searched for."""
        return _compiled(self._pattern)

    def find(self, text: str) -> re.Match[str] | None:
        """Find where a squeezed text holds the sentence. The look at single words first is what makes it quick."""
        for words in self.needs:
            for word in words:
                if word in text:
                    break
            else:
                return None
        if "*" not in self.words:
            return self.pattern.search(text)
        found = (self.pattern.search(text, start, end) for start, end in self._near(text))
        return next(filter(None, found), None)

    def _near(self, text: str) -> Iterator[tuple[int, int]]:
        """Go through the stretches of a text that can hold the sentence: around the words of it that are there least.

        So a text of words before a gap, again and again, costs no more than another.
        """
        reach = len(self.words) + 12 * self.words.count("#") + _GAP * self.words.count("*")
        words = min(self.needs, key=lambda need: sum(map(text.count, need)))
        start = end = 0
        for place in sorted(place for word in words for place in _places(text, word)):
            if place - reach > end:
                yield start, end
                start = place - reach
            end = place + 2 * reach
        yield start, end


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first looked for: most never are, and there are hundreds."""
    return re.compile(pattern)


def squeeze(text: str) -> str:
    """Squeeze a sentence to its letters and digits, by which it is compared, in lower case: ``messages.1: Invalid
    `signature` `` is messages1invalidsignature.
    """
    return _NO_LETTERS.sub("", text.lower())


def read(table: str) -> tuple[Row, ...]:
    """Read the rows of a table of sentences: a line with a kind (or `none`; `KIND over LIMIT` where they are about a
    `Limit`, `KIND of one` where they are of one image), below it lines with who says what: `who: words | words`.
    """
    return tuple(_rows(table))


def _rows(table: str) -> Iterator[Row]:
    kind: Kind | None = None
    over: Limit | None = None
    of_one = False
    for line in table.strip().splitlines():
        if not line.startswith(" "):
            of_one = line.endswith(" of one")
            head, _, limit = line.removesuffix(" of one").partition(" over ")
            kind, over = None if head == "none" else Kind(head), Limit(limit) if limit else None
            continue
        source, _, sentences = line.strip().partition(": ")
        said_by, _, but = source.removesuffix("]").partition(" [unless ")
        unless = tuple(but.split(", ")) if but else ()
        yield from (Row(kind, words.strip(), said_by, unless, over, of_one) for words in sentences.split(" | "))


def _parts(piece: str) -> list[tuple[str, ...]]:
    """Cut a piece into words and groups, one after the other; a plain word is a group of one."""
    return [
        tuple(map(squeeze, text.split("/"))) if index % 2 else (text,) for index, text in enumerate(_GROUP.split(piece))
    ]


def _regex(piece: str) -> str:
    return "".join(
        r"\d{0,12}".join(map(squeeze, part[0].split("#"))) if len(part) == 1 else f"(?:{'|'.join(part)})"
        for part in _parts(piece)
    )


def _needs(piece: str) -> Iterator[tuple[str, ...]]:
    for part in _parts(piece):
        words = tuple(map(squeeze, part[0].split("#"))) if len(part) == 1 else None
        if words is not None:
            yield from ((word,) for word in words if word)
        elif "" not in part:
            yield part
