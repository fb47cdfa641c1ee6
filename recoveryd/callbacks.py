"""A parent system's own code, called before and after a recovery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loguru import logger

from recoveryd.model import Event


@dataclass(frozen=True, slots=True)
class Callbacks:
    """`on_abort(session id)` before a session is touched, `on_complete(event)` after, whatever it came to."""

    on_abort: Callable[[str], object] | None = None
    on_complete: Callable[[Event], object] | None = None


def safely(name: str, function: Callable[..., object] | None, *arguments: object) -> None:
    """Call it if there is one. What it raises is logged and changes nothing."""
    if function is None:
        return
    try:
        function(*arguments)
    except Exception:
        logger.exception("{} failed; the recovery goes on", name)
