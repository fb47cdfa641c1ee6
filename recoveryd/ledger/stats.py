"""Count what came of all recoveries, by kind. Pure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recoveryd.core import Kind, Outcome

# Tried to repair, whatever came of it; a refusal is none, and what was undone or wrote over was repaired first.
_TRIED = (Outcome.HEALED, Outcome.UNDONE, Outcome.CONFLICT, Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class EndedRecovery:
    """The figures of one recovery that ended, as the ledger has them. `time`: seconds since the epoch; `seconds`: None
    where it was not recorded; `store`: its id; `session`: of which session of that.
    """

    kind: Kind | None
    outcome: Outcome
    time: float
    seconds: float | None
    store: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class KindStats:
    """The figures of the recoveries of one kind of failure (None: not known).

    `success`: healed of those tried, 0 to 1; None when nothing was tried. `median_seconds`: from the start of a repair
    to the disk, of those where it was recorded.
    """

    kind: Kind | None
    outcomes: Mapping[Outcome, int]
    success: float | None
    median_seconds: float | None

    @property
    def total(self) -> int:
        """How many recoveries there were."""
        return sum(self.outcomes.values())


def stats_by_kind(ended: Iterable[EndedRecovery]) -> list[KindStats]:
    """Count the recoveries of each kind, the most frequent first."""
    groups: dict[Kind | None, list[EndedRecovery]] = {}
    for one in ended:
        groups.setdefault(one.kind, []).append(one)
    lines = [_line(kind, group) for kind, group in groups.items()]
    return sorted(lines, key=lambda line: (-line.total, line.kind or ""))


def _line(kind: Kind | None, group: list[EndedRecovery]) -> KindStats:
    outcomes = count_outcomes(group)
    tried = sum(outcomes[outcome] for outcome in _TRIED)
    seconds = [one.seconds for one in group if one.seconds is not None and one.outcome is not Outcome.FAILED]
    success = outcomes[Outcome.HEALED] / tried if tried else None
    from statistics import median  # late: no other way of the daemon needs it

    return KindStats(kind, outcomes, success, median(seconds) if seconds else None)


def count_outcomes(ended: Iterable[EndedRecovery], since: float = 0.0) -> Counter[Outcome]:
    """Count recoveries (`Upkeep.ended`) by what became of them; `since`: those begun then or later, in seconds since
    the epoch.
    """
    return Counter(one.outcome for one in ended if one.time >= since)


def midnight(seconds: float) -> float:
    """Return when the day that statistics call today began, in the user's time; seconds since the epoch."""
    day = time.localtime(seconds)
    return time.mktime((*day[:3], 0, 0, 0, *day[6:8], -1))
