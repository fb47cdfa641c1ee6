"""Files, images and documents as they are handed to a provider's SDK: those of the user, and those of a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from recoveryd.core import Json

_BLANK = "".join(map(chr, range(0x21)))  # at either end of an address


class CannotSend(Exception):
    """Raised for a file, or another part, on which OpenCode fails before it sends anything; the text says why, as a
    clause.

    `fault` names what is wrong, for the repair: not_json, metadata, text, signature, file, state, name, time, output,
    executed or attachment.
    """

    def __init__(self, fault: str, reason: str) -> None:
        super().__init__(reason)
        self.fault = fault


def file(data: Json, reads: frozenset[str]) -> Json:
    """Make the file of a user that OpenCode sends, or its words for a kind that the model does not read; `reads` names
    those it does.

    A file is `{"type": "file", "mime", "source", "filename", "unread"}`; its `source` is as in Anthropic's blocks, and
    `unread` are the words that go in its place to a model that does not read it; None where nothing but the file does.
    """
    mime, url, name = data.get("mime"), data.get("url"), data.get("filename")
    if not isinstance(mime, str) or not isinstance(url, str):
        raise CannotSend("file", "the attached file has no type or address")
    kind = _kind(mime)
    named = f'"{name}"' if name else kind
    words = f"ERROR: Cannot read {named} (this model does not support {kind} input). Inform the user."
    if kind is not None and kind not in reads:
        return {"type": "text", "text": words}
    media, source = _source(_as_address(url), mime)
    unread = words if kind is not None else None
    return {"type": "file", "mime": media, "source": source, "filename": name, "unread": unread}


def _kind(mime: str) -> str | None:
    """Return what a model must be able to read for a file of this type; None where the client asks for nothing."""
    first = mime.split("/")[0]
    return "pdf" if mime == "application/pdf" else first if first in ("image", "audio", "video") else None


def _as_address(url: str) -> str:
    """Read an address as the client's `new URL` does, which every version does of a prompt's file and of one beside a
    result: without tabs and the ends of lines, so base64 in lines is sent in one.
    """
    return url.strip(_BLANK).replace("\n", "").replace("\r", "").replace("\t", "")


def _source(url: str, mime: str) -> tuple[str, Json]:
    """Return the media type that counts (a data URL's own before the stored one), and the `source` of the block."""
    if re.match(r"https?://", url, re.IGNORECASE):
        return mime, {"type": "url", "url": url}
    if url[:5].lower() != "data:" or "," not in url:
        raise CannotSend("file", "the client cannot send a file from this address")
    header, _, content = url.partition(",")
    mime = header.split(";")[0].partition(":")[2]
    media = "image/jpeg" if mime == "image/*" else mime
    return mime, {"type": "base64", "media_type": media, "data": content.split(",")[0]}


def media_source(item: Json) -> Json | None:
    """Return the `source` of a file in a tool's result that OpenCode sends; None for what is not sent."""
    url, mime = item.get("url"), item.get("mime")
    if not isinstance(url, str) or not isinstance(mime, str) or not url.startswith("data:") or "," not in url:
        return None
    return {"type": "base64", "media_type": mime, "data": url.partition(",")[2]}


def sources_of(item: Json) -> Iterator[Json]:
    """Go through the `source` of a file in a tool's result in each form in which OpenCode may send it: in the result,
    beside it.
    """
    within = media_source(item)
    if within is not None:
        yield within
    with suppress(CannotSend):
        beside = file(item, frozenset({"image", "pdf"}))
        if beside["type"] == "file":  # words stand for sound and films, which no model is sent there
            yield beside["source"]


def attachment(item: object) -> Json | None:
    """Make the file in a tool's result that OpenCode sends, `{"type": "file", "mime", "source"}`; None for what is not
    sent.
    """
    if not isinstance(item, Mapping) or not isinstance(item.get("url"), str) or not isinstance(item.get("mime"), str):
        raise CannotSend("attachment", "an attachment of the tool call has no type or address")
    source = media_source(item)
    return None if source is None else {"type": "file", "mime": item["mime"], "source": source}


def is_picture_or_pdf(mime: str) -> bool:
    """Whether a file in a tool's result is taken out of it for an SDK that can't have it there."""
    return mime.startswith("image/") or mime == "application/pdf"
