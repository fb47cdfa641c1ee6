"""Call a parent system's own functions before and after a recovery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loguru import logger

from recoveryd.core import Event
from recoveryd.tell.event_words import log_prefix


@dataclass(frozen=True, slots=True)
class Callbacks:
    """`on_abort(session id)` before a session is touched, `on_complete(event)` after, whatever it came to."""

    on_abort: Callable[[str], object] | None = None
    on_complete: Callable[[Event], object] | None = None

    def then(self, other: Callbacks) -> Callbacks:
        """Join two pairs: these are called first, then `other`. What one raises is logged and does not stop the
        other.
        """

        def on_abort(session: str) -> None:
            safely(f"{session}: on_abort", self.on_abort, session)
            safely(f"{session}: on_abort", other.on_abort, session)

        def on_complete(event: Event) -> None:
            safely(f"{log_prefix(event)}: on_complete", self.on_complete, event)
            safely(f"{log_prefix(event)}: on_complete", other.on_complete, event)

        return Callbacks(on_abort, on_complete)


def safely(name: str, function: Callable[..., object] | None, *arguments: object) -> None:
    """Call a callback of the parent system, if there is one. What it raises is logged and changes nothing."""
    if function is None:
        return
    try:
        function(*arguments)
    except Exception:
        logger.exception("{} failed; the recovery goes on", name)
