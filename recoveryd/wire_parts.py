"""The body of each kind of stored part as it is sent to an Anthropic provider, and what makes a part unsendable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from recoveryd.model import Json

_ILLEGAL_ID = re.compile(r"[^a-zA-Z0-9_-]")
_CLEARED = "[Old tool result content cleared]"
_INTERRUPTED = "[Tool execution was interrupted]"


class CannotSend(Exception):
    """The client fails on this part before it sends anything; the text says why, as a clause."""


def sound_metadata(metadata: object) -> bool:
    """The SDK takes only objects of objects, and refuses the whole conversation for anything else."""
    return metadata is None or (
        isinstance(metadata, Mapping) and all(isinstance(v, Mapping) for v in metadata.values())
    )


def text(data: Json) -> Json:
    if not isinstance(data.get("text"), str):
        raise CannotSend("its text is missing")
    return {"type": "text", "text": data["text"]}


def reasoning(data: Json, metadata: Any) -> Json | None:
    """A thinking block, a redacted one, or nothing: reasoning that no provider signed is not sent."""
    if not isinstance(data.get("text"), str):
        raise CannotSend("its text is missing")
    anthropic = metadata.get("anthropic") if isinstance(metadata, Mapping) else None
    if data["text"] == "" or not isinstance(anthropic, Mapping):
        return None
    signature, redacted = anthropic.get("signature"), anthropic.get("redactedData")
    for value in (signature, redacted):
        if value is not None and not isinstance(value, str):
            raise CannotSend("its signature is not a text")
    if signature is not None:
        return {"type": "thinking", "thinking": data["text"], "signature": signature}
    return {"type": "redacted_thinking", "data": redacted} if redacted is not None else None


def file(data: Json) -> Json:
    """A file of the user: an image or a document, or the client's words for a type that no Anthropic model takes."""
    mime, url, name = data.get("mime"), data.get("url"), data.get("filename")
    if not isinstance(mime, str) or not isinstance(url, str):
        raise CannotSend("the attached file has no type or address")
    kind = mime.split("/")[0]
    if kind in ("audio", "video"):
        named = f'"{name}"' if name else kind
        words = f"ERROR: Cannot read {named} (this model does not support {kind} input). Inform the user."
        return {"type": "text", "text": words}
    media, source = _source(url, mime)
    if media.startswith("image/"):
        return {"type": "image", "source": source}
    if media == "application/pdf":
        return {"type": "document", "source": source, **({"title": name} if name is not None else {})}
    raise CannotSend(f"the client cannot send a file of type {media}")


def _source(url: str, mime: str) -> tuple[str, Json]:
    """The media type that counts, and the `source` of the block. A data URL's own type wins over the stored one."""
    if re.match(r"https?://", url, re.IGNORECASE):
        return mime, {"type": "url", "url": url}
    if not url.startswith("data:") or "," not in url:
        raise CannotSend("the client cannot send a file from this address")
    header, _, content = url.partition(",")
    mime = header.split(";")[0].partition(":")[2]
    media = "image/jpeg" if mime == "image/*" else mime
    return mime, {"type": "base64", "media_type": media, "data": content.split(",")[0]}


def tool(data: Json, model: str) -> tuple[Json | None, Json | None]:
    """The call and its result. A call whose status the client does not know is not sent."""
    state = data.get("state")
    if not isinstance(state, Mapping):
        raise CannotSend("the tool call has no state")
    status = state.get("status")
    if status not in ("completed", "error", "pending", "running"):
        return None, None
    call_id, name = data.get("callID"), data.get("tool")
    if not isinstance(call_id, str) or not isinstance(name, str):
        raise CannotSend("the tool call has no id or no name")
    metadata = data.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("providerExecuted"):
        raise CannotSend("the call is marked as executed by the provider")
    if "claude" in model:  # the client mends ids for models of this name only
        call_id = _ILLEGAL_ID.sub("_", call_id)
    call: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": name}
    if "input" in state and (state["input"] is not None or status == "completed"):
        call["input"] = state["input"]
    result = {"type": "tool_result", "tool_use_id": call_id}
    if status == "completed":
        return call, {**result, "content": _output(state)}
    error = state.get("error") if status == "error" else _INTERRUPTED
    words = "unknown error" if error is None else error if isinstance(error, str) else _compact(error)
    return call, {**result, "content": words, "is_error": True}


def _output(state: Json) -> str | list[Json]:
    time = state.get("time")
    if not isinstance(time, Mapping):
        raise CannotSend("the finished tool call has no time")
    if time.get("compacted"):
        return _CLEARED
    output, attachments = state.get("output"), state.get("attachments") or []
    if isinstance(output, (bool, int, float)) and not attachments:
        return _compact(output)
    if not isinstance(output, str) or not isinstance(attachments, list):
        raise CannotSend("the finished tool call has no output")
    if not attachments:
        return output
    return [{"type": "text", "text": output}, *(block for item in attachments for block in _attachment(item))]


def _attachment(item: object) -> list[Json]:
    url, mime = (item.get("url"), item.get("mime")) if isinstance(item, Mapping) else (None, None)
    if not isinstance(url, str) or not isinstance(mime, str):
        raise CannotSend("an attachment of the tool call has no type or address")
    if not url.startswith("data:") or "," not in url:
        return []
    if not mime.startswith("image/") and mime != "application/pdf":
        raise CannotSend(f"the client cannot send an attachment of type {mime}")
    source = {"type": "base64", "media_type": mime, "data": url.partition(",")[2]}
    return [{"type": "image" if mime.startswith("image/") else "document", "source": source}]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
