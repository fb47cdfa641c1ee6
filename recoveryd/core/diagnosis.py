"""What a session is stuck on, with the evidence: a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from recoveryd.core.failure_kinds import kind_info
from recoveryd.core.model import Failure, Json, Kind, Message, Refused

# Reason codes of what has no kind: a prompt that nothing stored explains, an error in the newest answer, neither.
UNANSWERED = "unanswered_prompt"
REFUSED = "refused_unknown"  # whose words are not known
UNREADABLE = "unreadable"  # nothing at all is known of the session
ELSEWHERE = "refused_elsewhere"  # that is about something else than the history: an account, the network
TAKEN_BACK = "taken_back"  # by its user, who took the refused turn back: what was refused may have gone with it
COPIED = "refused_before_copy"  # in the session that this one is a copy of: it may have been repaired there
BEFORE_REPAIR = "refused_before_repair"  # something else of the session was repaired since: what it names moved
OF_SUBAGENT = "refused_subagent"  # for an unknown reason; the session that asked it went on since
OF_PARENT = "refused_with_parent"  # a subagent that is sent its parent's conversation, which is seen to by itself
LEFT_OPEN = "turn_left_open"  # its client went away in it, and goes on from there with the next prompt
UNDONE = "repair_undone"  # by its user, behind an answer: what was refused before is stored again
_NOT_STUCK = frozenset(
    {UNANSWERED, ELSEWHERE, TAKEN_BACK, COPIED, BEFORE_REPAIR, OF_SUBAGENT, OF_PARENT, LEFT_OPEN, UNDONE}
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What keeps a session from going on, and what says so.

    `failure` is the turn that failed, or the prompt that nothing came of. `refused` is the cause, classified once and
    used for the repair too; None where nothing explains the failure: then there is a `code`. `ignored`: the client
    can't have asked a model for the newest prompt.
    """

    failure: Failure
    refused: Refused | None
    evidence: Json = field(default_factory=dict)
    ignored: bool = False
    code: str = UNANSWERED

    @property
    def kind(self) -> Kind | None:
        """The kind of the cause; None where nothing explains the failure."""
        return self.refused.kind if self.refused is not None else None

    @property
    def reason(self) -> str:
        """The stable code of the reason: the kind's name, or `code`."""
        return str(self.kind or self.code)

    @property
    def stuck(self) -> bool:
        """Whether, as far as is known, the next prompt would fail for what is stored."""
        return self.reason not in _NOT_STUCK and not kind_info(self.kind).cleared_by_prompt


def waiting_prompts(order: Sequence[Message]) -> list[Message]:
    """List the prompts that a session waits with: those at the end of its messages (in the order of time) that no
    answer with content follows.
    """
    waiting: list[Message] = []
    for message in reversed(order):
        if message.role == "user":
            waiting.insert(0, message)
        elif message.parts or message.completed or message.error is not None:
            break
    return waiting


def error_evidence(failure: Failure) -> Json:
    """Make a diagnosis's evidence of a recorded error: its name and status, without its words."""
    return {"message": failure.message, "error": failure.error.name or None, "status": failure.error.status}
