"""From what a provider refuses to the cheapest edits that its rules accept. Pure.

Imports `core` and the port of the providers; clients' wires and editors are handed in.
"""

from __future__ import annotations

from recoveryd.repair.fixes import Settings
from recoveryd.repair.inputs import PlanInput, ShortenInput
from recoveryd.repair.left_to_client import LeftToClient, faults_of
from recoveryd.repair.plan import NOTHING_EXPLAINS, WHICH_IS_NOT_KNOWN, objections, plan
from recoveryd.repair.shorten import ShorterPlan, shorten
from recoveryd.repair.thinking_counts import counts_thinking
from recoveryd.repair.thinking_explained import explain_thinking

__all__ = [
    "NOTHING_EXPLAINS",
    "WHICH_IS_NOT_KNOWN",
    "LeftToClient",
    "PlanInput",
    "Settings",
    "ShortenInput",
    "ShorterPlan",
    "counts_thinking",
    "explain_thinking",
    "faults_of",
    "objections",
    "plan",
    "shorten",
]
