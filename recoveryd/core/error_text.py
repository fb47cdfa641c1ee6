"""Find the texts of an error in all that they are wrapped in: JSON in JSON strings, escapes, mark-up, colours. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any

from recoveryd.core.model import RecordedError
from recoveryd.core.text import clean

_JSON = 48_000  # characters of a text that is read as JSON
_HEAD, _TAIL = 16_000, 8_000  # characters of a text that are looked at: a provider's sentence stands at either end
_TOTAL = 48_000
_NODES = 2_000
_ROUNDS = 5
_EXCERPT = 200  # characters
# Fields of an answer that repeat what was sent: pydantic's, Groq's, and OpenRouter's; and what hosts said that
# OpenRouter asked before the one that failed now: another may have taken the history.
_LEFT_OUT = frozenset({"input", "failed_generation", "flagged_input", "previous_errors"})
# What was sent, in the midst of a text: pydantic's reports as vLLM writes them, or too long to be read as JSON; what
# LiteLLM finds invalid.
_REPORT = r"""['"]loc['"]\s{0,3}:.{0,600}?['"]input['"]\s{0,3}:"""
_NEXT = r"""\{\s{0,9}['"]type['"]\s{0,3}:\s{0,3}['"]\w{1,40}['"],\s{0,9}['"]loc['"]\s{0,3}:"""
_INVALID = r"\binvalid (?:\w{1,12} )?message(?: passed in |=)"
_STRING = r"""'(?:[^'\\]|\\[^\\])*+'|"(?:[^"\\]|\\[^\\])*+\""""  # with "\\" it may have been escaped twice
_OBJECT = r"\{\}"
for _ in range(6):  # objects within objects
    _OBJECT = rf"\{{(?:{_STRING}|[^{{}}'\"\\]|{_OBJECT})*+\}}"
_ECHO = re.compile(
    rf"({_REPORT}).*?(?={_NEXT}|\Z)"
    r"|(\binput_value=).*?(?=, input_type=|\Z)"
    rf"|({_INVALID}\{{).*?(?= at index \d|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# One that is whole, as Python or JSON writes it: what stands behind it counts. Told from the text as it came, for once
# it is unescaped nobody knows where a string ends.
_WHOLE = re.compile(rf"({_INVALID}){_OBJECT}", re.DOTALL | re.IGNORECASE)
# What earlier hosts said, as in `_LEFT_OUT`, behind words; where its end can't be told, with all behind it.
_BEFORE = re.compile(rf"previous_errors\\*['\"]\s{{0,9}}:\s{{0,9}}\[(?:(?:[\s,]|{_OBJECT})*+\]|.*)", re.DOTALL)
# What the AI SDK says of an event that it can't read: what the model said stands in that, or an error.
_EVENT = re.compile(
    r"\b(Type validation failed: Value: |JSON parsing failed: Text: )(?=[{\[])(.*?)(?=\.?\s{0,9}Error message: |\Z)",
    re.DOTALL,
)
_SAID = ("candidates", "choices", "content", "content_block", "delta", "item", "output", "part", "text")  # its fields
_OF_AN_ANSWER = re.compile(rf"\"(?:{'|'.join(_SAID)})\"\s{{0,9}}:")
_ANSWERS = ("content_block", "message_", "response.")
# What LiteLLM puts behind the error of the model that was asked: what another one said, which it asked in its place.
_OF_FALLBACK = re.compile(r"(?<=\S)\s{0,9}\bError doing the fallback:.*", re.DOTALL)
_BACKSLASHES = re.compile(r"\\+")
_FOLD = r"(?:\r?\n[ \t│>]{0,12})?"  # a terminal's, in the midst of an escape
_ESCAPE = re.compile(rf"\\{_FOLD}(?:u\{{?((?:{_FOLD}[0-9a-fA-F]){{4}})\}}?|x([0-9a-fA-F]{{2}})|(.))", re.DOTALL)
# Colours, mark-up, and links to documentation, which hold the words of other kinds
_NOISE = re.compile(
    r"\x1b\[[0-9;]{0,16}[A-Za-z]|</?(?:a|b|i|p|br|em|li|ul|hr|tt|pre|div|code|span|strong)\b[^<>]{0,200}>"
    r"|https?://[^\s\"'<>]{1,2000}"
)


def texts_of(error: object, besides: Collection[str] = ()) -> tuple[str, ...]:
    """List the texts of an error, unescaped, in its order, each once; a string that is JSON is looked into.

    Left out are texts that repeat the request, what another model or host said before or instead, and those in fields
    named `besides` (lower case), however deep.
    Never raises.
    """
    left_out = _LEFT_OUT.union(besides)
    texts: list[str] = []
    budget = _TOTAL
    stack: list[object] = [error]
    for _ in range(_NODES):
        if not stack or budget <= 0:
            break
        value = stack.pop()
        if isinstance(value, str):
            inner = parsed(value)
            if inner is None:
                texts.append(_unescape(_clip(value)))
                budget -= len(texts[-1])
            else:
                stack.append(inner)
        elif isinstance(value, Mapping):
            stack.extend(reversed([one for key, one in value.items() if str(key).lower() not in left_out]))
        elif isinstance(value, list | tuple):
            stack.extend(reversed(value))
    return tuple(dict.fromkeys(texts))


def parsed(text: str) -> object:
    """Parse one of an error's texts that is a JSON object or list; None where it is none, or too long."""
    if len(text) > _JSON or text.lstrip()[:1] not in ("{", "["):
        return None
    value = json_of(text)
    return value if isinstance(value, (dict, list)) else None


def json_of(text: bytes | str) -> Any:
    """Read a text of an error as JSON, whatever somebody wrote there; None where it is none (as for the word null)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _clip(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"


def _unescape(text: str) -> str:
    text = _EVENT.sub(_but_event, _WHOLE.sub(r"\1...", _BEFORE.sub("", text)))
    for _ in range(_ROUNDS):
        before = text
        if "\\" in text:
            text = _ESCAPE.sub(_char, _BACKSLASHES.sub(r"\\", text))
        if "&" in text:
            import html  # late: its table of names takes 0.3 MB

            text = html.unescape(text)
        if text == before:
            break
    return unicodedata.normalize("NFKC", _NOISE.sub(" ", _ECHO.sub(_but_echo, _OF_FALLBACK.sub("", text))))


def _but_echo(match: re.Match[str]) -> str:
    return f"{match[1] or match[2] or match[3]}..."


def _but_event(match: re.Match[str]) -> str:
    """Keep of an event the error that it tells, and nothing that the model said."""
    event = json_of(match[2])
    event = event[0] if isinstance(event, list) and event else event
    if not isinstance(event, Mapping):
        return f"{match[1]}..." if _OF_AN_ANSWER.search(match[2]) else match[0]
    within, kind = event.get("response"), str(event.get("type"))
    of_it = within.get("error") if isinstance(within, Mapping) else None
    told = event.get("error") or of_it or event.get("base_resp")
    message = event.get("message")
    of_answer = not event.keys().isdisjoint(_SAID) or kind.startswith(_ANSWERS) or isinstance(message, Mapping)
    return f"{match[1]}{json.dumps(told)}" if told else f"{match[1]}..." if of_answer and kind != "error" else match[0]


def _char(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        return chr(int(re.sub("[^0-9a-fA-F]", "", code), 16))
    return " " if match[3] in "nrtfb" else match[3]


def excerpt(error: RecordedError) -> str:
    """Cut the first words out of the texts of an error, on one line and without control characters.

    A sentence goes before a word, and a code is told only where there is nothing else.
    """
    texts = [clean(text, instead=" ") for text in error.texts if text != error.name]
    sentences = [text for text in texts if len(text) > 12 and " " in text]
    words = [text for text in texts if " " in text or not text.isascii()]  # Chinese has no blanks
    return clean(next(filter(None, (*sentences, *words, *texts)), ""), _EXCERPT)
