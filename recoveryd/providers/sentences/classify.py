"""A recorded error -> why the provider refused, or None. Pure.

Providers, gateways and clients wrap the cause: JSON inside JSON strings, cut off or broken, folded by a terminal,
quoted by an issue tracker. So the text is unescaped, and then compared by its letters and digits alone with sentences:
those of one provider (`find.SURE`), or else what they have in common (`find.LIKELY`). JSON is parsed where it parses,
only to leave out what echoes the request.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from recoveryd.core.model import Kind
from recoveryd.core.text import clean
from recoveryd.providers.find import LIKELY, SURE
from recoveryd.providers.sentences.rows import Row, squeeze

_JSON = 48_000  # characters of a text that is read as JSON
_HEAD, _TAIL = 16_000, 8_000  # characters of a text that are looked at: a provider's sentence stands at either end
_TOTAL = 48_000
_NODES = 2_000
_ROUNDS = 5

_BY_NAME: Mapping[str, Kind | None] = {
    "MessageAbortedError": None,
    "ProviderAuthError": None,
    "MessageOutputLengthError": None,
    "ContextOverflowError": Kind.CONTEXT_OVERFLOW,
}
# What the user or the model wrote, and the transport: never the provider's own words.
_ECHO = frozenset(
    {"input", "requestbodyvalues", "requestbody", "failed_generation", "responseheaders", "headers", "url", "stack"}
)

_BACKSLASHES = re.compile(r"\\+")
_FOLD = r"(?:\r?\n[ \t│>]{0,12})?"  # a terminal's, in the midst of an escape
_ESCAPE = re.compile(rf"\\{_FOLD}(?:u\{{?((?:{_FOLD}[0-9a-fA-F]){{4}})\}}?|x([0-9a-fA-F]{{2}})|(.))", re.DOTALL)
# Colours, mark-up, and links to documentation, which hold the words of other kinds
_NOISE = re.compile(
    r"\x1b\[[0-9;]{0,16}[A-Za-z]|</?(?:a|b|i|p|br|em|li|ul|hr|tt|pre|div|code|span|strong)\b[^<>]{0,200}>"
    r"|https?://[^\s\"'<>]{1,2000}"
)
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


def classify(error: object) -> Kind | None:
    """The kind of an error as the client records it: `{"name": "APIError", "data": {"message", "responseBody", ...}}`.

    Any other JSON value is read too, as far as it holds text. None: no fault of the conversation (rate limits, billing,
    parameters, an abort), not known, or a text that fits two kinds. Never raises.
    """
    value = (_parsed(error) or error) if isinstance(error, str) else error
    name = _name(value)
    if name in _BY_NAME and _BY_NAME[name] is None:
        return None
    kinds = _kinds(value)
    if name in _BY_NAME and kinds != (Kind.MEDIA_REJECTED,):
        return _BY_NAME[name]  # the client calls every answer 413 an overflow, also one about too large images
    return kinds[0] if len(kinds) == 1 else None


def candidates(error: object) -> tuple[Kind, ...]:
    """The kinds that the words of an error fit: more than one is why `classify` says None."""
    return _kinds((_parsed(error) or error) if isinstance(error, str) else error)


def classify_text(text: str) -> Kind | None:
    """The kind of a text that somebody copied: a message, a body, a line of a log. None as in `classify`."""
    return classify(text)


def named_ids(error: object) -> tuple[str, ...]:
    """Ids of tool calls that the error names, each once, in the order of the text."""
    ids: dict[str, None] = {}
    for text in texts_of(error):
        for match in _ID.finditer(text):
            _add(ids, match.group())
        for match in _NAMED.finditer(text):
            for one in match.group(1).split(","):
                _add(ids, one.strip())
    return tuple(ids)


def position(error: object) -> tuple[int, int | None] | None:
    """`messages.N[.content.M]` of the sentence that classified the error. Counts what was sent, not what is stored."""
    matches = _find(tuple(texts_of(error)))
    if len(matches) != 1:
        return None
    found = matches[0]
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


def _name(error: object) -> str:
    inner = error.get("error") if isinstance(error, Mapping) else None
    for value in (error, inner):
        if isinstance(value, Mapping) and isinstance(value.get("name"), str) and value["name"] in _BY_NAME:
            return str(value["name"])
    return ""


def texts_of(error: object) -> list[str]:
    """The texts of an error, unescaped. A string that is JSON is looked into."""
    texts: list[str] = []
    budget = _TOTAL
    stack: list[object] = [error]
    for _ in range(_NODES):
        if not stack or budget <= 0:
            break
        value = stack.pop()
        if isinstance(value, str):
            inner = _parsed(value)
            if inner is None:
                texts.append(_unescape(_clip(value)))
                budget -= len(texts[-1])
            else:
                stack.append(inner)
        elif isinstance(value, Mapping):
            stack.extend(reversed([one for key, one in value.items() if str(key).lower() not in _ECHO]))
        elif isinstance(value, list | tuple):
            stack.extend(reversed(value))
    return texts


def excerpt(error: object, length: int = 200) -> str:
    """The first words of an error, unescaped, on one line and without control characters."""
    texts = (clean(text, instead=" ") for text in texts_of(error))
    return clean(next((text for text in texts if len(text) > 12 and " " in text), ""), length)


def _parsed(text: str) -> object:
    if len(text) > _JSON or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _clip(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"


def _unescape(text: str) -> str:
    for _ in range(_ROUNDS):
        before = text
        if "\\" in text:
            text = _ESCAPE.sub(_char, _BACKSLASHES.sub(r"\\", text))
        if "&" in text:
            text = html.unescape(text)
        if text == before:
            break
    return unicodedata.normalize("NFKC", _NOISE.sub(" ", text))


def _char(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        return chr(int(re.sub("[^0-9a-fA-F]", "", code), 16))
    return " " if match[3] in "nrtfb" else match[3]


@lru_cache(4)  # kind and position of one error are asked for one after the other
def _find(texts: tuple[str, ...]) -> tuple[_Match, ...]:
    """The first match of each kind, of the first table that has any."""
    for table in (SURE, LIKELY):
        first: dict[Kind, _Match] = {}
        for match in _matches(table, texts):
            first.setdefault(match.kind, match)
        if first:
            return tuple(first.values())
    return ()


def _kinds(error: object) -> tuple[Kind, ...]:
    return tuple(match.kind for match in _find(tuple(texts_of(error))))


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
