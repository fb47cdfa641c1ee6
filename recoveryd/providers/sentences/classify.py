"""A recorded error -> why the provider refused, or None. Pure.

Providers, gateways and clients wrap the cause: JSON inside JSON strings, cut off or broken, folded by a terminal,
quoted by an issue tracker. So its texts (`core.error_text`) are compared by their letters and digits alone with
sentences: those of one provider (`find.SURE`), or else what they have in common (`find.LIKELY`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from recoveryd.core import Kind, RecordedError, Refused, clean
from recoveryd.providers.find import LIKELY, SURE
from recoveryd.providers.sentences.rows import Row, squeeze

_BLANKS = re.compile(r"\s+")
# Smithy's `messages.1.member` counts from one, unlike all others: left out.
_POSITION = re.compile(
    r"messages ?[.\[] ?(\d{1,6})\]?(?! ?\.? ?member|\d)(?: ?\.? ?content ?[.\[] ?(\d{1,6}))?", re.IGNORECASE
)
_ID = re.compile(
    r"(?<![A-Za-z0-9_-])"
    r"(?:toolu_|tooluse_|call[_-]|fc_|chatcmpl-tool-|functions\.|[a-z]{2,20}-(?=[A-Za-z0-9]{8}\b))"
    r"[A-Za-z0-9_:.-]{1,120}"
)
_NAMED = re.compile(
    r"(?:immediately after|tool_result blocks|following ids|duplicate ids|response messages|blocks with id|call_ids?"
    r"|function call|tool calls?|tool call id(?: was)?|tool id)"
    r"\W{1,4}([A-Za-z0-9_-]{6,80}(?:, ?[A-Za-z0-9_-]{6,80}){0,40})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Match:
    kind: Kind
    text: str  # unescaped
    start: int  # in the squeezed text
    end: int


def classify(error: RecordedError) -> Refused | None:
    """Why a provider refused the conversation, with the tool calls and the place that it names.

    None: no fault of the conversation (rate limits, billing, parameters, an abort), not known, or words that fit two
    kinds. Never raises.
    """
    if error.blameless:
        return None
    matches = _find(error.texts)
    only = matches[0] if len(matches) == 1 else None
    kind = only.kind if only is not None else None
    if error.kind is not None and kind is not Kind.MEDIA_REJECTED:
        kind = error.kind  # but a name made from the status 413 says no more than "too large", and images may be that
    if kind is None:
        return None
    return Refused(kind, named_ids(error), _position(only) if only is not None else None)


def candidates(error: RecordedError) -> tuple[Kind, ...]:
    """The kinds that the words of an error fit: more than one is why `classify` says None."""
    return tuple(match.kind for match in _find(error.texts))


def named_ids(error: RecordedError) -> tuple[str, ...]:
    """Ids of tool calls that the error names, each once, in the order of the text."""
    ids: dict[str, None] = {}
    for text in error.texts:
        for match in _ID.finditer(text):
            _add(ids, match.group())
        for match in _NAMED.finditer(text):
            for one in match.group(1).split(","):
                _add(ids, one.strip())
    return tuple(ids)


def _position(found: _Match) -> tuple[int, int | None] | None:
    """The `messages.N[.content.M]` next to the words that matched, in their own sentence."""
    text = _BLANKS.sub(" ", found.text)
    letters = [index for index, char in enumerate(text) if char.isalnum()]
    start, end = letters[found.start], letters[found.end - 1]
    begin = text.rfind(". ", max(0, start - 300), start) + 1 or max(0, start - 300)
    stop = text.find(". ", end, end + 300)
    match = _POSITION.search(text, begin, stop if stop >= 0 else end + 300)
    return (int(match[1]), int(match[2]) if match[2] else None) if match else None


def _add(ids: dict[str, None], one: str) -> None:
    one = one.rstrip(".:-")
    if any(char.isdigit() or char.isupper() for char in one):
        ids[one] = None


def excerpt(error: RecordedError, length: int = 200) -> str:
    """The first words of an error, unescaped, on one line and without control characters."""
    texts = (clean(text, instead=" ") for text in error.texts)
    return clean(next((text for text in texts if len(text) > 12 and " " in text), ""), length)


def _find(texts: tuple[str, ...]) -> tuple[_Match, ...]:
    """The first match of each kind, of the first table that has any."""
    for table in (SURE, LIKELY):
        first: dict[Kind, _Match] = {}
        for match in _matches(table, texts):
            first.setdefault(match.kind, match)
        if first:
            return tuple(first.values())
    return ()


def _matches(table: tuple[Row, ...], texts: tuple[str, ...]) -> Iterator[_Match]:
    """What the rows find, in the order of the table."""
    everything = [squeeze(text) for text in texts]
    left = list(everything)
    for row in table:
        if any(words in text for words in row.unless for text in everything):
            continue
        for index, text in enumerate(left):
            found = row.find(text)
            if found is None:
                continue
            left[index] = row.pattern.sub(_blank, text)  # the words have their meaning: no later row may claim them
            if row.kind is not None:
                yield _Match(row.kind, texts[index], *found.span())


def _blank(match: re.Match[str]) -> str:
    return "\0" * len(match[0])
