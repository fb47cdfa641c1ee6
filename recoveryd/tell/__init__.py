"""What happened, in words, and where it is told: the log, the desktop, the client's own screen, hooks.

Imports `core`, `clients`, `settings`, `ledger` and `repair`.
"""

from __future__ import annotations

from recoveryd.tell.actions import deeds_by_place, deeds_sentence, no_longer_seen
from recoveryd.tell.callbacks import Callbacks, safely
from recoveryd.tell.desktop import Desktop, can_show
from recoveryd.tell.event_words import log_prefix, still_to_tell
from recoveryd.tell.failure_words import NOT_AGAIN, cause, evidence_line, next_step, remedy
from recoveryd.tell.hooks import Commands
from recoveryd.tell.metrics import DURABLE_BOUNDS, Stuck, metrics, stuck_by_client
from recoveryd.tell.metrics import FIRST as METRICS_BEGIN
from recoveryd.tell.notifier import Notifier
from recoveryd.tell.teller import Teller, show_undone
from recoveryd.tell.toast import Toast
from recoveryd.tell.where import places

__all__ = [
    "DURABLE_BOUNDS",
    "METRICS_BEGIN",
    "NOT_AGAIN",
    "Callbacks",
    "Commands",
    "Desktop",
    "Notifier",
    "Stuck",
    "Teller",
    "Toast",
    "can_show",
    "cause",
    "deeds_by_place",
    "deeds_sentence",
    "evidence_line",
    "log_prefix",
    "metrics",
    "next_step",
    "no_longer_seen",
    "places",
    "remedy",
    "safely",
    "show_undone",
    "still_to_tell",
    "stuck_by_client",
]
