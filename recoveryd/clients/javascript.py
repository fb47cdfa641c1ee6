"""Values as a program in JavaScript has them: JSON as it reads and writes it, what is true, how texts sort. Pure.

Broken UTF-8 becomes U+FFFD there, NaN is no JSON, and a number has any length.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from recoveryd.core import HALF


def weight_in_memory(raw: bytes) -> int:
    """Estimate how many bytes a JSON text takes in memory once it is parsed: those of its text, and 32 for each value
    that may be in it.

    A file of 60 MB can say `[],[],...` twenty million times, which took 1.5 GB and half a minute (measured). One emoji
    makes Python keep four bytes for each character of the whole text.
    """
    return len(raw) * (1 if raw.isascii() else 4) + 32 * sum(raw.count(mark) for mark in b"[{,")


def parse_json(raw: bytes) -> Any:
    """Parse a JSON text of a client, without the byte order mark that it may begin with.

    ValueError: it is no JSON. RecursionError: it is nested too deeply for Python; the client may well read it.
    """
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        return _STRICT.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # int() refuses thousands of digits; the client reads them, so such a record is not broken.
        return json.loads(text, parse_constant=_no_constant, parse_int=lambda n: int(n) if len(n) < 1000 else float(n))


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_STRICT = json.JSONDecoder(parse_constant=_no_constant)


def truthy(value: object) -> bool:
    """Whether a value is true as JavaScript has it: an empty object or list counts."""
    return isinstance(value, (Mapping, list)) or bool(value)


def javascript_json(value: Any) -> str:
    """Write a value as JSON, as JavaScript does."""
    words = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", words)


def code_unit_order(text: str) -> bytes:
    """Make a key that sorts texts as JavaScript does, which compares UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
