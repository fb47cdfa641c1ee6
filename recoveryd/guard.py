"""Whether a failure may be handled automatically: once, ever, and never in a loop. Pure: the clock is an argument.

What a person asks for (`scan --repair`) does not come by here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from recoveryd.model import Failure, Outcome

_HOUR_MS = 3_600_000
# What is not tried again, whatever changes.
_FINAL = {
    Outcome.HEALED: "it was repaired before",
    Outcome.UNDOING: "its repair is being undone",
    Outcome.UNDONE: "its repair was undone by the user",
    Outcome.GAVE_UP: "its session was given up",
    Outcome.PENDING: "it is being repaired",
}


class Seen(Protocol):
    """What the ledger remembers of a failure that was handled before (`ledger.Handled`)."""

    @property
    def outcome(self) -> Outcome: ...
    @property
    def session_state(self) -> str: ...
    @property
    def rules_version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Admit:
    """Handle it."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Leave it alone, and say nothing; `reason` is for the log."""

    reason: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The session is at its cap: one last notice with this `reason`, then quiet."""

    reason: str


def decide(
    failure: Failure,
    handled: Seen | None,
    *,
    attempts: int,
    gave_up: bool,
    max_retries: int,
    session_state: str,
    rules_version: int,
    now: float,
    lookback_hours: float,
    tried: str = "repaired",
) -> Admit | Skip | GiveUp:
    """What to do with a failure that the session is stuck on.

    `attempts` and `gave_up` are the ledger's, since a prompt of the user was last answered, `tried` is what an attempt
    did; `now` is in seconds since the epoch. `session_state` is any fingerprint of what the verdict hangs on. A refusal
    (or a conflict, or a fault of the disk) is tried again when it or the version of the rules changed.
    """
    if handled is not None:
        if handled.outcome in _FINAL:
            return Skip(_FINAL[handled.outcome])
        if (handled.session_state, handled.rules_version) == (session_state, rules_version):
            return Skip(f"it was handled before ({handled.outcome}), and nothing changed since")
    if failure.time < now * 1000 - lookback_hours * _HOUR_MS:
        return Skip(f"it is older than {lookback_hours:g} hours")
    if attempts < max_retries:
        return Admit()
    if gave_up:
        return Skip("its session was given up until a prompt is answered")
    times = "once" if attempts == 1 else f"{attempts} times"
    return GiveUp(f"The session was {tried} {times} and is refused again.")
