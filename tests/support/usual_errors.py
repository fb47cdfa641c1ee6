"""The usual errors of providers and gateways and of what stands before them, and how OpenCode and Codex record each.

A row of `tests/data/usual_errors.json`: who says it, with which status, in which body, and what a person is to be told:
a `Cause`, or the `Kind` of a refusal of the history; None where the words do not tell. Status 0: nobody answered, and
the body is what the client says; 200: it is an event of a stream.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from recoveryd.core import Cause, Kind

_DATA = Path(__file__).parent.parent / "data" / "usual_errors.json"


@dataclass(frozen=True)
class UsualError:
    """One answer of a provider, and what it is about."""

    said_by: str
    status: int
    body: str
    told: Cause | Kind | None

    def __str__(self) -> str:
        return f"{self.said_by} {self.status} {self.body[:120]}"


def _told(name: str | None) -> Cause | Kind | None:
    return None if name is None else Cause(name) if name in set(Cause) else Kind(name)


def usual_errors() -> list[UsualError]:
    """List all rows."""
    rows = json.loads(_DATA.read_text(encoding="utf-8"))
    return [UsualError(row["from"], row["status"], row["body"], _told(row["told"])) for row in rows]


def recorded(error: UsualError) -> list[object]:
    """List the forms in which clients keep it: where the SDK knows the body, and where it does not (1.18 and 1.1).
    Where nobody answered with a status it is the words alone, or the event of a stream.
    """
    if error.status in (0, HTTPStatus.OK):
        said = {"message": _message(error.body) or error.body, "isRetryable": True}
        event = {"responseBody": error.body} if error.status else {}
        return [{"name": "APIError", "data": said | event}, {"name": "UnknownError", "data": {"message": error.body}}]
    reason = HTTPStatus(error.status).phrase if error.status in set(HTTPStatus) else ""
    unknown = _of_page(error, reason) if _is_page(error.body) else f"{reason}: {_shown(error.body)}"
    answers = (_message(error.body), unknown if error.body else reason or "Unknown error", reason)
    return [_api_error(message, error) for message in dict.fromkeys(answers) if message]


# Codes of a body that Codex has a name of its own for, and statuses of which it keeps no word (0.171.0).
_NAMED = (
    *("model_not_found", "context_length_exceeded", "invalid_prompt", "content_policy_violation", "cyber_policy"),
    "server_is_overloaded",
)
_UNTOLD = (0, 200, 429, 500)
_CUT = 1000  # bytes of a body without a message


def recorded_by_codex(error: UsualError) -> dict[str, Any] | None:
    """Return what Codex records of it; None where that is a name or a sentence of its own."""
    read = _read(error.body)
    of_it = read.get("error")
    code = of_it.get("code") if isinstance(of_it, dict) else None
    blocked = error.status == HTTPStatus.FORBIDDEN and "Cloudflare" in error.body
    if error.status in _UNTOLD or code in _NAMED or blocked:
        return None
    if error.status == HTTPStatus.BAD_REQUEST:
        return {"message": error.body, "codex_error_info": "other"}
    said = of_it.get("message") if isinstance(of_it, dict) else None
    body = error.body.strip().encode()
    cut = body[:_CUT].decode(errors="ignore") + "..." if len(body) > _CUT else body.decode()
    known = error.status in set(HTTPStatus)
    reason = _REASONS.get(error.status, HTTPStatus(error.status).phrase) if known else "<unknown status code>"
    words = said.strip() if isinstance(said, str) and said.strip() else cut or "Unknown error"
    return {
        "message": f"unexpected status {error.status} {reason}: {words}, url: http://127.0.0.1:1/v1/responses",
        "codex_error_info": {"http_connection_failed": {"http_status_code": error.status}},
    }


_REASONS = {413: "Payload Too Large", 422: "Unprocessable Entity"}  # as its own library has them


def _api_error(message: str, error: UsualError) -> dict[str, Any]:
    data = {"message": message, "statusCode": error.status, "isRetryable": False, "responseHeaders": {"server": "x"}}
    if error.body:
        data["responseBody"] = error.body
    return {"name": "APIError", "data": {**data, "metadata": {"url": "http://127.0.0.1:1/v1/chat/completions"}}}


def _is_page(body: str) -> bool:
    return body.lstrip().lower().startswith(("<!doctype", "<html"))


def _of_page(error: UsualError, reason: str) -> str:
    """What 1.18 says of a page in place of an answer."""
    if error.status == HTTPStatus.UNAUTHORIZED and error.body:
        return (
            "Unauthorized: request was blocked by a gateway or proxy. Your authentication token may be missing or "
            "expired — try running `opencode auth login <your provider URL>` to re-authenticate."
        )
    if error.status == HTTPStatus.FORBIDDEN and error.body:
        return (
            "Forbidden: request was blocked by a gateway or proxy. You may not have permission to access this "
            "resource — check your account and provider settings."
        )
    return reason


def _message(body: str) -> str:
    """What an SDK that knows the body takes for the message; "" where there is none."""
    read = _read(body)
    error = read.get("error")
    for said in (error.get("message") if isinstance(error, dict) else error, read.get("message")):
        if isinstance(said, str) and said:
            return said
    return ""


def _shown(body: str) -> str:
    """What 1.18 puts behind the status where it does not know the body."""
    read = _read(body)
    said = read.get("message") or read.get("error")
    return said if isinstance(said, str) else body


def _read(body: str) -> dict[str, Any]:
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
