"""Small images, made byte by byte."""

from __future__ import annotations

import base64
import random
import struct
import zlib


def png(width: int = 4, height: int = 4, *, extra: bytes = b"", noise: int | None = None) -> bytes:
    """A PNG; `extra` stands in a text of it, `noise` is a seed: then no compression helps."""
    row = random.Random(noise).randbytes(width * 3 * height) if noise is not None else b"\xff\0\0" * width * height
    lines = b"".join(b"\0" + row[at : at + width * 3] for at in range(0, len(row), width * 3))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    note = _chunk(b"tEXt", b"note\0" + extra) if extra else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + note
        + _chunk(b"IDAT", zlib.compress(lines))
        + _chunk(b"IEND", b"")
    )


def data_url(data: bytes, mime: str = "image/png") -> str:
    """The address that holds it."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
