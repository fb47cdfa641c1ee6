"""What a refusal tells of the length of a request: its numbers, in whatever sentence a provider puts them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from recoveryd.core import Kind, RecordedError, Size
from recoveryd.providers.sentences.named import named_bytes

_NUMBER = r"(\d[\d,._]{0,14}\d|\d)"
_NAMES = ("asked", "limit", "output", "whole")
_BETWEEN = r"[\W_]{0,8}"
_GAP = r".{0,80}?"
_FEWEST = 256  # tokens: less is no model's limit, but a number of something else
_MOST = 100_000_000
_LOOKED_AT = 16_000  # characters of a text
_BLANKS = re.compile(r"\s+")
_BYTES = re.compile(
    r"request (exceeds the maximum size|body (is )?too large|entity too large|too large|size is too large)"
    r"|(payload|content) (is )?too large|(payload|request body)( size)? (\d{1,15} )?exceed"
    r"|exceeds the maximum (allowed )?(number of )?bytes|max bytes to request body|total message size \d{1,15} exceeds"
    r"|(request body|payload|request) size limit exceeded|request body: length limit exceeded"
    r"|too many total text bytes",
    re.IGNORECASE,
)
# What Copilot says of a 413, and many of a broken request.
_UNREAD = "failed to parse request"
_ONE_THING = re.compile(r"\b(image|picture|photo|file|document|attachment|media|pdf)s?\b", re.IGNORECASE)
_TOKENS = re.compile(r"\btokens?\b|context (length|window|limit)", re.IGNORECASE)

_LENGTH = re.compile(r"\btokens\b|context (length|window|limit|size|shift|overflow|is full)|\bkv cache", re.IGNORECASE)


def compiled(*sentences: str) -> tuple[re.Pattern[str], ...]:
    """Compile sentences about a length to patterns: `#asked`, `#limit` and `#output` stand for numbers, `#whole` for
    what was asked and its answer together, `*` for up to 80 characters.

    Of what stands between words only blanks and punctuation are passed over.
    """
    return tuple(re.compile(_pattern(sentence), re.IGNORECASE) for sentence in sentences)


def _pattern(sentence: str) -> str:
    pieces: list[str] = []
    for word in sentence.split():
        if word == "*":
            pieces.append(_GAP)
            continue
        if word[1:] in _NAMES and word[0] == "#":
            pieces.append(f"(?P<{word[1:]}>{_NUMBER[1:-1]})")
        else:
            pieces.append(re.escape(word))
        pieces.append(_BETWEEN)
    return "".join(pieces[:-1])


def size_in(error: RecordedError, sentences: Iterable[re.Pattern[str]]) -> Size:
    """Read the length of a request from the numbers of the first sentence that an error holds; an empty `Size` where it
    holds none.
    """
    texts = [_BLANKS.sub(" ", text[:_LOOKED_AT]) for text in error.texts]
    for sentence in sentences:
        for text in texts:
            found = sentence.search(text)
            size = _read(found) if found is not None else None
            if size is not None:
                return size
    if not _by_bytes(error, texts):
        return Size()
    of_one = any(_ONE_THING.search(text) for text in texts)
    return Size(by_bytes=True, most_bytes=0 if of_one else named_bytes(texts)[0])


def speaks_of_length(error: RecordedError) -> bool:
    """Whether the words of an error, known or not, speak of what a model's context takes."""
    return any(_LENGTH.search(_BLANKS.sub(" ", text[:_LOOKED_AT])) for text in error.texts)


def _by_bytes(error: RecordedError, texts: list[str]) -> bool:
    if any(_TOKENS.search(text) for text in texts):
        return False
    if error.status == 413 or any(_BYTES.search(text) for text in texts):
        return True
    # OpenCode 1.18 keeps no status where it calls an error a length, and without its words or its code that is a 413.
    named = error.kind is Kind.CONTEXT_OVERFLOW and error.status is None
    return named and _UNREAD in texts and not any("context_length_exceeded" in text for text in texts)


def _read(found: re.Match[str]) -> Size | None:
    """Read the numbers of a match; None where they can't be what they seem to be."""
    named = {name: int(re.sub(r"[,._]", "", text)) for name, text in found.groupdict().items() if text}
    output = named.get("output", 0)
    asked = named.get("asked", max(0, named.get("whole", 0) - output))
    size = Size(asked, named.get("limit", 0), output)
    if not _FEWEST <= size.limit <= _MOST or size.asked > _MOST or size.output > _MOST:
        return None
    if size.asked and size.asked + size.output < size.limit:
        return Size(limit=size.limit) if size.output == 0 else None  # it would have fitted: of another request
    return size
