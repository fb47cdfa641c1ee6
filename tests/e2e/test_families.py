"""Families beside Anthropic's own on the real client: what is refused heals, what is taken keeps every byte.

A part of the shapes; all of them by `python -m tests.families`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.install import DATABASE, JSON_STORE, NEWEST, UnavailableError
from tests.families.play import Played, Stage, played, shapes_for, staged
from tests.families.table import FAMILIES

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

# OpenRouter's words for an error make 1.18 try again for 70 s before it stores anything.
CASES = [
    ("bedrock", NEWEST, 1),
    ("openrouter", JSON_STORE, 3),
    ("copilot", DATABASE, 5),
    ("openai", NEWEST, 7),
    ("kimi", NEWEST, 4),
    ("gemini", NEWEST, 8),
    ("mistral", NEWEST, 8),
]
EVERY = 11


@dataclass(repr=False)
class Run:
    stage: Stage
    made: list[Played]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case[:2])))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    name, version, first = request.param
    try:
        with staged(tmp_path_factory.mktemp(name), FAMILIES[name], version) as stage:
            yield Run(stage, played(stage, shapes_for(version)[first::EVERY]))
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_what_is_refused_is_healed_and_goes_on_for_three_prompts(run: Run) -> None:
    stuck = [one for one in run.made if one.refused is not None or one.entries]
    assert len(stuck) >= 3
    assert [one.tell() for one in stuck if not one.healed] == []
    assert all(len(one.again) == 3 for one in stuck)


def test_what_is_accepted_keeps_every_byte(run: Run) -> None:
    fine = [one for one in run.made if one.refused is None and not one.entries]
    assert fine
    assert [one.tell() for one in fine if not one.untouched or not all(one.again)] == []


def test_the_wire_is_what_the_client_sent(run: Run) -> None:
    """But of those that the daemon mends on sight, before they are prompted."""
    assert [one.tell() for one in run.made if not one.rebuilt and (one.refused is not None or not one.entries)] == []


def test_undo_restores_every_byte(run: Run) -> None:
    """New sessions, not prompted on: an undo is refused once an answer has come."""
    shapes = [one.shape for one in run.made if one.refused is not None][:3]
    made = played(run.stage, shapes, further=0)
    codes = run.stage.daemon.codes([["undo", one.entries[0]["id"]] for one in made])
    assert codes == [0] * len(made)
    assert [run.stage.records(one.planted) for one in made] == [one.before for one in made]
