"""Outputs of tools that OpenCode clears by itself once they are old: its prune.

Held to 1.1.53, 1.2.1 and 1.18.33. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recoveryd.clients.javascript import truthy
from recoveryd.core import Edit, Edits, Json, Message, Part, Session

# Of the client's own prune: the newest outputs stay, and it does nothing for less than the second.
_PROTECTED, _FEWEST = 40_000, 20_000  # tokens, of four characters
_PER_TOKEN = 4


def cleared_since(session: Session, ms: int, recovery: str) -> bool:
    """Whether less is sent since a moment, in ms since the epoch, so that a length that was told then is too long:
    outputs were cleared by OpenCode's prune, or by what this recovery wrote already.
    """
    parts = [part for message in session.messages for part in message.parts]
    return any(_cleared(part) >= ms or marked_by(part) == recovery for part in parts)


def as_last_sent(session: Session) -> Session:
    """Return a session with the outputs that were cleared since its newest message: those that the client clears at the
    end of a turn were sent in it, with what images they have.
    """
    newest = max((message.created for message in session.messages), default=0)
    messages = (_uncleared(message, newest) for message in session.messages)
    return replace(session, messages=tuple(messages))


def _uncleared(message: Message, since: int) -> Message:
    if not any(_cleared(part) > since for part in message.parts):
        return message
    parts = (replace(part, data=cleared(part, 0)) if _cleared(part) > since else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def is_cleared(part: Part) -> bool:
    """Whether a part is a tool's whose output is not sent any more."""
    return _cleared(part) > 0


def marked_by(part: Part) -> object:
    """Return the recovery that an output was cleared by, if it is marked so."""
    metadata = (part.data or {}).get("metadata")
    mark = metadata.get("recoveryd") if isinstance(metadata, Mapping) else None
    return mark.get("recovery") if isinstance(mark, Mapping) else None


def pruned(session: Session, prompts: int) -> Edits:
    """Make the edits by which OpenCode's own prune clears outputs at the end of a turn, after so many more prompts of
    the user.
    """
    total = saved = 0
    turns = prompts
    found: list[Edit] = []
    for message in reversed(session.messages):
        turns += message.role == "user"
        if turns < 2:
            continue
        if message.role == "assistant" and truthy(message.data.get("summary")):
            break
        for part in reversed(message.parts):
            output = _output(part)
            if output is None:
                continue
            if _cleared(part):
                return tuple(found) if saved > _FEWEST else ()
            estimate = round(len(output) / _PER_TOKEN)
            total += estimate
            if total > _PROTECTED:
                saved += estimate
                found.append(Edit(message.id, part.id, cleared(part, 1), "clear_output"))
    return tuple(found) if saved > _FEWEST else ()


def cleared(part: Part, now: int) -> Json:
    """Return a tool part with its output marked as cleared, as OpenCode's prune does; with 0 as not cleared."""
    data = part.data or {}
    state = data["state"]
    time = state.get("time")
    return {**data, "state": {**state, "time": {**(time if isinstance(time, Mapping) else {}), "compacted": now}}}


def _output(part: Part) -> str | None:
    """Return the output that a prune looks at."""
    state = (part.data or {}).get("state") if part.type == "tool" else None
    if not isinstance(state, Mapping) or state.get("status") != "completed" or (part.data or {}).get("tool") == "skill":
        return None
    output = state.get("output")
    return output if isinstance(output, str) else None


def _cleared(part: Part) -> float:
    state = (part.data or {}).get("state")
    time = state.get("time") if isinstance(state, Mapping) else None
    value = time.get("compacted") if isinstance(time, Mapping) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
