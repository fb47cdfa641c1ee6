"""Answers that break off, at each place and in each way, on the real clients and through the SDK of each provider.

The next prompt is refused and heals, or is taken and nothing is edited. A part of the cases, each client another one;
all of them where TEST_RECOVERYD_FULL_CLIENTS is set, or by `python -m tests.families.cut_play`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.e2e.install import UnavailableError
from tests.families.cut import DOORS, PLACES, WAYS, Cut, cuts
from tests.families.cut_play import VERSIONS, Broken, all_played, is_slow

FULL = bool(os.environ.get("TEST_RECOVERYD_FULL_CLIENTS"))
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(7200 if FULL else 300)]
EVERY = 83  # a prime: so the cases are of each way and place
FOUND = [Cut("vertex-claude", "text-1", "aborted")]  # what once was not healed: by each client


def chosen(version: str) -> list[Cut]:
    """The cases of a client."""
    every = [cut for later in (False, True) for name in DOORS for cut in cuts(name, later=later)]
    if FULL:
        return every
    some = every[VERSIONS.index(version) * EVERY // len(VERSIONS) :: EVERY]
    return FOUND + [cut for cut in some if not is_slow(version, cut) and cut not in FOUND]


@pytest.fixture(scope="module", params=VERSIONS)
def broken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broken]]:
    version = request.param
    try:
        yield all_played(tmp_path_factory.mktemp("cut"), version, DOORS, chosen(version))
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_what_is_refused_behind_it_heals_goes_on_and_is_taken_back(broken: list[Broken]) -> None:
    stuck = [one for one in broken if one.stuck]
    assert stuck, "at least that which each client plays; of the others some go by how fast the client stores"
    assert [one.tell() for one in stuck if one.problem] == []


def test_what_is_taken_behind_it_keeps_every_byte_and_nothing_is_told(broken: list[Broken]) -> None:
    fine = [one for one in broken if not one.stuck]
    assert len(fine) >= 5
    assert [one.tell() for one in fine if one.problem] == []


def test_the_cases_of_all_clients_are_of_each_family_place_and_way() -> None:
    """No client is asked here."""
    cases = [cut for version in VERSIONS for cut in chosen(version)]
    assert {cut.family for cut in cases} == DOORS.keys()
    assert {cut.way for cut in cases} == set(WAYS)
    assert {cut.place for cut in cases} == PLACES.keys()
