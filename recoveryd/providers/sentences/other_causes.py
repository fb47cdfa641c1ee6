"""What an error without a kind is about, where that can be told: not the history, so nobody need look there. Pure.

Asked only when there is no kind: for the words of `explain`, and for whether a refusal of the history before it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from recoveryd.core import Cause, RecordedError, Size
from recoveryd.providers.sentences.cause_patterns import FAMILIES, HTML, OF_COMPACTING, TOO_LARGE
from recoveryd.providers.sentences.cause_words import WORDS
from recoveryd.providers.sentences.sizes import compiled, size_in

_BEFORE: dict[object, str] = {  # said before anybody looks at the request
    401: "unauthorized",
    402: "payment",
    403: "forbidden",
    407: "proxy authentication required",
    408: "timed out",
    426: "upgrade_required",
    429: "rate limit",
    451: "unsupported country",
    511: "network authentication required",
}
_UNFILTERED = (401, 402, 408, 429)  # said of what was asked for, whatever it says
_STATUS: dict[object, str] = {
    **_BEFORE,
    405: "method not allowed",
    **{status: "internal server error" for status in range(500, 600) if status not in _BEFORE},
}
# What a client puts before the words of an answer says no more than the status does; but of nothing found it does.
_REASONS: dict[object, str] = {one.value: one.phrase.lower() for one in HTTPStatus if one is not HTTPStatus.NOT_FOUND}
# As words of their own or behind a "_": a tool, a field or a block of any name may be spoken of.
_PATTERNS = tuple((re.compile(rf"(?<![a-z])(?:{pattern})"), cause) for pattern, cause in FAMILIES)
# A place in the history. Who names one has looked at it, whatever else is said.
_PLACE = re.compile(
    r"\b(messages?|contents?|input|parts)(\[\d|\.\d|: ?\d)|\bmessages? (at )?(index|position) \d"
    r"|\b((redacted_)?thinking|(server_)?tool_(use|result)|image|document)[`'\"]? (content )?blocks?\b"
)
# But of any image it says the same, wherever it stands, and of what the client marks anew with each request; and what
# Gemini lists beside a tool that it does not take is mostly a call of that.
_OF_ALL = re.compile(
    r"unknown variant .{0,2}image_url|\bcache_control\S{0,40} extra inputs|\bfunction_declarations\["
    rf"|{OF_COMPACTING}"
)
# Of these nobody has looked at the history, whatever else is said beside them.
_UNREAD = frozenset(
    {
        Cause.ACCOUNT,
        Cause.PLACE,
        Cause.RATE_LIMIT,
        Cause.OVER_RATE,
        Cause.MODEL_ACCESS,
        Cause.KEY,
        Cause.NETWORK,
        Cause.OLD_CLIENT,
        Cause.HOOK,
        Cause.DISK,
        Cause.CREDENTIALS,
        Cause.HEADER,
        Cause.NETWORK_PLACE,
        Cause.CERTIFICATE,
        Cause.PROXY,
        Cause.ACCOUNT_HOLD,
        Cause.ASKS_USER,
        Cause.MODEL_POLICY,
        Cause.MODE,
        Cause.LONG_PROMPT,
        Cause.RENEWAL,
        Cause.PRIVACY,
        Cause.LIMIT,
        Cause.BUDGET,
        Cause.BUSY,
    }
)
# Nor of these mostly: but "internal server error" stands around refusals, too.
_TURNED_AWAY = _UNREAD | {
    Cause.SERVER,
    Cause.SERVER_UNTOLD,
    Cause.ADDRESS,
    Cause.BROKEN_OFF,
    Cause.SANDBOX,
    Cause.CLIENT,
}
_OF_NO_MEDIA = re.compile(
    r"(not|that) support (image|vision|multimodal)|image input|\b(by|for|with|on) ((this|the|your) )?(\w+ )?models?\b"
    r"|\bmodel\b[^.]{0,40}\b(not|cannot|can't|only) (support|accept|take|allow)|\btext[ -]only\b|\bmulti-?modal|mmproj"
    r"|\b(no|without|not) (a )?vision\b|\bvision (models?|inputs?|encoder|tower|support|capab|is|not)"
    r"|image understanding|\b(not|never) (enabled|activated|included|available)\b|\bquota\b"
)
_FAILS = re.compile(
    r"\b(re)?try (again )?(later|in (a|some)\b)|\btemporar|\binternal error\b|\b(re)?try your request\b"
    r"|\boverload|\bunavailable\b|\bout of memory\b|\bat (this|the) (time|moment)\b"
    r"|\bis (still )?(loading|down|disabled)\b|\bmaintenance\b"
)
_DOWN = (502, 503, 504, 529)  # of a server that fails for a while, mostly; behind some gateways also of a refusal
# What is counted over so long is no request's.
_IN_TIME = re.compile(
    r"\b(per|each|every|this|an?) (second|minute|hour|day|week|month)\b|\b(hour|dai|week|month)ly\b|\btoday\b"
    r"|\bin \d+ (seconds|minutes|hours|days)\b|/ ?(min|hour|day|month)\b|每(分钟|小时|天|日|月)|今日|本月"
)
_IN_A_WHILE = re.compile(
    r"rate.?limit|(tokens|requests|input tokens) per.?(minute|min|day|hour)\b|\b(tpm|rpm|tpd)\b"
    r"|\bthis (second|minute|hour|day|week|month)\b|\btoday\b"
)
_SAID_STATUS = re.compile(
    r"\b(?:status|error|code|http|failed)\b\W{0,9}(?:code|error|http)?\W{0,3}([45]\d\d)\b"
    r"(?![.,]\d|\W{0,3}(?:tokens|characters|bytes|messages|items|images|pages)\b)"
)
_TOO_LARGE = re.compile(TOO_LARGE)
_HTML = re.compile(HTML)
_IS_PAGE = re.compile(rf"(^|\| ){HTML}")  # no provider's API answers with one
# The name of a tool, which may be of any words: "no response found for function create_payment".
_TOOL_NAME = re.compile(
    r"\b(tool|function)((?: |_)(?:call|result|response|use))?( for| of| named| name:?)? [`'\"]?"
    r"(?!tool_|function_|input_schema|response_format)[\w-]{0,80}_[\w-]{0,80}"
)
_OVER_RATE = compiled("limit #limit requested #asked")
_LOOKED_AT = 8_000  # characters of a text
_BLANKS = re.compile(r"\s+")


def _cause(error: RecordedError, *, by_status: Mapping[object, str] = _STATUS) -> Cause | None:
    """Return what its client names, or the first that fits its words or status; None where it can't be told."""
    if error.cause is not None:
        return error.cause
    said = sorted(error.texts[:8], key=lambda text: text == error.name)  # the client's own name for it comes last
    # Apart: "Bad Request" before "signature of ..." speaks of no "request signature".
    text = " | ".join(filter(None, (_but_reason(text[:_LOOKED_AT], error.status) for text in said)))
    if _PLACE.search(text) and error.status not in _BEFORE and not _OF_ALL.search(text):
        return None
    text = _TOOL_NAME.sub(r"\1\2", text)
    status = error.status if error.status is not None else _said_status(text)
    # OpenCode also calls too long what "exceeds the limit of 100" requests, and keeps no status.
    large = status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (error.kind is not None and not _IN_A_WHILE.search(text))
    if large and _HTML.search(text):
        return None  # too large: what the page says besides, of credentials or a connection, is for people
    page = None if _TOO_LARGE.search(text) else _IS_PAGE.search(text)
    known = (text, "" if page is not None and status == 403 else by_status.get(status, ""))
    causes = (cause for one in known for pattern, cause in _PATTERNS if pattern.search(one))
    found = (cause for cause in causes if cause is not Cause.FILTER or error.status not in _UNFILTERED)
    return next(found, None if page is None else Cause.PROXY)


def _said_status(text: str) -> int | None:
    """Return the status of an answer that only the words tell: "Error code: 401"; None where they tell none."""
    found = _SAID_STATUS.search(text)
    return int(found[1]) if found is not None else None


def _but_reason(text: str, status: object) -> str:
    """Return what one text of an error says, in lower case, without the reason that belongs to the status."""
    said, reason = _BLANKS.sub(" ", text).strip().lower(), _REASONS.get(status, "")
    return "" if said == reason else said.removeprefix(f"{reason}: ") if reason else said


def other_cause(error: RecordedError) -> str | None:
    """Tell, by its client's name for it or sentences of providers, what an error without a kind is about: "It seems to
    be about a rate limit of the provider. Wait a little, ..."; None where it can't be told.
    """
    cause = _cause(error)
    return f"It seems to be about {WORDS[cause]}" if cause is not None else None


def over_rate(error: RecordedError) -> Size | None:
    """Tell how long a request was that a rate limit has no room for, however long one waits, and what it has room for,
    as far as it is told; None for any other error.
    """
    return size_in(error, _OVER_RATE) if _cause(error) is Cause.OVER_RATE else None


def _words(error: RecordedError) -> str:
    return " ".join(error.texts[:8])[:_LOOKED_AT].lower()


def of_a_limit(error: RecordedError) -> bool:
    """Whether an error is about how much was asked in a while, by its words."""
    return _IN_A_WHILE.search(_words(error)) is not None


def of_no_media(error: RecordedError) -> bool:
    """Whether an error that speaks of an image or document may mean none: the model takes no such, or its server failed
    for a while.
    """
    return fails_for_a_while(error) or _OF_NO_MEDIA.search(_words(error)) is not None


def fails_for_a_while(error: RecordedError) -> bool:
    """Whether an error may be of a server that fails for a while, by its words or its status."""
    return error.status in _DOWN or _FAILS.search(_words(error)) is not None


def counts_in_time(error: RecordedError) -> bool:
    """Whether what an error counts is that of a day, say, and not that of one request."""
    return _IN_TIME.search(_words(error)) is not None


def turned_away(error: RecordedError) -> bool:
    """Whether nobody seems to have looked at the history: an older refusal of it may stand all the same."""
    cause = _cause(error)
    # Of other statuses the same words may be about what is asked of a model that is there.
    return cause in _TURNED_AWAY or (error.status == 404 and cause is Cause.MODEL_CHOICE)


def unread(error: RecordedError) -> bool:
    """Whether by its words, or a status that says it of any request, an error came before anybody looked at the
    history.
    """
    return _cause(error, by_status=_BEFORE) in _UNREAD
