"""Whether a session that was just healed is told to go on by itself, and how. Pure: the clock is an argument.

In doubt it is not: a session that waits for its user is well, one that prompts itself without end is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recoveryd.core.kinds import CLEARED_BY_PROMPT
from recoveryd.core.model import Failure, Kind, Message, Outcome, Resumed, Session

FRESH_S = 60.0  # seconds after a failure in which going on is what the user expects
A_DAY = 10  # resumes of a session in 24 hours
THINKING = frozenset(
    {
        Kind.THINKING_BLOCK_ORDER,
        Kind.THINKING_DISABLED_VIOLATION,
        Kind.THINKING_SIGNATURE_INVALID,
        Kind.THINKING_BLOCK_MODIFIED,
        Kind.THINKING_FINAL_BLOCK,
    }
)
MARK = {"resume": True}


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known right before the prompt. All times are seconds since the epoch.

    `session` is as it is stored now. `resumes` are those of it; `started` is when the daemon did. `last_answer` is
    `Look.last_answer`: only compared with that of the resumes, for it is of the client's clock.
    """

    recovery: str
    outcome: Outcome
    kind: Kind
    failure: Failure
    session: Session
    resumes: Sequence[Resumed]
    last_answer: int
    now: float
    started: float
    max_retries: int
    asked: bool = False  # by a person, just now


@dataclass(frozen=True, slots=True)
class Resume:
    """Prompt the session as its user last did; what is None is left to the client. `thinking_off`: no variant now."""

    agent: str | None
    model: Mapping[str, str] | None
    variant: str | None
    thinking_off: bool = False

    def body(self, text: str, recovery: str) -> dict[str, Any]:
        """What `prompt_async` takes (both clients: the variant stands beside the model, wherever it is stored)."""
        part = {"type": "text", "text": text, "metadata": {"recoveryd": {"recovery": recovery, **MARK}}}
        fields = {"agent": self.agent, "model": self.model, "variant": self.variant}
        return {"parts": [part], **{name: value for name, value in fields.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the session to its user; `reason` completes "not resumed: "."""

    reason: str


def decide(case: Situation) -> Resume | Leave:
    """Go on by itself, or the first reason not to."""
    streak = [resumed for resumed in case.resumes if resumed.answered == case.last_answer]
    reason = _in_the_way(case) or ("" if case.asked else _not_by_itself(case) or _too_often(case, streak))
    if reason:
        return Leave(reason)
    asked = _asked(case.session)
    variant = _variant(asked)
    tried = any(resumed.thinking_off for resumed in streak)
    thinking_off = case.kind in THINKING and bool(streak) and variant is not None and not tried
    done = case.outcome is Outcome.HEALED or (case.outcome is Outcome.REFUSED and case.kind in CLEARED_BY_PROMPT)
    # Not even understood, after a repair: without thinking there is nothing in it that could be refused so.
    if not case.asked and not done and not (thinking_off and case.outcome is Outcome.NOT_UNDERSTOOD):
        return Leave("it was not repaired")
    return Resume(_text(asked, "agent"), _model(asked), None if thinking_off else variant, thinking_off)


def resumed_by(message: Message) -> str | None:
    """The recovery that sent this prompt; None for the user's own."""
    for part in message.parts if message.role == "user" else ():
        metadata = (part.data or {}).get("metadata")
        mark = metadata.get("recoveryd") if isinstance(metadata, Mapping) else None
        if isinstance(mark, Mapping) and mark.get("resume") is True:
            return str(mark.get("recovery"))
    return None


def _in_the_way(case: Situation) -> str:
    if case.session.revert:
        return "a prompt would delete what its user has undone"
    newest = case.session.newest
    if newest is None or all(message.id != case.failure.message for message in case.session.messages):
        return "the failed message is gone"
    if newest.id == case.failure.message:
        answered = newest.role == "assistant" and newest.completed and newest.error is None
        return "its last prompt was answered" if answered else ""
    if newest.role == "user":
        return "there is a newer prompt"
    if newest.error is None:
        return "it went on"
    return "its user stopped it" if newest.error.get("name") == "MessageAbortedError" else "it was refused again"


def _not_by_itself(case: Situation) -> str:
    if case.kind is Kind.INTERRUPTED_TURN:
        return "it was cut off, not refused"
    if case.session.parent is not None:
        return "it is the session of a subagent"
    failed = next(message for message in case.session.messages if message.id == case.failure.message)
    ended = max(failed.created, failed.completed, case.failure.time) / 1000
    if ended < case.started:
        return "it was refused before recoveryd was started"
    if not -FRESH_S <= case.now - ended <= FRESH_S:
        return f"it was refused more than {FRESH_S:g} seconds ago"
    return ""


def _too_often(case: Situation, streak: Sequence[Resumed]) -> str:
    if any(resumed.recovery == case.recovery for resumed in case.resumes):
        return "this recovery has resumed it before"
    if len(streak) >= case.max_retries:
        times = "once" if len(streak) == 1 else f"{len(streak)} times"
        return f"it was resumed {times} without an answer"
    if sum(abs(case.now - resumed.time) < 86_400 for resumed in case.resumes) >= A_DAY:
        return f"it was resumed {A_DAY} times in a day"
    return ""


def _asked(session: Session) -> Mapping[str, Any]:
    """The newest prompt that was not ours."""
    own = [m for m in session.messages if m.role == "user" and resumed_by(m) is None]
    return max(own, key=lambda message: message.by_time).data if own else {}


def _model(asked: Mapping[str, Any]) -> dict[str, str] | None:
    model = asked.get("model")
    if not isinstance(model, Mapping):
        return None
    provider, name = _text(model, "providerID"), _text(model, "modelID")
    return {"providerID": provider, "modelID": name} if provider and name else None


def _variant(asked: Mapping[str, Any]) -> str | None:
    """1.1 stores it beside the model, 1.18 in it."""
    model = asked.get("model")
    return _text(asked, "variant") or (_text(model, "variant") if isinstance(model, Mapping) else None)


def _text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None
