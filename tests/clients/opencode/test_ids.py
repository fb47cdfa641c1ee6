"""Ids in between: the client sorts by them, so a wrong one puts a part in the wrong place, or over another."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.opencode.ids import between, unique_between
from tests.support.planted import BASE62

ALLOWED = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
IDS = st.text(ALLOWED, max_size=6).map(lambda tail: "prt_" + tail)
CLIENTS = st.text(BASE62, max_size=6).map(lambda tail: "prt_" + tail)
DENSE = st.text("-01V", max_size=5).map(lambda tail: "prt_" + tail)


@given(IDS | DENSE, IDS | DENSE)
def test_it_sorts_behind_the_one_and_before_the_other(first: str, second: str) -> None:
    low, high = sorted((first, second))
    if low == high or high == low + "-":
        return
    middle = between(low, high)
    assert low < middle < high
    assert re.fullmatch(r"prt_[A-Za-z0-9_-]+", middle)


@given(IDS)
def test_behind_the_last_it_keeps_that_ones_beginning(low: str) -> None:
    assert between(low, None).startswith(low)
    assert between(low, None) > low


@given(st.lists(st.booleans(), max_size=40))
def test_there_is_always_room_again_on_both_sides(lower: list[bool]) -> None:
    low, high = "prt_0198aAb", "prt_0198aAb0"
    for down in lower:
        middle = between(low, high)
        assert low < middle < high
        low, high = (low, middle) if down else (middle, high)


@pytest.mark.parametrize("high", ["prt_a", "prt_a-", "prt_A"])
def test_where_nothing_fits_it_says_so(high: str) -> None:
    with pytest.raises(ValueError):
        between("prt_a", high)


def test_the_way_from_an_id_to_the_one_that_others_make_of_it() -> None:
    """`id + "0"` is a common way to get behind an id; what is put before that must not be it."""
    first = between("prt_a", "prt_a0")
    second = between("prt_a", first)
    assert "prt_a" < second < first < "prt_a0"


@given(CLIENTS, CLIENTS, st.text(ALLOWED, min_size=1, max_size=8))
def test_a_mark_makes_it_unique_and_leaves_it_in_its_place(first: str, second: str, mark: str) -> None:
    low, high = sorted((first, second))
    if low == high:
        return
    middle = unique_between(low, high, mark)
    assert low < middle < high
    assert middle.endswith(mark)


def test_a_mark_behind_the_last() -> None:
    assert unique_between("prt_", None, "rabc").endswith("rabc")
