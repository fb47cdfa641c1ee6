"""Compactions that failed in a stored session, and outputs that the client clears by itself.

Held to 1.1.53, 1.2.1 and 1.18.33. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recoveryd.clients.javascript import truthy
from recoveryd.core import Edit, Edits, Json, Message, Part, Session

# Of the client's own prune: the newest outputs stay, and it does nothing for less than the second.
_PROTECTED, _FEWEST = 40_000, 20_000  # tokens, of four characters
_PER_TOKEN = 4


def failed_compactions(session: Session) -> Sequence[Part]:
    """List the parts of OpenCode's compactions that never got a summary, or got one of what the failure before it had
    left over. Not those before one that succeeded: that one alone says by then what is sent.

    What 1.18 names as the tail hides all before it, also where the summary failed; what 1.1 and 1.2 never got a
    summary for they try again with each prompt.
    """
    summaries: dict[str, list[Message]] = {}
    for message in session.messages:
        if message.role == "assistant" and truthy(message.data.get("summary")):
            summaries.setdefault(str(message.data.get("parentID")), []).append(message)
    newest = session.messages[-1].id if session.messages else ""
    found: list[Part] = []
    for message in session.messages:
        part = next((part for part in message.parts if part.type == "compaction"), None)
        if message.role != "user" or part is None:
            continue
        made = summaries.get(message.id, [])
        under_way = any(not one.completed and one.error is None for one in made) or (not made and message.id == newest)
        if _good(part, made):
            found.clear()
        elif not under_way:
            found.append(part)
    return found


def _good(part: Part, made: list[Message]) -> bool:
    sound = [one for one in made if one.error is None and truthy(one.data.get("finish"))]
    first_failed = bool(made) and made[0].error is not None
    return bool(sound) and not (first_failed and (part.data or {}).get("tail_start_id"))


def hidden_messages(session: Session) -> tuple[str, list[str]]:
    """Return the newest answer to a compaction that failed, and the messages that are not sent since: those before what
    it named as the tail. "" where it has no answer, and no messages where all are sent.
    """
    ids = [message.id for message in session.messages]
    for part in failed_compactions(session):
        tail = (part.data or {}).get("tail_start_id")
        if tail in ids and ids.index(tail) < ids.index(part.message_id):
            answers = (m.id for m in reversed(session.messages) if m.data.get("parentID") == part.message_id)
            return next(answers, ""), ids[: ids.index(tail)]
    return "", []


def is_summary(session: Session, message_id: str) -> bool:
    """Whether what failed was to be a summary: it is asked for without system and tools."""
    return any(m.id == message_id and truthy(m.data.get("summary")) for m in session.messages)


def cleared_since(session: Session, ms: int, recovery: str) -> bool:
    """Whether less is sent since a moment, in ms since the epoch: a length that was told then is too long.

    By the client, which clears outputs, or by what this recovery wrote already.
    """
    parts = [part for message in session.messages for part in message.parts]
    return any(_cleared(part) >= ms or marked_by(part) == recovery for part in parts)


def marked_by(part: Part) -> object:
    """Return the recovery that a part is marked with."""
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
    """Return a tool part with the mark of OpenCode's prune on its output."""
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
