"""Compactions that failed in a stored session, and what they keep from being sent.

Held to 1.1.53, 1.2.1 and 1.18.33. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.clients.javascript import truthy
from recoveryd.core import Message, Part, RecordedError, Session

_OWN = "too large to compact"


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
    """Return what a failed compaction hides: the newest answer to it, and the messages that are not sent since, all
    before what it named as the tail. "" where it has no answer, and no messages where all are sent.
    """
    ids = [message.id for message in session.messages]
    for part in failed_compactions(session):
        tail = (part.data or {}).get("tail_start_id")
        if tail in ids and ids.index(tail) < ids.index(part.message_id):
            answers = (m.id for m in reversed(session.messages) if m.data.get("parentID") == part.message_id)
            return next(answers, ""), ids[: ids.index(tail)]
    return "", []


def is_summary(session: Session, message_id: str) -> bool:
    """Whether what failed was the summary of a compaction: it is asked for without system and tools."""
    message = session.message(message_id)
    return message is not None and truthy(message.data.get("summary"))


def says_client(error: RecordedError) -> bool:
    """Whether an error is what 1.18 stores of any refused summary that it takes for an overflow, a rate limit too: its
    own words, and none of the provider's.
    """
    return any(_OWN in text for text in error.texts)
