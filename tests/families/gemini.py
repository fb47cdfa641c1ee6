"""Gemini's API from its public documentation and the texts of public threads: reading a request, refusing, answering.

Function calls have no ids: they are counted, and so are the responses.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.e2e.signing import is_signature

Block = dict[str, Any]
Message = dict[str, Any]
Body = dict[str, Any]

UNSIGNED = "skip_thought_signature_validator"
_NO_WORDS = "Tool executed successfully."  # the client's, where a response has files alone
_HALF = re.compile("[\ud800-\udfff]")  # of a character
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_FIRST_BYTES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8", "image/webp": b"RIFF", "application/pdf": b"%PDF"}


def read(body: Body) -> list[Message]:
    """The contents as messages of blocks, as Anthropic's are written."""
    calls, responses = itertools.count(), itertools.count()
    roles = {"model": "assistant", "user": "user"}
    return [
        {"role": roles[content["role"]], "content": [_part(part, calls, responses) for part in content["parts"]]}
        for content in body["contents"]
    ]


def _part(part: Block, calls: Iterator[int], responses: Iterator[int]) -> Block:
    sealed = {} if part.get("thoughtSignature") is None else {"signature": part["thoughtSignature"]}
    if "functionCall" in part:
        call = part["functionCall"]
        given = {"input": call["args"]} if "args" in call else {}
        return {"type": "tool_use", "id": str(next(calls)), "name": call["name"], **given, **sealed}
    if "functionResponse" in part:
        response = part["functionResponse"]
        content: Any = response["response"]["content"]
        files = [_file(one) for one in response.get("parts", ())]
        if files or content == _NO_WORDS:
            content = [{"type": "text", "text": content}, *files] if content != _NO_WORDS else files
        return {"type": "tool_result", "tool_use_id": str(next(responses)), "content": content}
    if "text" in part:
        key = "thinking" if part.get("thought") else "text"
        return {"type": key, key: part["text"], **sealed}
    return _file(part)


def _file(part: Block) -> Block:
    if "fileData" in part:
        mime, source = part["fileData"]["mimeType"], {"type": "url", "url": part["fileData"]["fileUri"]}
    else:
        mime, data = part["inlineData"]["mimeType"], part["inlineData"]["data"]
        source = {"type": "base64", "media_type": mime, "data": data}
    return {"type": "image" if mime.startswith("image/") else "document", "source": source}


def counted(messages: list[Message]) -> list[Message]:
    """The same conversation with calls and responses counted in the place of their ids."""
    calls, responses = itertools.count(), itertools.count()
    return [{**m, "content": [_numbered(b, calls, responses) for b in m["content"]]} for m in messages]


def _numbered(block: Block, calls: Iterator[int], responses: Iterator[int]) -> Block:
    if block["type"] == "tool_use":
        return {**block, "id": str(next(calls))}
    return {**block, "tool_use_id": str(next(responses))} if block["type"] == "tool_result" else block


def refusal(body: Body, messages: list[Message]) -> str | None:
    """Why a conversation is refused: the form of the message first, then the order, then what is in the parts."""
    del body
    parts = [(at, i, part) for at, m in enumerate(messages) for i, part in enumerate(m["content"])]
    found = itertools.chain(
        (
            f"* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.\n"
            for at, m in enumerate(messages)
            if not m["content"]
        ),
        (words for one in parts if (words := _ill_formed(*one))),
        _out_of_order(messages),
        (words for _, _, part in parts if (words := _unread(part))),
    )
    return next(found, None)


def _ill_formed(at: int, place: int, part: Block) -> str | None:
    where, sealed = f"contents[{at}].parts[{place}]", part.get("signature")
    if _HALF.search(_words(part)):
        return f"GenerateContentRequest.{where}: a string field contains invalid UTF-8 data."
    if sealed is not None and sealed != UNSIGNED and _decoded(sealed) is None:
        return f"Invalid value at '{where}.thought_signature' (TYPE_BYTES), Base64 decoding failed for \"{sealed}\""
    if part["type"] == "text" and part["text"] == "":
        return f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field\n"
    if part["type"] != "tool_use":
        return None
    if not isinstance(part.get("input") or {}, dict):
        given = json.dumps(part["input"])
        return f"Invalid value at '{where}.function_call.args' (type.googleapis.com/google.protobuf.Struct), {given}"
    if not part["name"]:
        return f"* GenerateContentRequest.{where}.function_call.name: Name cannot be empty.\n"
    if not _NAME.fullmatch(part["name"]):
        return (
            f"* GenerateContentRequest.{where}.function_call.name: [FIELD_INVALID] Invalid function name. Must start "
            "with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots (.), colons (:), "
            "or dashes (-), with a maximum length of 64.\n"
        )
    return None


def _words(value: Any) -> str:
    """All texts of a part, also the keys."""
    if isinstance(value, dict):
        return "".join(_words(key) + _words(item) for key, item in value.items())
    return "".join(map(_words, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _decoded(sealed: str) -> bytes | None:
    try:
        return base64.b64decode(sealed, validate=True)
    except (binascii.Error, ValueError):
        return None


def _out_of_order(messages: list[Message]) -> Iterator[str]:
    """Of turns: each with calls behind the user or responses, and its responses right behind it."""
    calls = responses = 0
    for at, message in enumerate(messages):
        asked = sum(part["type"] == "tool_use" for part in message["content"])
        given = sum(part["type"] == "tool_result" for part in message["content"])
        if asked and (not at or messages[at - 1]["role"] != "user"):
            yield (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        if given and not calls:
            yield "Please ensure that function response turn comes immediately after a function call turn."
        responses = given
        if calls != responses:
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        calls = asked
    if calls or (messages and messages[-1]["role"] != "user"):
        yield "Please ensure that multiturn requests end with a user role or a function response."


def _unread(part: Block) -> str | None:
    """What only shows once a part is looked into: its signature, its picture, and those of a response."""
    sealed = part.get("signature")
    if sealed and sealed != UNSIGNED and not is_signature(sealed):
        return "Corrupted thought signature."
    inner = part.get("content")
    for one in (part, *(inner if isinstance(inner, list) else ())):
        source = one.get("source") or {}
        mime, data = source.get("media_type"), base64.b64decode((source.get("data") or "")[:64])  # its first bytes
        if data and mime not in _FIRST_BYTES:
            return f"Unsupported MIME type: {mime}"
        if data and mime == "application/pdf" and not data.startswith(b"%PDF"):
            return "The document has no pages."
        if data and not data.startswith(_FIRST_BYTES[str(mime)]):
            return (
                "Unable to process input image. Please retry or report in "
                "https://developers.generativeai.google/guide/troubleshooting"
            )
    return None


def wrapped(words: str) -> Body:
    """An error as the API tells it."""
    return {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}


def stream(words: str, model: str) -> tuple[str, bytes]:
    """An answer of one text, as server-sent events."""
    candidate = {"content": {"role": "model", "parts": [{"text": words}]}, "index": 0, "finishReason": "STOP"}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    event = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}
    return "text/event-stream", f"data: {json.dumps(event)}\n\n".encode()
