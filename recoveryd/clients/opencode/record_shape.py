"""Make the shape of OpenCode's records for a bug report: listed words, lengths and flags, no word of what they say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recoveryd.core import Json, known_word, text_shape, text_shapes, type_name, words

ERROR_NAMES = words(
    "APIError ProviderAuthError UnknownError MessageOutputLengthError MessageAbortedError StructuredOutputError "
    "ContextOverflowError ContentFilterError"
)
_TYPES = words("text reasoning tool file step-start step-finish snapshot patch agent subtask compaction retry thinking")
_STATES = ("pending", "running", "completed", "error")
_FINISH = ("stop", "tool-calls", "length", "content-filter", "error", "unknown", "other")
_TOOLS = words(
    "bash edit read write grep glob list patch apply_patch multiedit webfetch websearch codesearch task todowrite "
    "todoread skill lsp question batch plan_enter plan_exit invalid"
)
_PROVIDERS = words(
    "anthropic google-vertex-anthropic google-vertex google amazon-bedrock openai azure openrouter github-copilot "
    "opencode deepseek mistral groq xai cerebras moonshotai zhipuai alibaba ollama lmstudio"
)
_MIMES = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "text/plain")
_FLAGS = ("synthetic", "ignored", "summary", "auto")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")


def part_shape(data: Json, call: Callable[[str], str]) -> dict[str, Any]:
    """Make the shape of an OpenCode part for a bug report; `call` gives what stands for the id of a tool call."""
    shape: dict[str, Any] = {"type": known_word(data.get("type"), _TYPES)}
    shape |= {flag: True for flag in _FLAGS if data.get(flag) is True}
    if "text" in data:
        shape["text"] = text_shape(data["text"])
    if data.get("type") == "tool" or "state" in data:
        shape |= _tool(data, call)
    if "url" in data:
        shape["file"] = _file(data)
    if "metadata" in data:
        shape["metadata"] = _metadata(data["metadata"])
    if isinstance(data.get("time"), Mapping):
        shape["ended"] = "end" in data["time"]
    return shape


def message_shape(data: Json) -> dict[str, Any]:
    """Make the shape of what an OpenCode message says beside its role and its parts."""
    shape: dict[str, Any] = {}
    for key, allowed in (("finish", _FINISH), ("providerID", _PROVIDERS)):
        if key in data:
            shape[key] = known_word(data[key], allowed)
    return {**shape, "summary": True} if data.get("summary") is True else shape


def _tool(data: Json, of_call: Callable[[str], str]) -> dict[str, Any]:
    call = data.get("callID")
    shape: dict[str, Any] = {
        "tool": known_word(data.get("tool"), _TOOLS),
        "call": of_call(call) if isinstance(call, str) else type_name(call),
        "call_legal": isinstance(call, str) and _CALL_ID.fullmatch(call) is not None,
    }
    state = data.get("state")
    if not isinstance(state, Mapping):
        return {**shape, "state": type_name(state)}
    shape["state"] = known_word(state.get("status"), _STATES)
    shape |= text_shapes(state, ("input", "output", "error"))
    attachments = state.get("attachments")
    if isinstance(attachments, Sequence) and not isinstance(attachments, str):
        shape["attachments"] = [_file(one) for one in attachments if isinstance(one, Mapping)]
    if isinstance(state.get("metadata"), Mapping):
        shape["metadata_of_state"] = _metadata(state["metadata"])
    times = state.get("time")
    return {**shape, "compacted": isinstance(times, Mapping) and "compacted" in times}


def _file(data: Json) -> dict[str, Any]:
    url = data.get("url")
    scheme = url.partition(":")[0] if isinstance(url, str) else ""
    shape = {"mime": known_word(data.get("mime"), _MIMES), "url": known_word(scheme, ("data", "http", "https", "file"))}
    return {**shape, "length": len(url) if isinstance(url, str) else None}


def _metadata(metadata: object) -> Any:
    """Tell which keys of the metadata are there that mean something to the client, and the lengths of their texts."""
    if not isinstance(metadata, Mapping):
        return type_name(metadata)
    shape: dict[str, Any] = {"keys": len(metadata)}
    for key in ("anthropic", "recoveryd", "providerExecuted", "interrupted", "output"):
        if key in metadata:
            shape[key] = type_name(metadata[key])
    anthropic = metadata.get("anthropic")
    if isinstance(anthropic, Mapping):
        for key in ("signature", "redactedData"):
            if key in anthropic:
                shape[key] = text_shape(anthropic[key])
    return shape
