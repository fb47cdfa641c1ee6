"""A session that is to be planted: its values, its ids, and the client's JSON of them."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from typing import Any

from tests.support.parts import Part

Message = dict[str, Any]

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class Planted:
    """A session to plant. `raw` holds the bytes that a part's file is to have instead of its JSON, by part id."""

    session: dict[str, Any]
    messages: list[Message]
    parts: dict[str, list[Part]]
    raw: dict[str, bytes] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The session's id."""
        return str(self.session["id"])

    def rename(self, model: dict[str, str], to: dict[str, str]) -> None:
        """Name another model where this one is named: a client drops the signatures of a model that it doesn't ask."""
        for message in self.messages:
            if message["role"] == "user" and message.get("model") == model:
                message["model"] = dict(to)
            elif message.items() >= model.items():
                message |= to


def ascending(prefix: str, ms: int, counter: int, rng: random.Random) -> str:
    """An id as the client makes it: prefix, 12 hex digits of the time (cut to 48 bits), 14 random characters."""
    return f"{prefix}_{(ms * 4096 + counter) % 2**48:012x}" + "".join(rng.choices(BASE62, k=14))


def descending(prefix: str, ms: int, counter: int, rng: random.Random) -> str:
    """As `ascending`, counted downwards: the newest sorts first. Sessions are numbered so."""
    return f"{prefix}_{~(ms * 4096 + counter) % 2**48:012x}" + "".join(rng.choices(BASE62, k=14))


def dump(value: Any) -> bytes:
    """JSON as the client writes it: two spaces, text as it is, lone surrogates escaped."""
    return encoded(json.dumps(value, indent=2, ensure_ascii=False))


def encoded(words: str) -> bytes:
    """JSON text as UTF-8, with lone surrogates escaped."""
    try:
        return words.encode()
    except UnicodeEncodeError:
        return escaped(words).encode()


def escaped(words: str) -> str:
    """JSON text in which lone surrogates, that no file can hold, are escapes (as JSON.stringify writes them)."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", words)
