"""Looks at everything and tells: `doctor`, `status` and the bug report. Writes nothing.

Imports all rooms but `daemon`.
"""

from __future__ import annotations

from recoveryd.doctor.bug_report import Sources, bundle
from recoveryd.doctor.check import Patient
from recoveryd.doctor.checks import CODES, examine, sound
from recoveryd.doctor.named import Problem, problems
from recoveryd.doctor.status import GENERATIONS, HOW, Status, StoreStatus, status

__all__ = [
    "CODES",
    "GENERATIONS",
    "HOW",
    "Patient",
    "Problem",
    "Sources",
    "Status",
    "StoreStatus",
    "bundle",
    "examine",
    "problems",
    "sound",
    "status",
]
