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
    """`code` is one of `doctor.CODES`; `next`: what to do, or ""; `about`: the store, `recoveries`: ids."""

    code: str
    level: Level
    says: str
    next: str = ""
    about: str = ""
    recoveries: Sequence[str] = ()


def ok(code: str, says: str, next: str = "", about: str = "") -> Check:
    return Check(code, OK, says, next, about)


def warn(code: str, says: str, next: str, about: str = "") -> Check:
    return Check(code, WARN, says, next, about)


def fail(code: str, says: str, next: str, about: str = "") -> Check:
    return Check(code, FAIL, says, next, about)


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """`key` of the configuration (`hooks.on_abort`), what is wrong with what it names, and what to do."""

    key: str
    says: str
    next: str
