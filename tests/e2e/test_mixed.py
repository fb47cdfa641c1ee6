"""Sessions with up to five faults at once, on the real clients: refused, healed in one recovery, prompted on, undone.

Half of them with a provider that binds thinking to what stands before it, half with one that does not. The sample is
made from TEST_RECOVERYD_SEED, and is of TEST_RECOVERYD_SESSIONS in all; `python -m tests.e2e.mixed_run` plays more.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.crowd import SIGNATURE, Case, play, unforeseen
from tests.e2e.daemon import healing
from tests.e2e.install import JSON_STORE, NEWEST, UnavailableError
from tests.support.mixed import catalogue, mixed

SEED = int(os.environ.get("TEST_RECOVERYD_SEED", "1"))
SESSIONS = int(os.environ.get("TEST_RECOVERYD_SESSIONS", "200"))
VERSIONS = (JSON_STORE, NEWEST)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200 + 2 * SESSIONS)]


@dataclass(repr=False)
class Played:
    """The sessions of one client, bound and not, and what the daemon said."""

    cases: list[Case]
    log: str


@pytest.fixture(scope="module", params=VERSIONS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    version = str(request.param)
    root = tmp_path_factory.mktemp("mixed")
    rng, of = random.Random(SEED), catalogue(version)
    try:
        with healing(root, version) as (harness, daemon):
            cases = []
            for bound in (True, False):
                batch = [mixed(rng, of) for _ in range(SESSIONS // (2 * len(VERSIONS)))]
                cases += play(harness, daemon, batch, bound=bound)
            yield Played(cases, daemon.log)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_all_that_is_refused_is_healed_goes_on_and_can_be_undone(played: Played) -> None:
    """What is accepted is not touched; the rest is accepted after its recovery with thinking on and off, bound or not,
    and undo leaves what was there, byte for byte."""
    assert [f"seed {SEED}, number {n}: {case.tell()}" for n, case in enumerate(played.cases) if case.problems] == []


def test_one_recovery_is_enough(played: Played) -> None:
    """All faults of a session are one plan, but for a signature, or a size, that only the next refusal tells of."""
    more = [case for case in played.cases if sum(entry["outcome"] == "healed" for entry in case.entries) > 1]
    for case in more:
        assert not unforeseen(case), case.tell()
        assert _signed_by_others(case) >= 1 or not set(case.refusals[1:]) & set(SIGNATURE), case.tell()
    if SESSIONS >= 100:
        assert len(more) <= len(played.cases) // 5, Counter(len(case.entries) for case in played.cases)


def _signed_by_others(case: Case) -> int:
    """How many blocks of later refusals the provider did not sign as they are."""
    later = [request for outcome in case.prompts[1:] for request in outcome.requests if request.kind in SIGNATURE]
    return sum("bound to a different" not in str(request.refused) for request in later)


def test_enough_was_tried(played: Played) -> None:
    """Else nothing was shown: most were broken, by one to five faults of many kinds, with thinking on and off."""
    broken = [case for case in played.cases if case.broken]
    assert len(broken) >= 0.6 * len(played.cases)
    if SESSIONS >= 100:
        assert {len(case.generated.faults) for case in broken} >= {1, 2, 3, 4, 5}
        assert len({case.refusals[0] for case in broken if case.refusals}) >= 6
        assert {case.generated.thinking for case in broken} == {True, False}
        assert any(not case.broken for case in played.cases)


def test_the_daemon_met_no_fault_of_its_own(played: Played) -> None:
    assert "Traceback" not in played.log
    assert "fault of recoveryd" not in played.log
