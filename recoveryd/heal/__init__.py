"""One recovery from end to end: plan, keep, write, read back; undo; tell the session to go on.

Imports all that stands before it on the way of a failure, and `tell`.
"""

from __future__ import annotations

from recoveryd.heal import ahead, by_hand
from recoveryd.heal.by_hand import Answer
from recoveryd.heal.lifecycle import Lifecycle, recover_one
from recoveryd.heal.moved_stores import find_store, follow_moved
from recoveryd.heal.propose import not_understood
from recoveryd.heal.recovery import Recovery
from recoveryd.heal.resumer import Resumer
from recoveryd.heal.undo import UNDOABLE, finish_interrupted, take_back, why_not_undone

__all__ = [
    "UNDOABLE",
    "Answer",
    "Lifecycle",
    "Recovery",
    "Resumer",
    "ahead",
    "by_hand",
    "find_store",
    "finish_interrupted",
    "follow_moved",
    "not_understood",
    "recover_one",
    "take_back",
    "why_not_undone",
]
