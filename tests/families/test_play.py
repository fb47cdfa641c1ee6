"""What is said of a play: when a shape counts as healed."""

from __future__ import annotations

import pytest

from tests.families.play import Played
from tests.shapes import SHAPES

SHAPE = next(iter(SHAPES.values()))


@pytest.mark.parametrize(
    ("newest_first", "answered", "healed"),
    [
        (["healed"], [True, True, True], True),
        (["healed", "healed"], [False, True, True], True),
        (["healed", "healed"], [False, False, True], False),
        (["healed", "refused"], [True, True, True], True),
        (["healed", "refused"], [False, True, True], False),
        (["refused", "healed"], [True, True, True], False),
        (["refused"], [True, True, True], False),
        ([], [True, True, True], False),
        (["healed"], [], False),
    ],
)
def test_it_is_healed_where_all_prompts_behind_its_recoveries_were_answered(
    newest_first: list[str], answered: list[bool], healed: bool
) -> None:
    """An old failure among what was planted may be left alone before; a prompt that was left alone is no healing."""
    entries = [{"outcome": outcome} for outcome in newest_first]
    assert Played(SHAPE, SHAPE.build(), {}, entries=entries, again=answered).healed is healed
