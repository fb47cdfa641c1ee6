"""Whether a session that was just healed is told to go on by itself, and how. Pure: the clock is an argument.

In doubt it is not: a session that waits for its user is well, one that prompts itself without end is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recoveryd.clients import Prompt
from recoveryd.core import KINDS, Failure, Kind, Outcome, Resumed, Session

FRESH_S = 60.0  # seconds after a failure in which going on is what the user expects
A_DAY = 10  # resumes of a session in 24 hours


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
    prompt: Prompt  # how its user last asked
    stopped: bool = False  # the newest answer was ended by its user
    asked: bool = False  # by a person, just now


@dataclass(frozen=True, slots=True)
class Resume:
    """Prompt the session as its user last did; `thinking_off`: without the variant that they asked with."""

    how: Prompt
    thinking_off: bool = False


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
    variant = case.prompt.variant
    about = KINDS[case.kind]
    tried = any(resumed.thinking_off for resumed in streak)
    thinking_off = about.thinking and bool(streak) and variant is not None and not tried
    done = case.outcome is Outcome.HEALED or (case.outcome is Outcome.REFUSED and about.cleared_by_prompt)
    # Not even understood, after a repair: without thinking there is nothing in it that could be refused so.
    if not case.asked and not done and not (thinking_off and case.outcome is Outcome.NOT_UNDERSTOOD):
        return Leave("it was not repaired")
    return Resume(replace(case.prompt, variant=None) if thinking_off else case.prompt, thinking_off)


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
    return "its user stopped it" if case.stopped else "it was refused again"


def _not_by_itself(case: Situation) -> str:
    if KINDS[case.kind].not_resumed:
        return KINDS[case.kind].not_resumed
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
