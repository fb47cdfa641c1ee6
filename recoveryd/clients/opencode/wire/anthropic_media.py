"""Files, images and documents as they are sent: those of the user, and those that a tool returned."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from recoveryd.clients.opencode.wire.form import OLD, Form
from recoveryd.core import Json


class CannotSend(Exception):
    """The client fails on this part before it sends anything; the text says why, as a clause.

    `fault` names what is wrong, for the repair: not_json, metadata, text, signature, file, state, name, time, output or
    attachment.
    """

    def __init__(self, fault: str, reason: str) -> None:
        super().__init__(reason)
        self.fault = fault


def file(data: Json) -> Json:
    """A file of the user: an image or a document, or the client's words for a type that no Anthropic model takes."""
    mime, url, name = data.get("mime"), data.get("url"), data.get("filename")
    if not isinstance(mime, str) or not isinstance(url, str):
        raise CannotSend("file", "the attached file has no type or address")
    kind = mime.split("/")[0]
    if kind in ("audio", "video"):
        named = f'"{name}"' if name else kind
        words = f"ERROR: Cannot read {named} (this model does not support {kind} input). Inform the user."
        return {"type": "text", "text": words}
    media, source = _source(url, mime)
    if media.startswith("image/"):
        return {"type": "image", "source": source}
    if media in ("application/pdf", "text/plain"):
        if media == "text/plain" and source["type"] == "base64":
            source = {"type": "text", "media_type": media, "data": _plain(source["data"])}
        return {"type": "document", "source": source, **({"title": name} if name is not None else {})}
    raise CannotSend("file", f"the client cannot send a file of type {media}")


def _source(url: str, mime: str) -> tuple[str, Json]:
    """The media type that counts, and the `source` of the block. A data URL's own type wins over the stored one."""
    if re.match(r"https?://", url, re.IGNORECASE):
        return mime, {"type": "url", "url": url}
    if url[:5].lower() != "data:" or "," not in url:
        raise CannotSend("file", "the client cannot send a file from this address")
    header, _, content = url.partition(",")
    mime = header.split(";")[0].partition(":")[2]
    media = "image/jpeg" if mime == "image/*" else mime
    return mime, {"type": "base64", "media_type": media, "data": content.split(",")[0]}


def _plain(encoded: str) -> str:
    """Decoded as the client does it, which asks for nothing and skips what is no base64."""
    letters = re.sub(r"[^A-Za-z0-9+/]", "", encoded)
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    return base64.b64decode(letters + "=" * (-len(letters) % 4)).decode("utf-8", "replace")


def media_source(item: Json) -> Json | None:
    """The `source` that an attachment of a tool becomes; None for what is not sent."""
    url, mime = item.get("url"), item.get("mime")
    if not isinstance(url, str) or not isinstance(mime, str) or not url.startswith("data:") or "," not in url:
        return None
    return {"type": "base64", "media_type": mime, "data": url.partition(",")[2]}


def attachment(item: object, form: Form) -> list[Json]:
    if not isinstance(item, Mapping) or not isinstance(item.get("url"), str) or not isinstance(item.get("mime"), str):
        raise CannotSend("attachment", "an attachment of the tool call has no type or address")
    source, mime = media_source(item), item["mime"]
    if source is None:
        return []
    if mime.startswith("image/") or mime == "application/pdf":
        return [{"type": "image" if mime.startswith("image/") else "document", "source": source}]
    if form is OLD:
        raise CannotSend("attachment", f"the client cannot send an attachment of type {mime}")
    return []
