"""Decide whether a session that was just healed is prompted to go on by itself, and how. Pure.

In doubt it is not: a session that waits for its user does no harm, one that prompts itself without end does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recoveryd.clients import Prompt
from recoveryd.core import KINDS, Failure, Kind, Outcome, Session
from recoveryd.ledger import Resumed

FRESH_S = 60.0  # seconds after a failure in which going on is what the user expects
A_DAY = 10  # resumes of a session in 24 hours


@dataclass(frozen=True, slots=True)
class Situation:
    """All that is known right before a healed session is prompted. Times are seconds since the epoch.

    `session` is as it is stored now, `resumes` are the earlier ones of it. `started`: when the daemon started.
    `last_answer`: `SessionStatus.last_answer`, by the client's clock: it is only compared with that of the resumes.
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


def decide_resume(situation: Situation) -> Resume | Leave:
    """Decide how to prompt the session, or return the first reason not to."""
    streak = [resumed for resumed in situation.resumes if resumed.answered == situation.last_answer]
    reason = _in_the_way(situation) or (
        "" if situation.asked else _not_by_itself(situation) or _too_often(situation, streak)
    )
    if reason:
        return Leave(reason)
    variant = situation.prompt.variant
    about = KINDS[situation.kind]
    tried = any(resumed.thinking_off for resumed in streak)
    thinking_off = about.thinking and bool(streak) and variant is not None and not tried
    done = situation.outcome is Outcome.HEALED or (situation.outcome is Outcome.REFUSED and about.cleared_by_prompt)
    # Not even understood, after a repair: without thinking there is nothing in it that could be refused so.
    if not situation.asked and not done and not (thinking_off and situation.outcome is Outcome.NOT_UNDERSTOOD):
        return Leave("it was not repaired")
    return Resume(replace(situation.prompt, variant=None) if thinking_off else situation.prompt, thinking_off)


def _in_the_way(situation: Situation) -> str:
    if situation.session.revert:
        return "a prompt would delete what its user has undone"
    newest = situation.session.newest
    if newest is None or situation.session.message(situation.failure.message) is None:
        return "the failed message is gone"
    if newest.id == situation.failure.message:
        answered = newest.role == "assistant" and newest.completed and newest.error is None
        return "its last prompt was answered" if answered else ""
    if newest.role == "user":
        return "there is a newer prompt"
    if situation.stopped:
        return "its user stopped it"
    return "it went on" if newest.error is None else "it was refused again"


def _not_by_itself(situation: Situation) -> str:
    if KINDS[situation.kind].not_resumed:
        return KINDS[situation.kind].not_resumed
    if situation.session.parent is not None:
        return "it is the session of a subagent"
    failed = situation.session.message(situation.failure.message)
    assert failed is not None  # `_in_the_way` asked
    ended = max(failed.created, failed.completed, situation.failure.time) / 1000
    if ended < situation.started:
        return "it was refused before recoveryd was started"
    if not -FRESH_S <= situation.now - ended <= FRESH_S:
        return f"it was refused more than {FRESH_S:g} seconds ago"
    return ""


def _too_often(situation: Situation, streak: Sequence[Resumed]) -> str:
    if any(resumed.recovery == situation.recovery for resumed in situation.resumes):
        return "this recovery has resumed it before"
    if len(streak) >= situation.max_retries:
        times = "once" if len(streak) == 1 else f"{len(streak)} times"
        return f"it was resumed {times} without an answer"
    if sum(abs(situation.now - resumed.time) < 86_400 for resumed in situation.resumes) >= A_DAY:
        return f"it was resumed {A_DAY} times in a day"
    return ""
