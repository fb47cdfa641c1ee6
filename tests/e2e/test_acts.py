"""Lives of a user on the real client, act after act: what is told of a session is so, and only what is refused is
edited. Chosen ones; `python -m tests.e2e.acts` draws more.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.acts import FAULTS, Life, live, world
from tests.e2e.install import DATABASE, UnavailableError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
LIVES = [
    ["called outputs again", "back", "again"],  # shortened, and its refusal taken back
    ["called paste again again", "back account", "again"],  # and no money left
    ["called late", "undo again", "repair again"],
    ["called forged again", "again", "force again repair again"],
    ["called picture", "stopped", "back again"],
    ["called forged", "fork again", "compact"],
    ["called forged", "again", "compact force"],  # none of what the undo puts back is sent
    ["ask called", "account", "stopped again"],  # never refused for what is stored
]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Life]]:
    try:
        with world(tmp_path_factory.mktemp("acts"), DATABASE) as made:
            yield live(made, LIVES)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_what_is_told_is_so_and_only_what_is_refused_is_edited(lived: list[Life]) -> None:
    assert [life.tell() for life in lived if life.problems] == []


def test_an_undo_behind_a_compaction_of_all_that_it_puts_back_is_not_told(lived: list[Life]) -> None:
    [said] = [life.said for life in lived if life.rounds[-1] == ["compact", "force"]]
    assert said[-2].endswith(", 0") and said[-1] == "[2: fine ; answered]", said


def test_each_fault_was_refused_and_healed(lived: list[Life]) -> None:
    """Else nothing was shown."""
    for fault in FAULTS:
        tried = [life for life in lived if any(said.startswith(f"{fault}: refused") for said in life.said)]
        assert any(" healed " in said for life in tried for said in life.said), fault
    assert any(said.startswith("undo: r") and said.endswith(", 0") for life in lived for said in life.said)
