"""Texts as a person reads them: moments, sentences, and what others wrote made safe to show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

HALF = re.compile("[\ud800-\udfff]")
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_JOINERS = "\u200c\u200d"  # format characters that whole scripts and emoji can't do without
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # letters and symbols that nobody sees
_MARKS = 4  # on one letter; no script that people write needs more
# "ses_…" of some clients, "01a201b9-82b1-7263-872f-20dfb3075cd3" of others, "agent-a3f9c1e0b7d244e61" of a subagent.
_SESSION_ID = re.compile(r"(?a)ses_[\w-]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|agent-(?:[\w-]+-)?[0-9a-f]{6,}")


def is_session_id(text: str) -> bool:
    """Whether a text that a person named looks like the id of a session: not of a recovery, and no folder."""
    return _SESSION_ID.fullmatch(text) is not None


def capital(text: str) -> str:
    """Make the first letter of a text a capital; a name like `empty_content` stays as it is."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]


def uncapital(text: str) -> str:
    """Make the first letter of a text a small one, for the midst of a sentence; a name like "OpenCode" stays."""
    first = text.partition(" ")[0]
    return text if first[1:] != first[1:].lower() else text[:1].lower() + text[1:]


def moment(ms: int) -> str:
    """Write a moment as a text, 2026-08-14T11:19:55.136Z, of milliseconds since the epoch."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"  # no year that has a name


def clean(text: str, length: int | None = None, *, keep: str = "", instead: str | Callable[[str], str] = "") -> str:
    """Fold an untrusted text into one line that is safe to show (`shown`), of `length` characters at most.

    Blanks become one space; those in `keep` stay. What is cut ends in an ellipsis.
    """
    text = text if length is None else text[: length * 4]
    spaced = "".join(" " if (c.isspace() or c in _BLANK) and c not in keep else c for c in text)
    lines = shown(spaced, keep=keep, instead=instead).split("\n")
    folded = "\n".join(" ".join(line.split()) for line in lines).strip("\n " + _JOINERS)
    if length is None or len(folded) <= length:
        return folded
    return folded[: length - 1].rstrip("\n " + _JOINERS) + "…"


def shown(text: str, *, keep: str = "", instead: str | Callable[[str], str] = "") -> str:
    """Put `instead` in the place of each character of an untrusted text that a terminal or a reader's eye would obey.

    Those are control, bidi and other invisible characters, and the marks and joiners that pile up on one letter and
    draw over what stands around it. `keep` stays. Half a character is never left out: UTF-8 has no bytes for it.
    """
    return text if text.isascii() and text.isprintable() else "".join(_safe(text, keep, instead))


def _safe(text: str, keep: str, instead: str | Callable[[str], str]) -> Iterator[str]:
    piled = 0
    for character in text:
        category = unicodedata.category(character)
        stacks = character in _JOINERS or category in ("Mn", "Me")
        hidden = not stacks and (category[0] == "C" or category in ("Zl", "Zp"))
        if not hidden:  # else what is left out would begin a new pile
            piled = piled + 1 if stacks else 0
        if character in keep or not (hidden or piled > _MARKS):
            yield character
        elif callable(instead):
            yield instead(character)
        else:
            yield instead or (UNKNOWN if category == "Cs" else "")


def any_of(names: Iterable[str]) -> str:
    """Write names as a text: "a, b or c"."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def first_of(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """Join the first names of some, and tell how many more there are: "a, b, c and 2 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def half_character(value: object) -> bool:
    """Whether a text, or any in a value, also in its keys, has half of a surrogate pair, which no JSON body can
    carry.
    """
    found = [value]
    for item in found:  # which grows meanwhile
        if isinstance(item, str):
            if not item.isascii() and HALF.search(item):
                return True
        elif isinstance(item, dict):
            found += item
            found += item.values()
        elif isinstance(item, (list, tuple)):
            found += item
    return False
