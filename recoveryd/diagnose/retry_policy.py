"""Decide whether a failure may be handled automatically: once, ever, and never in a loop. Pure.

What a person asks for (`scan --repair`) does not come by here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recoveryd.clients import Config, Stamp
from recoveryd.core import KINDS, Kind, Message, Outcome, PastRecovery, Session, kind_info
from recoveryd.ledger import Handled

# What is not tried again, whatever changes.
_FINAL = {
    Outcome.HEALED: "it was repaired before",
    Outcome.UNDOING: "its repair is being undone",
    Outcome.UNDONE: "its repair was undone by the user",
    Outcome.GAVE_UP: "its session was given up",
    Outcome.PENDING: "it is being repaired",
}


class Turns(Protocol):
    """What the retry policy asks a client of its messages (a part of `clients.client.Client`)."""

    def resumed_by(self, message: Message) -> str | None: ...
    def by_shell(self, message: Message) -> bool: ...


# What may be repaired where nothing had failed: by hand, or ahead.
_UNFAILED = frozenset(kind.value for kind, about in KINDS.items() if about.shortened or about.foreseen)


@dataclass(frozen=True, slots=True)
class Admit:
    """The answer of the retry policy: the failure is handled."""


@dataclass(frozen=True, slots=True)
class Skip:
    """The answer of the retry policy: the failure is left alone, and nothing is said; `reason` is for the log."""

    reason: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The answer of the retry policy: the session is at its cap of repairs, one last notice with this `reason`, then
    quiet.
    """

    reason: str


def decide_retry(
    handled: Handled | None,
    *,
    tries: Sequence[PastRecovery],
    undone: PastRecovery | None = None,
    max_retries: int,
    session_state: str,
    rules_version: int,
    kind: Kind | None = None,
) -> Admit | Skip | GiveUp:
    """Decide whether to handle a failure that the session is stuck on, after what was tried before.

    `handled`: what had become of this failure. `tries` are those since a prompt of the user had success
    (`vain_since_success`), the oldest first; `kind`: of the failure. `undone`: the newest repair, if the user took it
    back (`Ledger.taken_back`). `session_state` is any fingerprint of what the verdict hangs on. A refusal (or a
    conflict, or a fault of the disk) is tried again when it or the version of the rules changed.
    """
    if handled is not None:
        if handled.outcome in _FINAL:
            return Skip(_FINAL[handled.outcome])
        if (handled.session_state, handled.rules_version) == (session_state, rules_version):
            return Skip(f"it was handled before ({handled.outcome}), and nothing changed since")
    if undone is not None:
        return Skip("the last repair of its session was undone by the user, and no prompt was answered since")
    if not at_cap(tries, max_retries):
        return Admit()
    if any(one.outcome is Outcome.GAVE_UP for one in tries):
        return Skip("its session was given up until a prompt is answered")
    return GiveUp(f"{in_vain(tries, kind)}.")


def in_vain(tries: Sequence[PastRecovery], kind: Kind | None) -> str:
    """Tell in words how often a session was repaired in vain."""
    tried = "told to go on" if kind_info(kind).cleared_by_prompt else "repaired"
    made = sum(one.outcome is not Outcome.GAVE_UP for one in tries)
    return f"The session was {tried} {'once' if made == 1 else f'{made} times'} and is refused again"


def at_cap(tries: Sequence[PastRecovery], max_retries: int) -> bool:
    """Whether a session had all its recoveries, by the `tries` since a prompt of its user had success. That it was
    given up is none.
    """
    return sum(one.outcome is not Outcome.GAVE_UP for one in tries) >= max_retries


def judged_state(stamp: Stamp, config: Config) -> str:
    """Return what the retry policy's answer depends on, besides the rules: what is stored, and what the user wants."""
    return f"{stamp.digest}/{config.digest}"


def vain_since_success(session: Session, tries: Sequence[PastRecovery], client: Turns) -> list[PastRecovery]:
    """Leave of the `tries` to repair a session those that count for the retry policy: behind which no prompt got the
    model to take a step; the others worked.

    A prompt of our own proves nothing, so nothing goes round without a person. What is not found counts. A session that
    was repaired where nothing had failed (`recoveryd compact`, `heal_ahead`) was no try. Reasoning that is refused may
    be refused anew with each step that brings some: there a prompt must not have been refused in the end.
    """
    order = {m.id: n for n, m in enumerate(sorted(session.messages, key=lambda message: message.by_time))}
    asked = {m.id for m in session.messages if m.role == "user" and client.resumed_by(m) is None}
    steps = [m for m in session.messages if m.role == "assistant" and m.completed and m.error is None]
    prompts = {str(message.data.get("parentID")) for message in steps if not client.by_shell(message)}
    ended = prompts - {str(m.data.get("parentID")) for m in session.messages if m.error is not None}
    last, whole = (max((order[prompt] for prompt in some & asked), default=0) for some in (prompts, ended))
    good = {m.id for m in steps}
    in_vain = [one for one in tries if one.kind not in _UNFAILED or one.message not in good]
    since = [(one, whole if one.kind == Kind.REASONING_ITEM else last) for one in in_vain]
    return [one for one, success in since if order.get(one.message, success) >= success]
