"""What an image says of itself: its true type and its size in pixels, read from the first bytes."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

MAX_BASE64 = 5 * 1024 * 1024
MAX_SIDE = 8000
MAX_SIDE_MANY = 2000
MANY = 20
_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def sniff(data: bytes) -> str | None:
    """The media type that the magic bytes tell, or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if data.startswith(b"%PDF") else None


def pixels(data: bytes) -> tuple[int, int] | None:
    """Width and height, or None where the header does not tell them."""
    try:
        return {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}[sniff(data) or ""](data)
    except (KeyError, struct.error, IndexError):
        return None


def _png(data: bytes) -> tuple[int, int] | None:
    if data[12:16] != b"IHDR":
        return None
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack("<HH", data[6:10])
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while data[at] == 0xFF:
        marker, size = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        if marker in range(0xC0, 0xD0) and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + size
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[12:16] == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF


@cache
def png(width: int, height: int, padding: int = 0) -> bytes:
    """A small true PNG of one colour; `padding` random-free bytes in a text chunk make it as large as wanted."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = (b"\0" + b"\0" * ((width + 7) // 8)) * height
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    note = chunk(b"tEXt", b"note\0" + b"x" * padding) if padding else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + note
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


@cache
def data_url(data: bytes, media_type: str = "image/png") -> str:
    """The bytes as the data URL in which the client stores them."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def media_fault(messages: list[dict[str, Any]]) -> str | None:
    """What the provider says of the first image or document that it refuses, or None."""
    found = list(_media(messages))
    many = sum(block["type"] == "image" for _, block in found) > MANY
    for path, block in found:
        source = block.get("source") or {}
        if source.get("type") != "base64":
            continue
        judge = _image_fault if block["type"] == "image" else _document_fault
        if fault := judge(f"{path}.{block['type']}.source.base64", source, many):
            return fault
    return None


def _media(messages: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, message in enumerate(messages):
        for index, block in enumerate(message["content"]):
            path = f"messages.{at}.content.{index}"
            if block.get("type") in ("image", "document"):
                yield path, block
            elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                for inner, nested in enumerate(block["content"]):
                    if nested.get("type") in ("image", "document"):
                        yield f"{path}.tool_result.content.{inner}", nested


def _image_fault(path: str, source: dict[str, Any], many: bool) -> str | None:
    declared, text = str(source.get("media_type")), str(source.get("data"))
    if declared not in _TYPES:
        return f"{path}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
    if len(text) > MAX_BASE64:
        return f"{path}: image exceeds 5 MB maximum: {len(text)} bytes > {MAX_BASE64} bytes"
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return "Could not process image"
    true, size = sniff(data), pixels(data)
    if true in _TYPES and true != declared:
        claim = f"The image was specified using the {declared} media type"
        return f"{path}: {claim}, but the image appears to be a {true} image"
    if size is None or 0 in size:
        return "Could not process image"
    if max(size) > MAX_SIDE:
        return f"{path}.data: At least one of the image dimensions exceed max allowed size: {MAX_SIDE} pixels"
    if many and max(size) > MAX_SIDE_MANY:
        return (
            f"{path}.data: At least one of the image dimensions exceed max allowed size for many-image requests: "
            f"{MAX_SIDE_MANY} pixels"
        )
    return None


def _document_fault(path: str, source: dict[str, Any], many: bool) -> str | None:
    del many
    try:
        data = base64.b64decode(str(source.get("data")), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    return None if sniff(data) == "application/pdf" else f"{path}.data: The PDF specified was not valid."
