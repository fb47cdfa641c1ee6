"""Whether a session is stuck, on what, and whether it may be handled now.

Imports `core`, `clients`, `providers`, `settings` and `ledger`; writes nothing.
"""

from __future__ import annotations

from recoveryd.diagnose.diagnosis import Diagnosis, standing, tries, undone, unread
from recoveryd.diagnose.guard import state_of
from recoveryd.diagnose.left_alone import left_alone
from recoveryd.diagnose.needs_user import needs_user
from recoveryd.diagnose.silent import unsendable
from recoveryd.diagnose.triage import Next, Triage

__all__ = [
    "Diagnosis",
    "Next",
    "Triage",
    "left_alone",
    "needs_user",
    "standing",
    "state_of",
    "tries",
    "undone",
    "unread",
    "unsendable",
]
