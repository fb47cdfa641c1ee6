"""Find out whether the client compacts a session again and again: what is left is too long each time.

The system prompt and the tools alone are then more than the model takes, or more than its `limit` in the settings.
Seen on 1.1.53 and 1.18.33: nothing but an abort ends it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from recoveryd.clients.javascript import truthy
from recoveryd.clients.opencode.prompting import stopped
from recoveryd.core import Json, Message

Parts = Callable[[str], Iterable[Json | None]]

_ENOUGH = 3  # compactions, each but the newest followed by the next at once
_MOST = 4_000  # messages that are looked at: it may have gone on for hours


@dataclass(frozen=True, slots=True)
class Rounds:
    """An endless compaction: the prompt since which the client goes round, and how many compactions it made since
    then.
    """

    prompt: Message
    compactions: int


def may_go_round(message: Message) -> bool:
    """Whether one of the newest messages is of a kind that each round of an endless compaction has: a summary, or an
    answer with nothing.
    """
    if message.role != "assistant":
        return False
    nothing = message.error is None and message.completed and not message.data.get("finish")
    return truthy(message.data.get("summary")) or bool(nothing)


def rounds(newest: Iterable[Message], parts: Parts) -> Rounds | None:
    """Find the rounds of an endless compaction: go through messages, the newest first, back to the prompt of the user;
    None where the client gets on.

    It does where an answer ended behind the newest compaction, or where more than an answer without a tool call stands
    between two of them.
    """
    compactions = answers = 0
    counting = True
    for message, _ in zip(newest, range(_MOST), strict=False):
        said = [part or {} for part in parts(message.id)]
        kinds = {part.get("type") for part in said}
        again = True
        if message.role == "assistant" and truthy(message.data.get("summary")):
            again = _sound(message) or (not compactions and _unfinished(message))
        elif message.role == "assistant":
            answers += 1
            again = "tool" not in kinds and (compactions > 0 or not _sound(message))
        elif "compaction" in kinds:
            again = any(part.get("auto") for part in said) and (not compactions or answers == 1)
            compactions += counting and again
            answers = 0
        elif not all(part.get("synthetic") for part in said):
            return Rounds(message, compactions) if compactions >= _ENOUGH else None
        counting = counting and again
        if not counting and compactions < _ENOUGH:
            return None
    return None


def _sound(message: Message) -> bool:
    """Whether it ended as an answer does; what was refused for its length ends without a word of why."""
    return message.error is None and truthy(message.data.get("finish"))


def _unfinished(message: Message) -> bool:
    return stopped(message) or (message.error is None and not message.completed)
