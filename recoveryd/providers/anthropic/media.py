"""What an Anthropic provider refuses of an image or a document, told from the first bytes of it.

Limits, by the provider's own error texts: 5 MB of base64, 8000 pixels a side (2000 with more than 20 images), and 32 MB
a request.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator

from recoveryd.core.model import Json
from recoveryd.core.request import Request

MAX_BASE64 = 5 * 1024 * 1024  # characters
MAX_REQUEST = 32 * 1024 * 1024  # characters, all media of a request together
MAX_SIDE, MAX_SIDE_OF_MANY, MANY = 8000, 2000, 20
_HEAD = 4096  # of base64, a multiple of four: the sizes of most images stand there
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def sources(body: Json) -> Iterator[Json]:
    """The `source` of each image or document in a content block, also of those in a tool's result."""
    if body.get("type") in ("image", "document"):
        yield body["source"]
    content = body.get("content")
    for item in content if isinstance(content, list) else ():
        yield from sources(item)


def count(request: Request) -> int:
    """How many images and documents a request has."""
    return sum(1 for block in request.blocks() for _ in sources(block.body))


def fault(source: Json, *, many: bool) -> str | None:
    """Why a provider refuses it, as half a sentence, or None. `many`: the request has more than 20 images."""
    if source.get("type") != "base64":
        return None
    data, declared = str(source.get("data", "")), source.get("media_type")
    if len(data) > MAX_BASE64:
        return f"it has {len(data) / 1e6:.1f} MB, and the provider takes 5"
    head = _decoded(data[:_HEAD])
    found = kind(head) if head is not None else None
    if declared == "application/pdf":
        return None if found == declared else "it is no PDF document"
    if found not in _IMAGES or declared not in _IMAGES:
        return "it is no image that the provider can read"
    if found != declared:
        return f"it is declared as {declared} and is {found}"
    size = pixels(head or b"") or pixels(_decoded(data) or b"")
    if size is None:
        return "it is no image that the provider can read"
    return _too_wide(size, many)


def _too_wide(size: tuple[int, int], many: bool) -> str | None:
    limit = MAX_SIDE_OF_MANY if many else MAX_SIDE
    if max(size) <= limit:
        return None
    among = " among more than 20 images" if many and max(size) <= MAX_SIDE else ""
    return f"it has {size[0]} x {size[1]} pixels, and the provider takes {limit} a side{among}"


def kind(data: bytes) -> str | None:
    """The media type that the first bytes tell."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if b"%PDF-" in data[:1024] else None


def pixels(data: bytes) -> tuple[int, int] | None:
    """Width and height; None where `data` does not reach that far, or is no image."""
    try:
        match kind(data):
            case "image/png":
                width, height = struct.unpack_from(">II", data, 16)
            case "image/gif":
                width, height = struct.unpack_from("<HH", data, 6)
            case "image/jpeg":
                return _jpeg(data)
            case "image/webp":
                return _webp(data)
            case _:
                return None
    except struct.error:
        return None
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """From the first frame header; the segments before it are skipped by their lengths."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + length
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    """Three forms: lossy, lossless, extended."""
    form = data[12:16]
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8X":
        wide, high = data[24:27], data[27:30]
        return int.from_bytes(wide, "little") + 1, int.from_bytes(high, "little") + 1
    return None


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
