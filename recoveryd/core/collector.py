"""The search for objects that hold each other in a circle, and when it does more harm than good."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Pause the search while very many values are made that are in no circle: it takes longer than making them.

    They stay young: counted as old, the few that are in a circle stay too, and a daemon that plans much grows.
    """
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()
