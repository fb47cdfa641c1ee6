"""What each part of a request weighs: in characters that stand for tokens, or in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recoveryd.core import Block, Json

IMAGE = 1_600  # tokens, about what one of the usual size takes
_IMAGE_CHARACTERS = IMAGE * 4
_OVERHEAD = 24  # characters that frame a block
_LIKELY_DOCUMENT = 200_000  # characters of the data of one of which only the address is sent


class Scales:
    """Weighs each body once: by its characters, or by its bytes.

    `pages`: by message, the characters that would have as many tokens as the pages there, by what `documents` weighs.
    """

    def __init__(self, *, by_bytes: bool = False, pages: dict[str, float] | None = None) -> None:
        self.by_bytes = by_bytes
        self.pages = pages if pages is not None else {}
        self._known: dict[int, tuple[Json, int]] = {}  # by identity of what is weighed: held, so it stays its own

    def weight(self, body: Json) -> int:
        known = self._known.get(id(body))
        if known is None:
            known = self._known[id(body)] = body, part_in_bytes(body) if self.by_bytes else weight(body)
        return known[1]

    def of(self, block: Block) -> float:
        """Weigh a block, with the pages of its documents."""
        more = self.pages.get(block.message_id)
        return self.weight(block.body) + (more * documents(block.body) if more else 0)


def weight(body: Json) -> int:
    """Measure the characters of a block, an image counting as those that take as many tokens."""
    return _OVERHEAD + part_in_characters(body)


def part_in_characters(value: Any) -> int:
    """Measure the characters of a part of a block, as `weight` counts them."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        if value.get("type") in ("image", "document"):
            return _IMAGE_CHARACTERS
        found = 0
        for key, item in value.items():
            if key not in ("type", "signature"):
                found += len(key) + 4 + (len(item) if isinstance(item, str) else part_in_characters(item))
        return found
    if isinstance(value, (list, tuple)):
        return sum(map(part_in_characters, value))
    return 6


def part_in_bytes(value: Any) -> int:
    """Measure a part of a request in bytes, about: of images those of their base64."""
    if isinstance(value, str):
        escaped = value.count("\n") + value.count('"') + value.count("\\")
        return escaped + (len(value) if value.isascii() else len(value.encode("utf-8", "replace")))
    if isinstance(value, Mapping):
        return sum(len(key) + 6 + part_in_bytes(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return sum(map(part_in_bytes, value))
    return 6


def documents(body: Json) -> int:
    """Weigh the documents in a block against each other, by their data: nothing tells what the pages of each take."""
    content = body.get("content")
    found = (body, *(content if isinstance(content, (list, tuple)) else ()))
    return sum(_data(one.get("source")) for one in found if isinstance(one, Mapping) and one.get("type") == "document")


def _data(source: object) -> int:
    data = source.get("data") if isinstance(source, Mapping) else None
    return len(data) if isinstance(data, str) and data else _LIKELY_DOCUMENT
