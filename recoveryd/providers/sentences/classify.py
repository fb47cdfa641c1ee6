"""A recorded error -> why the provider refused, or None. Pure.

Providers, gateways and clients wrap the cause: JSON inside JSON strings, cut off or broken, folded by a terminal,
quoted by an issue tracker. So its texts (`core.error_text`) are compared by their letters and digits alone with
sentences: those of one provider (`find.SURE`), or else what they have in common (`find.LIKELY`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from recoveryd.core import Kind, Limit, RecordedError, Refused
from recoveryd.providers.find import LIKELY, SURE
from recoveryd.providers.sentences import named
from recoveryd.providers.sentences.other_causes import (
    counts_in_time,
    fails_for_a_while,
    of_a_limit,
    of_no_media,
    other_cause,
    unread,
)
from recoveryd.providers.sentences.rows import Row, squeeze

_TOO_LARGE = 413  # RFC 9110: the content is larger than the server takes


@dataclass(frozen=True, slots=True)
class _Match:
    kind: Kind
    text: str  # unescaped
    start: int  # in the squeezed text
    end: int
    row: Row
    vague: bool  # of a row of `LIKELY`


def classify(error: RecordedError) -> Refused | None:
    """Classify a recorded error: why a provider refused the conversation, with the tool calls and the place that it
    names.

    None: no fault of the conversation (rate limits, billing, parameters, an abort), not known, or words that fit two
    kinds. Never raises.
    """
    if error.blameless or error.cause is not None:
        return None
    matches = _find(error.texts)
    only = matches[0] if len(matches) == 1 else None
    if only is not None and _may_mean_another(only, error):
        return None
    kind = only.kind if only is not None else None
    if error.kind is not None and kind is not Kind.MEDIA_REJECTED:
        # A name made from the status 413 says no more than "too large", and images may be that; one made from words of
        # a rate limit, an account or a setting ("too many tokens") says nothing.
        kind = error.kind if matches or other_cause(error) is None else None
    elif kind is None and not matches and error.status == _TOO_LARGE and other_cause(error) is None:
        kind = Kind.CONTEXT_OVERFLOW  # whatever it is called: gateways say it in any words
    if kind is None or (kind is Kind.CONTEXT_OVERFLOW and of_a_limit(error)):
        return None  # a rate limit that counts tokens is told with 413, too, which clients take for a length
    place, field, sort = None, "", ""
    if only is not None:
        where = only.text, only.start, only.end
        place, field = named.named_place(*where, error.texts)
        sort = named.named_sort(*where, field) if kind is Kind.MEDIA_REJECTED else ""
    limit, sent = named.named_bytes(error.texts) if kind is Kind.MEDIA_REJECTED else (0, 0)
    most = named.most_media(error.texts) if kind is Kind.MEDIA_REJECTED else 0
    said, over, whose = (only.row.words, only.row.over, only.row.said_by) if only is not None else ("", None, "")
    ids, items, types = named_ids(error), named.named_items(error.texts), named.named_media_types(error.texts)
    name, own = named.longest_of_call(error.texts) if kind is Kind.TOOL_CALL_INVALID else (0, 0)
    long = kind is Kind.TOOL_CALL_INVALID and named.of_length(error.texts)
    of_one = only is not None and only.row.of_one
    of_none = kind is Kind.MEDIA_REJECTED and of_no_media(error)
    told = (kind, ids, place, field, said, items, limit, sent, most, sort, over, name, own, long, True, types, whose)
    return Refused(*told, continued=error.continued, of_one=of_one, of_none=of_none)


def _may_mean_another(only: _Match, error: RecordedError) -> bool:
    """Whether words that fit one kind have another reading, of which one is wrong."""
    if only.row.over is Limit.NUMBER and counts_in_time(error):
        return True
    # Who can't verify it now has not refused it, and all thinking would go.
    now = only.kind in (Kind.THINKING_SIGNATURE_INVALID, Kind.REASONING_ITEM) and fails_for_a_while(error)
    return only.vague and (now or unread(error))


def candidates(error: RecordedError) -> tuple[Kind, ...]:
    """List the kinds that the words of a recorded error fit: more than one is why `classify` says None."""
    return tuple(match.kind for match in _find(error.texts))


def named_ids(error: RecordedError) -> tuple[str, ...]:
    """List, with the kind, the ids of tool calls that a recorded error names, each once, in the order of the text."""
    return named.named_calls(error.texts)


def known_sentences(text: str) -> list[str]:
    """List the sentences of the tables, or pieces of them, that a text holds: words of ours, and nothing of its own."""
    letters = squeeze(text[:100_000])
    told = [piece for piece, squeezed in _pieces() if squeezed in letters]
    return told or [row.words for row in (*SURE, *LIKELY) if row.find(letters)]  # of short pieces alone


@cache
def _pieces() -> tuple[tuple[str, str], ...]:
    """Return the sentences of the tables without their gaps, and squeezed for comparison; short ones are left out."""
    pieces = dict.fromkeys(piece.strip() for row in (*SURE, *LIKELY) for piece in re.split(r"[*#{}]", row.words))
    return tuple((piece, squeeze(piece)) for piece in pieces if len(squeeze(piece)) > 7)


@lru_cache(maxsize=16)
def _find(texts: tuple[str, ...]) -> tuple[_Match, ...]:
    """Return the first match of each kind, of the first table that has any. One error is asked for several times."""
    for table in (SURE, LIKELY):
        first: dict[Kind, _Match] = {}
        for match in _matches(table, texts):
            first.setdefault(match.kind, match)
        if first:
            return tuple(first.values())
    return ()


def _matches(table: tuple[Row, ...], texts: tuple[str, ...]) -> Iterator[_Match]:
    """Go through what the rows find, in the order of the table."""
    everything = [squeeze(text) for text in texts]
    left = list(everything)
    for row in table:
        marked = [index for index, text in enumerate(left) if row.mark in text]  # few: asked of hundreds of rows
        if not marked or any(words in text for words in row.unless for text in everything):
            continue
        for index in marked:
            text = left[index]
            found = row.find(text)
            if found is None:
                continue
            left[index] = row.pattern.sub(_blank, text)  # the words have their meaning: no later row may claim them
            if row.kind is not None:
                yield _Match(row.kind, texts[index], *found.span(), row, table is LIKELY)


def _blank(match: re.Match[str]) -> str:
    return "\0" * len(match[0])
