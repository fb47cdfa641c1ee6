"""What Gemini refuses of an image or a document, told from its type and its first bytes."""

from __future__ import annotations

from collections.abc import Iterator

from recoveryd.core import Json, from_base64, media_type
from recoveryd.providers.anthropic import media

_HEAD = 4096  # of base64, a multiple of four
# Of those that it takes, the ones that can be told by their first bytes.
_KNOWN = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})
_UNKNOWN = ("image/heic", "image/heif", "text/", "audio/", "video/", "application/json")


def sources(body: Json, sort: str = "") -> Iterator[Json]:
    """Go through the source of each image or document in a part for Gemini, also of those in a function's response; of
    one `sort` alone, if that is "image" or "document".
    """
    return media.sources(body, sort)


def media_fault(source: Json) -> str | None:
    """Tell why Gemini refuses an image or document, as half a sentence; None where nothing tells."""
    declared = str(source.get("media_type"))
    if source.get("type") != "base64" or declared.startswith(_UNKNOWN):
        return None
    if declared not in _KNOWN:
        return f"the provider does not take files of type {declared}"
    head = from_base64(str(source.get("data", ""))[:_HEAD])
    found = media_type(head) if head else None
    if found is None or (found == "application/pdf") != (declared == "application/pdf"):
        return "it is no image or document that the provider can read"
    return None
