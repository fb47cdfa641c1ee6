"""What the Responses API refuses of an image, told from its URL and its first bytes; and how large a request is.

Limits by its error texts and its reference: PNG, JPEG, GIF or WebP. How many images a request may have, and how large
one and all of it may be, has changed, and gateways have limits of their own: that is what an error tells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from recoveryd.core import Json, Request, from_base64, media_type

_LARGE = 20_971_520  # characters of an address: what Azure takes, and OpenAI took ("below 20 MB in size")
_HEAD = 4096  # of base64, a multiple of four
_DATA = re.compile(r"data:([a-z0-9.+/-]*);base64,", re.IGNORECASE)
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_MISNAMED = "image/jpg"  # as many MCP servers call a JPEG
UNSEEN = 64 * 1024  # bytes of a request beside its items: instructions and tools


def media_fault(source: Json) -> str | None:
    """Tell why the Responses API refuses an image, as half a sentence; None where nothing tells."""
    url = source.get("image_url")
    if not isinstance(url, str) or url.startswith(("http://", "https://")):
        return None
    if not url:
        return "it is empty"
    head = _DATA.match(url)
    if head is None:
        return "it is no address of an image"
    data = from_base64(url[head.end() : head.end() + _HEAD])
    if not data or media_type(data) not in _IMAGES or head[1].lower() not in (*_IMAGES, _MISNAMED):
        return "it is no image that the provider can read"
    return None


def is_misnamed(source: Json) -> bool:
    """Whether an image has a type that is none, and that not each server of the Responses API may take."""
    head = _DATA.match(str(source.get("image_url", "")))
    return head is not None and head[1].lower() == _MISNAMED


def is_doubtful(source: Json) -> bool:
    """Whether some servers of the Responses API refuse an image that others take: for its size, or its type."""
    return len(str(source.get("image_url", ""))) > _LARGE or is_misnamed(source)


def part_bytes(value: object) -> int:
    """Return the bytes of a part of a request to the Responses API, where images weigh most."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict).encode("utf-8", "replace"))


def request_size(request: Request) -> int:
    """Return about how many bytes a request to the Responses API has."""
    return UNSEEN + sum(part_bytes(block.body) + 1 for block in request.blocks())


def images(body: Json) -> Iterator[tuple[int, Json]]:
    """Go through the images in the content of an item of the Responses API, each with its place there."""
    parts = body.get("output" if str(body.get("type")).endswith("_output") else "content")
    for place, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, Mapping) and part.get("type") == "input_image":
            yield place, part


def sources(body: Json) -> Iterator[Json]:
    """Go through the images of an item of the Responses API: in a message, in what a tool gave back, or its own."""
    if body.get("type") == "image_generation_call":
        if body.get("result"):
            yield body
        return
    for _, part in images(body):
        yield part
