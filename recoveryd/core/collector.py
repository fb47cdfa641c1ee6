"""The search for objects that hold each other in a circle, and when it does more harm than good."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Pause the search while very many values are made that are in no circle: it takes longer than making them.

    What was made counts as old then: it is looked at with all else, not as soon as this ends.
    """
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            if not _others_froze():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _others_froze() -> bool:
    """Whether something else in this process froze values, which then stay so. Slow where there are many."""
    return gc.get_freeze_count() > 0
