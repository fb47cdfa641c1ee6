"""What `doctor` and `config check` found, as values: what was looked at, what is wrong with it, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]
OK: Level = "ok"
WARN: Level = "warn"
FAIL: Level = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of `doctor`.

    `code` is one of `doctor.CODES`, `next` what to do ("" for nothing), `about` the id of the store, `recoveries` ids
    of recoveries.
    """

    code: str
    level: Level
    says: str
    next: str = ""
    about: str = ""
    recoveries: Sequence[str] = ()


def ok(code: str, says: str, next: str = "", about: str = "") -> Check:
    """Make a finding of `doctor` that nothing is wrong."""
    return Check(code, OK, says, next, about)


def warn(code: str, says: str, next: str, about: str = "") -> Check:
    """Make a finding of `doctor` that there is something to look at; it still exits with 0."""
    return Check(code, WARN, says, next, about)


def fail(code: str, says: str, next: str, about: str = "") -> Check:
    """Make a finding of `doctor` that something is broken; it exits with 1."""
    return Check(code, FAIL, says, next, about)


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A finding about the configuration: something that it names and that can't be used."""

    key: str
    says: str
    next: str
