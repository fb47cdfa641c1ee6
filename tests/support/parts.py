"""The parts of a stored message, field by field as the client (1.1.53) writes them, still without ids and times."""

from __future__ import annotations

import json
from typing import Any

Part = dict[str, Any]

SIGNED = "(signed by the provider)"
SPENT = {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def text(words: str, **fields: Any) -> Part:
    """A text part; `synthetic=True`, `ignored=True` and `metadata` as wanted."""
    return {"type": "text", "text": words, **fields}


def reasoning(words: str, signature: str | None = SIGNED, **anthropic: Any) -> Part:
    """A reasoning part: signed by the provider, with the signature given, or (None) without one."""
    marks = {**({} if signature is None else {"signature": signature}), **anthropic}
    return {"type": "reasoning", "text": words, **({"metadata": {"anthropic": marks}} if marks else {})}


def tool(
    name: str = "bash",
    arguments: Any = None,
    output: Any = "done\n",
    *,
    status: str = "completed",
    call_id: str | None = None,
    **state: Any,
) -> Part:
    """A tool part with a legal state of this status. `output` is the error's text where the status is "error"; further
    fields go into the state. `status=""` leaves the state out."""
    part: Part = {"type": "tool", "callID": call_id, "tool": name}
    if not status:
        return part
    shape: dict[str, Any] = {"status": status, "input": {"command": "true"} if arguments is None else arguments}
    if status == "pending":
        shape["raw"] = ""
    elif status == "completed":
        shape |= {"output": output, "title": "a call", "metadata": {"output": output, "exit": 0, "truncated": False}}
    elif status == "error":
        shape["error"] = output
    return {**part, "state": {**shape, **state}}


def step_start(**fields: Any) -> Part:
    """The mark at which a step begins."""
    return {"type": "step-start", **fields}


def step_finish(reason: str = "stop") -> Part:
    """The mark at which a step ends."""
    return {"type": "step-finish", "reason": reason, "cost": 0.000105, "tokens": SPENT}


def file(url: str, mime: str = "image/png", filename: str = "a.png", **fields: Any) -> Part:
    """A file that the user attached, or (without the ids) one that a tool returned."""
    return {"type": "file", "mime": mime, "filename": filename, "url": url, **fields}


def compaction(auto: bool = False) -> Part:
    """The part of a user message that asks for a summary of all before it."""
    return {"type": "compaction", "auto": auto}


def subtask(prompt: str = "look around", agent: str = "general") -> Part:
    """The part of a user message that starts a task of its own."""
    return {"type": "subtask", "prompt": prompt, "description": "a task", "agent": agent}


def raw(content: bytes) -> Part:
    """A part whose file holds these bytes, whatever they are."""
    return {"type": "raw", "raw": content}


def aborted() -> dict[str, Any]:
    """The error of a turn that the user ended (ESC)."""
    return {"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}}


def api_error(message: str = "Overloaded", status: int = 529, retryable: bool = False) -> dict[str, Any]:
    """The error of a request that the provider refused, as the client records it."""
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
    data = {"message": message, "statusCode": status, "isRetryable": retryable, "responseBody": body}
    return {"name": "APIError", "data": {**data, "metadata": {"url": "http://127.0.0.1:1/v1/messages"}}}
