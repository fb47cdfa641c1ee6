"""Say in words why a session is no matter of a kind: the codes of a diagnosis, each with what to do."""

from __future__ import annotations

from dataclasses import dataclass

from recoveryd.core import (
    BEFORE_REPAIR,
    COPIED,
    ELSEWHERE,
    LEFT_OPEN,
    OF_PARENT,
    OF_SUBAGENT,
    REFUSED,
    TAKEN_BACK,
    UNANSWERED,
    UNDONE,
    UNREADABLE,
)


@dataclass(frozen=True, slots=True)
class Reason:
    """What commands say of a session that no kind explains: its cause, what to do, and (for a sum) how it ended."""

    cause: str
    remedy: str = ""
    ended: str = ""


NOT_THE_HISTORY = (
    "if a new session is refused alike, it is not the history: look at the client's settings, the account, the model "
    "or the server"
)
REASONS = {
    UNANSWERED: Reason(
        "a prompt without an answer, or a text that was put there without asking for one",
        "nothing is to be repaired: nothing stored is known to keep a prompt from being answered. If that one was to "
        "be answered, prompt it again",
        "ended with a prompt that has no answer, or was to have none",
    ),
    UNREADABLE: Reason("a session that can't be looked into"),
    REFUSED: Reason("refused for a reason that recoveryd does not know", f"not understood{{then}}; {NOT_THE_HISTORY}"),
    ELSEWHERE: Reason(
        "an error that is not about the history",
        "nothing is to be repaired. {about}",
        "ended in an error that is not about the history",
    ),
    TAKEN_BACK: Reason(
        "refused in a turn that was taken back since",
        "nothing is to be repaired: nothing before that turn is known to be refused. Prompt it again",
        "ended in a refusal, in a turn that was taken back since",
    ),
    COPIED: Reason(
        "refused before the session was copied (a fork, an import, an upgrade of its client)",
        "left alone until it is refused here: it may have been repaired before it was copied. Prompt it",
        "ended in a refusal before the session was copied (a fork, an import, an upgrade of its client), left alone "
        "until it is refused here",
    ),
    BEFORE_REPAIR: Reason(
        "refused before something else of the session was repaired",
        "left alone until it is refused again: what that refusal names may stand elsewhere since. Prompt it",
        "ended in a refusal before something else of it was repaired, left alone until it is refused again",
    ),
    OF_SUBAGENT: Reason(
        "a subagent was refused, for a reason that recoveryd does not know; the session that asked it went on",
        "nothing is to be repaired: go on in the session that asked the subagent",
        "ended in a refusal of a subagent, and the session that asked it went on since",
    ),
    OF_PARENT: Reason(
        "a subagent was refused that goes on from the conversation of the session that asked it",
        "left alone: what is to blame in that conversation is repaired there. Go on in the session that asked it",
        "ended in a refusal of a subagent that goes on from its parent's conversation, which is seen to by itself",
    ),
    LEFT_OPEN: Reason(
        "a turn that was cut off when the client went away",
        "left alone until a prompt is refused, if one is: its client goes on from there. Prompt it",
        "ended in a turn that was cut off when its client went away; what a next prompt is refused for is healed",
    ),
    UNDONE: Reason(
        "answered, and the repair that it was answered on was undone",
        ended="went on, until a repair was undone: the next prompt may be refused again",
    ),
}


def ended_words(reason: str) -> str:
    """Tell how sessions ended that are not stuck, by a finding's reason: its code, or a kind that a prompt clears."""
    known = REASONS.get(reason)
    return known.ended if known is not None else "ended in a refusal that its next prompt clears"
