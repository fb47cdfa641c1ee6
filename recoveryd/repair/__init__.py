"""From what a provider refuses to the cheapest edits that its rules accept. Pure.

Imports `core` and the port of the providers; clients' wires and editors are handed in.
"""

from __future__ import annotations

from recoveryd.repair.fixes import Settings
from recoveryd.repair.left_to_client import LeftToClient
from recoveryd.repair.plan import PlanInput, objections, plan
from recoveryd.repair.shorten import Shorter, shorten
from recoveryd.repair.shorten_steps import ShortenInput
from recoveryd.repair.thinking_explained import explain_thinking

__all__ = [
    "LeftToClient",
    "PlanInput",
    "Settings",
    "ShortenInput",
    "Shorter",
    "explain_thinking",
    "objections",
    "plan",
    "shorten",
]
