"""The search for circles rests while a long session is read, and goes on as it was."""

from __future__ import annotations

import gc

from recoveryd.core import without_collector


def test_what_was_made_stays_young() -> None:
    """Counted as old, a thousand repairs took 118 MiB instead of 51."""
    gc.collect()
    with without_collector():
        assert not gc.isenabled()
        made = [[number] for number in range(100)]
    old = set(map(id, gc.get_objects(generation=2)))
    assert gc.isenabled()
    assert not all(id(one) in old for one in made)


def test_where_it_was_off_it_stays_off() -> None:
    gc.disable()
    try:
        with without_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
