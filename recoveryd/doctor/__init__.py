"""Looks at everything and tells: `doctor`, `status` and the bug report. Writes nothing.

Imports all rooms but `daemon`.
"""

from __future__ import annotations

from recoveryd.doctor.bug_report import Sources, bundle
from recoveryd.doctor.checks import CODES, examine, none_failed
from recoveryd.doctor.config_references import reference_problems
from recoveryd.doctor.examined import Patient
from recoveryd.doctor.status import HOW, NOT_READABLE, Books, Status, StoreStatus, repairing, status

__all__ = [
    "CODES",
    "HOW",
    "NOT_READABLE",
    "Books",
    "Patient",
    "Sources",
    "Status",
    "StoreStatus",
    "bundle",
    "examine",
    "none_failed",
    "reference_problems",
    "repairing",
    "status",
]
