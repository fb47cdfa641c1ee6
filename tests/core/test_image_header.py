"""The first bytes of an image: its type and its size, and nothing where they are cut or of something else."""

from __future__ import annotations

import struct

import pytest

from recoveryd.core.image_header import from_base64, media_type, pixels

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480)
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x0b\x08" + struct.pack(">HH", 480, 640)
LOSSY = b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 10 + struct.pack("<HH", 640, 480)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14)


@pytest.mark.parametrize(
    ("data", "media"),
    [(PNG, "image/png"), (GIF, "image/gif"), (JPEG, "image/jpeg"), (LOSSY, "image/webp"), (LOSSLESS, "image/webp")],
)
def test_type_and_size_stand_in_the_header(data: bytes, media: str) -> None:
    assert (media_type(data), pixels(data)) == (media, (640, 480))
    for cut in range(len(data)):
        assert pixels(data[:cut]) is None


def test_what_is_no_image_has_no_size() -> None:
    assert (media_type(b"%PDF-1.7"), pixels(b"%PDF-1.7")) == ("application/pdf", None)
    assert (media_type(b"<svg/>"), pixels(b"")) == (None, None)
    assert (from_base64("AAEC"), from_base64("no base64"), from_base64("\u20ac")) == (b"\0\1\2", None, None)
