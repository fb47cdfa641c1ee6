"""The originals of everything that was touched, and the history of recoveries.

Imports `core` and `disk`.
"""

from __future__ import annotations

from recoveryd.ledger.export import export, without_originals
from recoveryd.ledger.file import LedgerFile, is_there
from recoveryd.ledger.images import digest, join_images
from recoveryd.ledger.known_stores import KnownStores
from recoveryd.ledger.ledger import OVERWRITTEN, Handled, Judged, Ledger, Record, new_id
from recoveryd.ledger.peek import damage, peek
from recoveryd.ledger.seen_and_resumed import Resumed, Resumes, SeenSessions
from recoveryd.ledger.stats import EndedRecovery, KindStats, count_outcomes, midnight, stats_by_kind
from recoveryd.ledger.upkeep import FORGOTTEN, Held, Upkeep

__all__ = [
    "FORGOTTEN",
    "OVERWRITTEN",
    "EndedRecovery",
    "Handled",
    "Held",
    "Judged",
    "KindStats",
    "KnownStores",
    "Ledger",
    "LedgerFile",
    "Record",
    "Resumed",
    "Resumes",
    "SeenSessions",
    "Upkeep",
    "count_outcomes",
    "damage",
    "digest",
    "export",
    "is_there",
    "join_images",
    "midnight",
    "new_id",
    "peek",
    "stats_by_kind",
    "without_originals",
]
