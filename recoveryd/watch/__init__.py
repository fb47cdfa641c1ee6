"""Notices that something was written to a store, and which sessions to look at.

Imports `core` and the ports of `clients`.
"""

from __future__ import annotations

from recoveryd.watch import folders
from recoveryd.watch.folders import why_not_watched
from recoveryd.watch.watcher import Watcher

__all__ = ["Watcher", "folders", "why_not_watched"]
