"""Tell an image or a document by its data: which it is, and media type, width and height by its first bytes. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct

from recoveryd.core.model import Json

_PLACES = ("url", "image_url", "file_id", "result")


def from_base64(data: str) -> bytes | None:
    """Decode the base64 text of an image; None where it is none."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def media_mark(source: Json) -> str:
    """Return a mark of an image or document, the same in each form of it: of its data, or of where that is fetched."""
    data = source.get("data")
    if not isinstance(data, str):
        place = next((place for name in _PLACES if isinstance(place := source.get(name), str)), "")
        data = place.partition(",")[2] if place[:5].lower() == "data:" else place
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()


def media_type(data: bytes) -> str | None:
    """Tell the media type of an image or a document by its first bytes."""
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
    """Read an image's width and height in pixels from its first bytes; None where `data` does not reach that far, or is
    no image.
    """
    try:
        match media_type(data):
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
    """Read the size from the first frame header; the segments before it are skipped by their lengths."""
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
    """Read the size from any of the three forms: lossy, lossless, extended."""
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
