"""Whether a session is stuck, on what, and whether it may be handled now.

Imports `core`, `clients`, `providers`, `settings` and `ledger`; writes nothing.
"""

from __future__ import annotations

from recoveryd.diagnose.assessment import Assessment, assess
from recoveryd.diagnose.case import Case, case_from_ledger
from recoveryd.diagnose.context import Context
from recoveryd.diagnose.decision_tree import of_length
from recoveryd.diagnose.diagnosis import diagnose, hangs_on_asker
from recoveryd.diagnose.earlier_repairs import (
    holding_repair,
    is_put_back,
    maybe_unread,
    mended_before,
    standing_repair,
    undone_repair,
    vain_repairs,
)
from recoveryd.diagnose.left_alone import ignored_by, is_in, left_alone
from recoveryd.diagnose.named_places import as_meant
from recoveryd.diagnose.needs_user import Needing, NeedsUser
from recoveryd.diagnose.retry_policy import at_cap, in_vain, judged_state
from recoveryd.diagnose.triage import Next, Triage, Verdict
from recoveryd.diagnose.without_error import diagnose_unsendable, surely_refused

__all__ = [
    "Assessment",
    "Case",
    "Context",
    "Needing",
    "NeedsUser",
    "Next",
    "Triage",
    "Verdict",
    "as_meant",
    "assess",
    "at_cap",
    "case_from_ledger",
    "diagnose",
    "diagnose_unsendable",
    "hangs_on_asker",
    "holding_repair",
    "ignored_by",
    "in_vain",
    "is_in",
    "is_put_back",
    "judged_state",
    "left_alone",
    "maybe_unread",
    "mended_before",
    "of_length",
    "standing_repair",
    "surely_refused",
    "undone_repair",
    "vain_repairs",
]
