"""Failpoints: whatever changes the disk says its name first, so that a test can put a crash or a fault there.

Only a test's own process ever replaces `reach`; no setting and no variable of the environment leads to it.
"""

from __future__ import annotations

from collections.abc import Callable


def _nothing(name: str) -> None:
    """The step `name` is about to be made."""


reach: Callable[[str], None] = _nothing
