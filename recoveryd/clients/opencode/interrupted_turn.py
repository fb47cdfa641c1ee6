"""Turns whose client went away: ended the way in which the client ends one that the user stops.

Its form, by its source (1.1.53, 1.2.1, 1.18.33): open tools become errors, "Tool execution aborted", since 1.18 with
`metadata.interrupted`; the message gets the time and the error of an abort. So what was said before is sent on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recoveryd.core import Edit, Json, Message, Part, Session, moment

_ERROR = {"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}}
_OPEN = ("pending", "running")


def open_turn(session: Session) -> Message | None:
    """Return the interrupted turn of a session: the newest message, when it is an answer with content that was neither
    finished nor refused; else None.
    """
    newest = session.newest
    if newest is None or newest.role != "assistant" or newest.completed or newest.error is not None or not newest.parts:
        return None  # without any part it is a crash of the client, before it sent anything
    return newest


def open_parts(message: Message) -> Json:
    """Tell which message and which tools of an interrupted turn are open."""
    return {
        "message": message.id,
        "created": moment(message.created),
        "open_tools": [part.id for part in _open_tools(message)],
    }


def end_open_turn(session: Session, recovery: str, now: int) -> tuple[Edit, ...]:
    """Make the edits that end an interrupted turn; none when no turn is open. `now` in milliseconds since the epoch."""
    message = open_turn(session)
    if message is None:
        return ()
    tools = tuple(Edit(message.id, part.id, _aborted(part, recovery, now), "end_tool") for part in _open_tools(message))
    time = message.data.get("time")
    times = {**(time if isinstance(time, Mapping) else {}), "completed": now}
    return (*tools, Edit(message.id, None, {**message.data, "time": times, "error": _ERROR}, "end_turn"))


def _open_tools(message: Message) -> list[Part]:
    return [part for part in message.parts if part.type == "tool" and _state(part).get("status") in _OPEN]


def _aborted(part: Part, recovery: str, now: int) -> Json:
    state = _state(part)
    time = state.get("time")
    start = time.get("start") if isinstance(time, Mapping) else None
    given, said = state.get("input"), state.get("metadata")
    kept = {key: value for key, value in state.items() if key != "raw"}
    ended = {
        **kept,
        "status": "error",
        "input": given if isinstance(given, Mapping) else {},
        "error": "Tool execution aborted",
        "metadata": {**(said if isinstance(said, Mapping) else {}), "interrupted": True},
        "time": {"start": start if isinstance(start, (int, float)) else now, "end": now},
    }
    data = part.data or {}
    marks = data.get("metadata")
    metadata = {**(marks if isinstance(marks, Mapping) else {}), "recoveryd": {"recovery": recovery}}
    return {**data, "state": ended, "metadata": metadata}


def _state(part: Part) -> Mapping[str, Any]:
    state = (part.data or {}).get("state")
    return state if isinstance(state, Mapping) else {}
