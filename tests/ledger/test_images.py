"""What the images of a recovery mean: what is nowhere else, what may go, and what a second writing leaves."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.core.model import Change
from recoveryd.ledger.images import Images, droppable, joined, sole
from tests.ledger.test_ledger import BLANK, DAY, ERROR, RUNNING, WORDS


def test_what_is_held_does_not_drive_out_the_rest() -> None:
    images = [
        Images(1, 0, 5_000_000, held=True),
        Images(2, 0, 600_000, held=False),
        Images(3, 0, 600_000, held=False),
    ]
    assert droppable(images, 30, 1, now=10) == [2]
    assert droppable(images, 30, 2, now=10) == []
    assert droppable(images, 30, 2, now=31 * DAY) == [2, 3]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, WORDS, False),
        (WORDS, WORDS, False),
        (WORDS, None, True),
        (WORDS, b'{"text":"words of the user, and more"}', False),
        (WORDS, b'{"text":"other words"}', True),
        (BLANK, None, False),
        (RUNNING, ERROR, False),
        (RUNNING, None, True),
        (b'{"type":"tool","state":{"input":{"id":"the words"}}}', b'{"type":"tool","state":{"input":{}}}', True),
        (b'{"type":"tool","state":{"input":[5,7]}}', b'{"type":"tool","state":{"input":{"value":[5]}}}', True),
        (b'{"type":"tool","state":{"input":[5,7]}}', b'{"type":"tool","state":{"input":{"value":[5,7]}}}', False),
        (b'{"type":"tool","state":"odd"}', b'{"type":"tool","state":{"status":"error"}}', True),
        (b'{"text":"a\\ud800b"}', b'{"text":"a\\ufffdb"}', True),
        (b'{"type":"text","text":"torn', None, True),
        (b'{"type":"text","text":"torn', WORDS, True),
        (b"  \n", None, False),
        (b"[" * 100_000, None, True),
    ],
)
def test_sole(before: bytes | None, after: bytes | None, expected: bool) -> None:
    assert sole(Change("k", before, after)) is expected


def test_a_part_that_moves_is_not_lost() -> None:
    moved = Change("k1", WORDS, None), Change("k2", None, WORDS.replace(b"prt_1", b"prt_0"))
    assert sole(moved[0])
    assert not sole(moved[0], moved)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()), max_size=5))
def test_nothing_is_sole_that_stays_as_it_is(data: dict[str, object]) -> None:
    raw = json.dumps(data).encode()
    assert not sole(Change("k", raw, raw))


IMAGE = st.none() | st.binary(max_size=2)


@given(before=IMAGE, ours=IMAGE, client=IMAGE, last=IMAGE)
def test_undoing_both_writings_leads_to_before_the_first_unless_the_client_wrote(
    before: bytes | None, ours: bytes | None, client: bytes | None, last: bytes | None
) -> None:
    first = Change("a", before, ours, 0o600)
    assert joined([first], []) == [first]
    assert joined([first], [Change("a", ours, last)]) == [Change("a", before, last, 0o600)]
    if client != ours:
        assert joined([first], [Change("a", client, last)]) == [Change("a", client, last)]
