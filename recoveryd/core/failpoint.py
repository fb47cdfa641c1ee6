"""Named steps at which a test can put a crash or a fault: code that changes the disk says each name before it goes on.

Only a test's own process ever replaces `reach`; no setting and no variable of the environment leads to it.
"""

from __future__ import annotations

from collections.abc import Callable


def _nothing(name: str) -> None:
    """Announce that the step `name` is about to be made. A test puts its own function in the place of this one."""


reach: Callable[[str], None] = _nothing
