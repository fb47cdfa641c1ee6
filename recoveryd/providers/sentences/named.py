"""What an error names besides its kind: tool calls, items, a place in the request, sizes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import compress

_BLANKS = re.compile(r"\s+")
# Smithy's `messages.1.member` counts from one, unlike all others: left out.
_POSITION = re.compile(
    r"messages ?[.\[] ?(\d{1,6})\]?(?! ?\.? ?member|\d)"
    r"(?: ?\.? ?content ?[.\[] ?(\d{1,6})"
    r"(?:\]?\.(?P<within>tool_result\.content[.\[]\d{1,6}|(?:image|document|pdf)\b))?)?"
    r"|(?<![\w.])input ?[.\[] ?(?P<item>\d{1,6})\]?(?!\d)(?:\.(?:content|output)[.\[](?P<part>\d{1,6})\]?)?"
    r"(?:\.(?P<field>\w{1,40}(?:[.\[]\w{1,40}\]?){0,8}))?",
    re.IGNORECASE,
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
_ITEM = re.compile(
    r"(?<![A-Za-z0-9_-])(?:rs|msg|fc|fco|ctc|ctco|ws|cmp|lsh|am)_[A-Za-z0-9_-]{0,200}(?:\.{3,4}[A-Za-z0-9_=-]{1,40})?"
)
_FILE = re.compile(r"https?://[^\s\"'<>\\]{1,2000}|(?<![A-Za-z0-9_-])file[_-][A-Za-z0-9_-]{1,200}")
_ENDS = re.compile(r"encrypted content (\S{1,40}\.\.\.\S{1,40}) could")
_VALUE = re.compile(r"Invalid value: '(\w{1,60})'")
_TOOL = re.compile(r"Tool reference '(?!\d+')([\w-]{1,200})' not found")
_MEDIA_TYPE = re.compile(r"\bmime[_ ]?type:?(?: parameter with value)? ['\"]?(\w{1,30}/[\w.+-]{1,80}\w)", re.IGNORECASE)
_SIZE = re.compile(
    r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d{1,15}(?:\.\d{1,20})?) ?(bytes|kb|kib|mb|mib|gb|gib)\b", re.IGNORECASE
)
# Bytes without a word for it, of Qwen and Moonshot.
_PLAIN_BYTES = re.compile(
    r"max bytes (?:per data-uri item|to request body) ?: ?(?P<most>\d{4,15})\b"
    r"|total message size (?P<had>\d{4,15}) exceeds limit (?P<of>\d{4,15})\b",
    re.IGNORECASE,
)
_UNITS = {"b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_AT_MOST = re.compile(
    r"(?:max|limit|allowed|at most|up to|exceed|larger than|more than|over|>)[^.]{0,60}$", re.IGNORECASE
)

_LONGEST = re.compile(
    r"\b(?:(?P<name>name|namespace)|(?:call_|tool_call_)?id)\W{1,4}string too long\W{1,3}expected a string with"
    r" maximum length (?P<most>\d{1,5})\b",
    re.IGNORECASE,
)
# Of a name, by Gemini and Mistral, and where a pattern tells it ("name: … does not match pattern '^[a-z]{1,64}$'").
_LONGEST_NAME = re.compile(
    r"\b(?:underscores|dashes)\b[^\w.]{1,8}with a\s{1,20}maximum length of (\d{1,5})\b"
    r"|\bname\W{1,4}[^{]{0,120}\bpattern\b[^{]{0,60}\{[01],(\d{1,5})\}",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"too long|longer than|at most \d|less than or equal|max(?:imum)?[ _]length|\{\d,\d{1,5}\}", re.IGNORECASE
)
_NO_COUNT = r"(?!\d|[.,]\d| ?(?:[kmg]i?b|bytes?|(?:mega)?pixels?|px|mp|dpi|tokens?|x ?\d)\b)"
_MOST = re.compile(
    r"(?:at most|up to|(?:maximum|max)(?: allowed| number of images| data-uri per request)?(?: of| is|:)?"
    r"|limit(?: of| is|:)?|max images:?)"
    rf" \(?(\d{{1,5}}){_NO_COUNT}|image[^.]{{0,40}}> (\d{{1,5}}){_NO_COUNT}",
    re.IGNORECASE,
)
_MOST_DOCUMENTS = re.compile(r"more than (\d{1,3}) documents in a request", re.IGNORECASE)  # Bedrock's
_IMAGES = re.compile(r"image|data-uri", re.IGNORECASE)
# Of images and documents together: "images and documents: 104 + 1 > 100", "1 document pages + 107 images > 100".
_TOGETHER = re.compile(
    r"images and documents: \d{1,5} \+ (\d{1,5}) > (\d{1,5})|(\d{1,5}) document pages? \+ \d{1,5} images? > (\d{1,5})",
    re.IGNORECASE,
)
_SORTS = {  # what an error may speak of; a file may be any
    "image": re.compile(r"image|picture|photo|图片", re.IGNORECASE),
    "document": re.compile(r"pdf|document(?!ation)", re.IGNORECASE),
    "file": re.compile(r"\b(?:input_)?file(?:s|name|_\w+)?\b|\b(?:audio|video)", re.IGNORECASE),
}

Position = tuple[int, int | None]


def named_calls(texts: Iterable[str]) -> tuple[str, ...]:
    """List the ids of tool calls that an error names, each once, in the order of the texts."""
    ids: dict[str, None] = {}
    for text in texts:
        for match in _ID.finditer(text):
            _add(ids, match.group())
        for match in _NAMED.finditer(text):
            for one in match.group(1).split(","):
                _add(ids, one.strip())
    return tuple(ids)


def named_items(texts: Iterable[str]) -> tuple[str, ...]:
    """List the ids of items and files that an error names ("rs_0496", "cmp_34....b7bd"), addresses, the ends of what is
    encrypted ("gAA..c9="), a value that is called invalid ("agent_message"), and a tool that is not found.
    """
    found: dict[str, None] = {}
    for text in texts:
        found.update((match[1], None) for pattern in (_ENDS, _VALUE, _TOOL) for match in pattern.finditer(text))
        found.update((match[0], None) for match in _ITEM.finditer(text))
        found.update((match[0].rstrip(".,;:)"), None) for match in _FILE.finditer(text))
    return tuple(found)


def named_media_types(texts: Iterable[str]) -> frozenset[str]:
    """List the types of files that an error names ("image/heic")."""
    return frozenset(match[1].lower() for text in texts for match in _MEDIA_TYPE.finditer(text))


def named_place(text: str, start: int, end: int, others: Iterable[str]) -> tuple[Position | None, str]:
    """Find the `messages.N[.content.M]` or `input[N]...` next to words that matched, in their own sentence, and its
    field.

    `start` and `end`: of the words, among the letters and digits of `text`. `others` are texts of which one may be the
    place and nothing else: a `param`.
    """
    text = _BLANKS.sub(" ", text)
    match = _POSITION.search(text, *_sentence(text, start, end))
    match = match or next(filter(None, (_POSITION.fullmatch(other) for other in others)), None)
    match = match or _only_item(text)
    if match is None:
        return None, ""
    number, content = (match[1], match[2]) if match[1] else (match["item"], match["part"])
    return (int(number), int(content) if content else None), match["within"] or match["field"] or ""


def named_sort(text: str, start: int, end: int, field: str) -> str:
    """Tell what an error speaks of: "image", "document" or "file", by the field that it names, or else by the sentence
    of the words that matched, as in `named_place`; "" where that speaks of images and others, or of neither.
    """
    text = _BLANKS.sub(" ", text)
    for words in (field, text[slice(*_sentence(text, start, end))]):
        found = [sort for sort, pattern in _SORTS.items() if pattern.search(words)]
        if found:
            return "" if found[0] == "image" and found[1:] else found[0]
    return ""


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """Tell where the sentence begins and ends that has the words at `start` to `end` among a text's letters and
    digits.
    """
    letters = list(compress(range(len(text)), map(str.isalnum, text)))
    first, last = letters[start], letters[end - 1]
    begin = text.rfind(". ", max(0, first - 300), first) + 1 or max(0, first - 300)
    stop = text.find(". ", last, last + 300)
    return begin, stop if stop >= 0 else last + 300


def most_media(texts: Iterable[str]) -> int:
    """Tell how many images a request may have, or documents where an error speaks of those alone; 0 where it does not
    name that, and where what it counts beside images is too much alone.
    """
    together = next(filter(None, map(_TOGETHER.search, texts)), None)
    if together is not None:
        beside, most = (int(number) for number in together.groups() if number)
        return max(0, most - beside)
    found = next(filter(None, (_MOST.search(text) for text in texts if _IMAGES.search(text))), None)
    found = found or next(filter(None, map(_MOST_DOCUMENTS.search, texts)), None)
    return int(next(filter(None, found.groups()))) if found else 0


def longest_of_call(texts: Iterable[str]) -> tuple[int, int]:
    """Tell how many characters the name and the id of a tool call may have, where an error names that; 0 for what
    it does not.
    """
    found = next(filter(None, (_LONGEST.search(text) for text in texts)), None)
    if found is None:
        name = next(filter(None, map(_LONGEST_NAME.search, texts)), None)
        return (int(name[1] or name[2]) if name is not None else 0), 0
    return (int(found["most"]), 0) if found["name"] else (0, int(found["most"]))


def of_length(texts: Iterable[str]) -> bool:
    """Whether an error speaks of how long something may be, also in a pattern ("^[a-z]{1,64}$")."""
    return any(_TOO_LONG.search(text) for text in texts)


def _only_item(text: str) -> re.Match[str] | None:
    """Find the one `input[N]` of a text that speaks of no other."""
    found = [match for match in _POSITION.finditer(text) if match["item"]] if "input" in text.lower() else []
    return found[0] if len({match[0] for match in found}) == 1 else None


def named_bytes(texts: Iterable[str]) -> tuple[int, int]:
    """Tell how many bytes a request may have, and how many it had, as an error names them; 0 for what is not told."""
    for text in texts:
        if plain := _PLAIN_BYTES.search(text):
            return int(plain["most"] or plain["of"]), int(plain["had"] or 0)
        found = [(match, _bytes(match[1], match[2])) for match in _SIZE.finditer(text)]
        told = [size for _, size in found if size >= 1024]
        if len(told) >= 2:
            return min(told), max(told) if max(told) > min(told) else 0
        if told:
            match = next(match for match, size in found if size == told[0])
            if _AT_MOST.search(text[: match.start()]):
                return told[0], 0
    return 0, 0


def _bytes(number: str, unit: str) -> int:
    return int(float(number.replace(",", "")) * _UNITS[unit[0].lower()])


def _add(ids: dict[str, None], one: str) -> None:
    one = one.rstrip(".:-")
    if any(char.isdigit() or char.isupper() for char in one):
        ids[one] = None
