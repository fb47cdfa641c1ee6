"""The shape of a stored session without a word of what it says: roles, types, lengths, flags.

Nothing of the session's own text gets through: a value is either one of the words listed here, a number, or yes or no.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from recoveryd.clients import recorded
from recoveryd.core import Edit, Json, Message, Part, RecordedError, Session
from recoveryd.providers import LIKELY, SURE, squeeze


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


OTHER = "other"
_ROLES = ("user", "assistant")
_TYPES = _words(
    "text reasoning tool file step-start step-finish snapshot patch agent subtask compaction retry thinking"
)
_STATES = ("pending", "running", "completed", "error")
_FINISH = ("stop", "tool-calls", "length", "content-filter", "error", "unknown", "other")
_TOOLS = _words(
    "bash edit read write grep glob list patch apply_patch multiedit webfetch websearch codesearch task todowrite "
    "todoread skill lsp question batch plan_enter plan_exit invalid"
)
_PROVIDERS = _words(
    "anthropic google-vertex-anthropic google-vertex google amazon-bedrock openai azure openrouter github-copilot "
    "opencode deepseek mistral groq xai cerebras moonshotai zhipuai alibaba ollama lmstudio"
)
_MODELS = _words("claude opus sonnet haiku fable gpt codex gemini pro flash mini nano deepseek qwen kimi glm latest")
_ERRORS = _words(
    "APIError ProviderAuthError UnknownError MessageOutputLengthError MessageAbortedError StructuredOutputError "
    "ContextOverflowError"
)
_ERROR_TYPES = _words(
    "invalid_request_error authentication_error permission_error not_found_error request_too_large rate_limit_error "
    "api_error overloaded_error"
)
_MIMES = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "text/plain")
_FLAGS = ("synthetic", "ignored", "summary", "auto")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_PLACE = re.compile(r"messages\.(\d{1,5})(?:\.content\.(\d{1,5}))?")
_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}


class Ordinals:
    """Replaces ids by numbers in the order in which they are met: an id tells when something was made, and perhaps by
    whom.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._known: dict[str, str] = {}

    def of(self, identifier: str) -> str:
        """Return the number of an id: "m1", always the same."""
        return self._known.setdefault(identifier, f"{self._prefix}{len(self._known) + 1}")


class Shaper:
    """Shapes of one session's records, with the same names for the same ids in all of them."""

    def __init__(self) -> None:
        self.messages, self.parts, self._calls = Ordinals("m"), Ordinals("p"), Ordinals("c")

    def session(self, session: Session) -> list[dict[str, Any]]:
        """Make the shapes of all messages of a session."""
        start = next((message.created for message in session.messages if message.created), 0)
        return [self._message(message, start) for message in session.messages]

    def edit(self, edit: Edit, session: Session) -> dict[str, Any]:
        """Make the shape of an edit: the part before and after."""
        stored = session.part(edit.part_id) if edit.part_id else None
        return {
            "action": edit.action,
            "message": self.messages.of(edit.message_id),
            "part": self.parts.of(edit.part_id) if edit.part_id else None,
            "before": self.part(stored.data) if stored is not None else None,
            "after": self.part(edit.after) if edit.after is not None else None,
        }

    def part(self, data: Json | None) -> dict[str, Any]:
        """Make the shape of a part, or of what stands in its place; None: it is no JSON object."""
        if data is None:
            return {"json": False}
        shape: dict[str, Any] = {"type": _known(data.get("type"), _TYPES)}
        shape |= {flag: True for flag in _FLAGS if data.get(flag) is True}
        if "text" in data:
            shape["text"] = text_shape(data["text"])
        if data.get("type") == "tool" or "state" in data:
            shape |= self._tool(data)
        if "url" in data:
            shape["file"] = _file(data)
        if "metadata" in data:
            shape["metadata"] = _metadata(data["metadata"])
        if isinstance(data.get("time"), Mapping):
            shape["ended"] = "end" in data["time"]
        return shape

    def _message(self, message: Message, start: int) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "id": self.messages.of(message.id),
            "role": _known(message.role, _ROLES),
            "after_s": (message.created - start) // 1000 if message.created else None,
            "completed": bool(message.completed),
            "parts": [self._stored(part) for part in message.parts],
        }
        for key, allowed in (("finish", _FINISH), ("providerID", _PROVIDERS)):
            if key in message.data:
                shape[key] = _known(message.data[key], allowed)
        if "modelID" in message.data:
            shape["model"] = model_shape(message.data["modelID"])
        if message.data.get("summary") is True:
            shape["summary"] = True
        if message.error is not None:
            shape["error"] = error_shape(recorded(message.error))
        return shape

    def _stored(self, part: Part) -> dict[str, Any]:
        return {"id": self.parts.of(part.id), "bytes": len(part.raw or b""), **self.part(part.data)}

    def _tool(self, data: Json) -> dict[str, Any]:
        call = data.get("callID")
        shape: dict[str, Any] = {
            "tool": _known(data.get("tool"), _TOOLS),
            "call": self._calls.of(call) if isinstance(call, str) else _type(call),
            "call_legal": isinstance(call, str) and _CALL_ID.fullmatch(call) is not None,
        }
        state = data.get("state")
        if not isinstance(state, Mapping):
            return {**shape, "state": _type(state)}
        shape["state"] = _known(state.get("status"), _STATES)
        for key in ("input", "output", "error"):
            if key in state:
                shape[key] = text_shape(state[key]) if isinstance(state[key], str) else _type(state[key])
        attachments = state.get("attachments")
        if isinstance(attachments, Sequence) and not isinstance(attachments, str):
            shape["attachments"] = [_file(one) for one in attachments if isinstance(one, Mapping)]
        if isinstance(state.get("metadata"), Mapping):
            shape["metadata_of_state"] = _metadata(state["metadata"])
        times = state.get("time")
        return {**shape, "compacted": isinstance(times, Mapping) and "compacted" in times}


def text_shape(text: object) -> dict[str, Any]:
    """Make the shape of a text: its length, and what is odd about it."""
    if not isinstance(text, str):
        return {"is": _type(text)}
    shape: dict[str, Any] = {"length": len(text)}
    if not text.strip():
        shape["blank"] = True
    elif text != text.rstrip():
        shape["ends_in_space"] = True
    if any("\ud800" <= char <= "\udfff" for char in text):
        shape["half_characters"] = True
    return shape


def model_shape(model: object) -> str:
    """`claude-sonnet-4-5-20250929` as `claude-sonnet-4-5-#`: known words and short numbers."""
    if not isinstance(model, str):
        return _type(model)
    pieces = re.split(r"[-./:_@]", model.lower())
    said = [p if p in _MODELS or (p.isascii() and p.isdigit() and len(p) < 3) else "#" for p in pieces[:12]]
    return "-".join(said)


def error_shape(error: RecordedError) -> dict[str, Any]:
    """Make the shape of an error: its name, its figures, and the sentences in it that providers are known to say."""
    together = "\n".join(error.texts)
    place = _PLACE.search(together)
    return {
        "name": _known(error.name, _ERRORS),
        "status": error.status if error.status is not None and 0 <= error.status < 1000 else None,
        "types": [name for name in _ERROR_TYPES if name in together],
        "says": known_wording(together),
        "place": [int(n) if n else None for n in place.groups()] if place else None,
        "lengths": [len(text) for text in error.texts],
    }


def known_wording(text: str) -> list[str]:
    """List the sentences of recoveryd's own tables that are in a text. Nothing of the text itself is returned."""
    letters = squeeze(text[:100_000])
    return [piece for piece, squeezed in _pieces() if squeezed in letters]


@cache
def _pieces() -> tuple[tuple[str, str], ...]:
    """Return the sentences of the tables without their gaps, and squeezed for comparison; short ones are left out."""
    pieces = dict.fromkeys(piece.strip() for row in (*SURE, *LIKELY) for piece in re.split(r"[*#{}]", row.words))
    return tuple((piece, squeeze(piece)) for piece in pieces if len(squeeze(piece)) > 7)


def _file(data: Json) -> dict[str, Any]:
    url = data.get("url")
    scheme = url.partition(":")[0] if isinstance(url, str) else ""
    shape = {"mime": _known(data.get("mime"), _MIMES), "url": _known(scheme, ("data", "http", "https", "file"))}
    return {**shape, "length": len(url) if isinstance(url, str) else None}


def _metadata(metadata: object) -> Any:
    """Tell which keys of the metadata are there that mean something to the client, and the lengths of their texts."""
    if not isinstance(metadata, Mapping):
        return _type(metadata)
    shape: dict[str, Any] = {"keys": len(metadata)}
    for key in ("anthropic", "recoveryd", "providerExecuted", "interrupted", "output"):
        if key in metadata:
            shape[key] = _type(metadata[key])
    anthropic = metadata.get("anthropic")
    if isinstance(anthropic, Mapping):
        for key in ("signature", "redactedData"):
            if key in anthropic:
                shape[key] = text_shape(anthropic[key])
    return shape


def _known(value: object, allowed: Collection[str]) -> str:
    if isinstance(value, str):
        return value if value in allowed else OTHER
    return _type(value)


def _type(value: object) -> str:
    return "null" if value is None else _JSON_TYPES.get(type(value), "object" if isinstance(value, Mapping) else OTHER)
