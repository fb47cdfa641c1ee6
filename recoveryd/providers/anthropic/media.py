"""What an Anthropic provider refuses of an image or a document, told from the first bytes of it.

Limits, by the provider's own error texts: of an image 10 MB of base64 (5 MB at some doors, and before: then the
error says so) and 8000 pixels a side (2000 with more than 20 images), of all in a request 32 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recoveryd.core import Json, from_base64, media_type, pixels

MAX_BASE64 = 10 * 1024 * 1024  # characters
MAX_REQUEST = 32 * 1024 * 1024  # characters, all media of a request together
MAX_SIDE, MAX_SIDE_OF_MANY, MANY = 8000, 2000, 20
_SORTS = ("image", "document")
UNREADABLE = _NO_IMAGE, _NO_PDF = "it is no image that the provider can read", "it is no PDF document"
_HEAD = 4096  # of base64, a multiple of four: the sizes of most images stand there
_DOCUMENTS = frozenset(  # that Bedrock takes beside PDFs; what is refused of one, its error tells
    {
        "text/csv",
        "text/html",
        "text/markdown",
        "text/plain",
        "application/msword",
        "application/vnd.ms-excel",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
)
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def sources(body: Json, sort: str = "") -> Iterator[Json]:
    """Go through the `source` of each image or document in a content block of Anthropic's, also of those in a tool's
    result; of the one `sort` alone, if that is "image" or "document".
    """
    source, content = body.get("source"), body.get("content")
    sorts = [sort] if sort in _SORTS else _SORTS
    if body.get("type") in sorts and isinstance(source, Mapping):
        yield source
    if body.get("type") == "container_upload":
        yield {"type": "file", "file_id": body.get("file_id")}
    for item in content if isinstance(content, list) else ():
        if isinstance(item, Mapping):
            yield from sources(item, sort)


def is_of_other_type(source: Json) -> bool:
    """Whether an image is declared as of a type that Anthropic does not take, and others may."""
    return source.get("media_type") not in {*_IMAGES, "application/pdf"}


def media_fault(source: Json, *, many: bool, most: int = MAX_BASE64, widest: int = MAX_SIDE) -> str | None:
    """Tell why Anthropic refuses an image or document, as half a sentence; None. `many`: the request has more than 20
    images; `most`: characters that an image may have; `widest`: pixels that a side may have, if there are not many.
    """
    if source.get("type") != "base64":
        return None
    data, declared = str(source.get("data", "")), source.get("media_type")
    head = from_base64(data[:_HEAD])
    found = media_type(head) if head is not None else None
    if declared == "application/pdf":
        return None if found == declared else _NO_PDF
    if declared in _DOCUMENTS:
        return None
    if len(data) > most:
        return f"it has {len(data) / 2**20:.1f} MB, and the provider takes {most / 2**20:.0f}"
    if found not in _IMAGES or declared not in _IMAGES:
        return _NO_IMAGE
    if found != declared:
        return f"it is declared as {declared} and is {found}"
    size = pixels(head or b"") or pixels(from_base64(data) or b"")
    if size is None:
        return _NO_IMAGE
    return _too_wide(size, many, widest)


def _too_wide(size: tuple[int, int], many: bool, widest: int) -> str | None:
    limit = MAX_SIDE_OF_MANY if many else widest
    if max(size) <= limit:
        return None
    among = " among more than 20 images" if many and max(size) <= MAX_SIDE else ""
    return f"it has {size[0]} x {size[1]} pixels, and the provider takes {limit} a side{among}"
