"""Which images may go, and what a second writing of the same recovery leaves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recoveryd.core.model import Change
from recoveryd.ledger.images import Images, droppable, join_images
from tests.ledger.test_ledger import DAY


def test_what_is_held_does_not_drive_out_the_rest() -> None:
    images = [
        Images(1, 0, 5_000_000, held=True),
        Images(2, 0, 600_000, held=False),
        Images(3, 0, 600_000, held=False),
    ]
    assert droppable(images, 30, 1, now=10) == [2]
    assert droppable(images, 30, 2, now=10) == []
    assert droppable(images, 30, 2, now=31 * DAY) == [2, 3]


def test_what_was_kept_while_the_clock_was_behind_is_no_older_than_what_was_before_it() -> None:
    """A machine without a battery for its clock: it is set right once the network is there."""
    images = [Images(1, 100 * DAY, 1, held=True), Images(2, 0, 1, held=False), Images(3, 101 * DAY, 1, held=False)]
    assert droppable(images, 30, 1, now=102 * DAY) == []
    assert droppable(images, 30, 1, now=131 * DAY) == [2]
    ahead = [Images(1, 9_000 * DAY, 1, held=False), Images(2, 100 * DAY, 1, held=False)]
    assert droppable(ahead, 30, 1, now=131 * DAY) == [2], "nor is all younger behind one that was ahead"


IMAGE = st.none() | st.binary(max_size=2)


@given(before=IMAGE, ours=IMAGE, client=IMAGE, last=IMAGE)
def test_undoing_both_writings_leads_to_before_the_first_unless_the_client_wrote(
    before: bytes | None, ours: bytes | None, client: bytes | None, last: bytes | None
) -> None:
    first = Change("a", before, ours, 0o600)
    assert join_images([first], []) == (first,)
    assert join_images([first], [Change("a", ours, last)]) == (Change("a", before, last, 0o600),)
    if client != ours:
        assert join_images([first], [Change("a", client, last)]) == (Change("a", client, last),)


def test_a_second_writing_keeps_what_still_stands_of_the_first() -> None:
    stands, overwritten, extended = (Change(key, b"before", b"ours", 0o600) for key in "abc")
    again = [Change("b", b"client", b"ours"), Change("c", b"ours", b"more"), Change("d", None, b"new")]
    kept = join_images([stands, overwritten, extended], again)
    assert kept == (stands, again[0], Change("c", b"before", b"more", 0o600), again[2])
