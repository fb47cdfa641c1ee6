"""Looks at everything and tells: `doctor`, `status` and the bug report. Writes nothing.

Imports all rooms but `daemon`.
"""

from __future__ import annotations

from recoveryd.doctor.bug_report import Sources, bundle
from recoveryd.doctor.checks import CODES, examine, none_failed
from recoveryd.doctor.config_references import reference_problems
from recoveryd.doctor.examined import Patient
from recoveryd.doctor.status import (
    HOW,
    NOT_READABLE,
    LedgerSummary,
    Status,
    StoreStatus,
    collect_status,
    daemons,
    quick_status,
)

__all__ = [
    "CODES",
    "HOW",
    "NOT_READABLE",
    "LedgerSummary",
    "Patient",
    "Sources",
    "Status",
    "StoreStatus",
    "bundle",
    "collect_status",
    "daemons",
    "examine",
    "none_failed",
    "quick_status",
    "reference_problems",
]
