"""The search for circles rests while a long session is read, and what was made meanwhile is no longer young."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from recoveryd.core import collector, without_collector

OTHERS_FROZE = collector._others_froze  # before `conftest` puts its own answer there


@pytest.fixture(autouse=True)
def _as_in_a_program(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without what `conftest` froze."""
    monkeypatch.setattr(collector, "_others_froze", OTHERS_FROZE)
    gc.unfreeze()
    yield
    gc.freeze()


def test_what_was_made_is_not_young_any_more() -> None:
    with without_collector():
        assert not gc.isenabled()
        made = [[number] for number in range(1_000)]
    assert gc.isenabled()
    old = set(map(id, gc.get_objects(generation=2)))
    assert all(id(one) in old for one in made)


def test_what_others_froze_stays_frozen() -> None:
    mine: list[object] = []
    gc.freeze()
    with without_collector():
        pass
    assert all(one is not mine for one in gc.get_objects()), "only what is not frozen is listed"
    gc.unfreeze()
    assert any(one is mine for one in gc.get_objects())


def test_where_it_was_off_it_stays_off() -> None:
    gc.disable()
    try:
        with without_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
