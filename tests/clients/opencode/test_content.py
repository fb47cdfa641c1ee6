"""What OpenCode's records say: what of them exists nowhere else now, and how they are laid open."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.opencode import content
from recoveryd.clients.opencode.sqlite import rows
from recoveryd.core.model import Change
from tests.ledger.test_ledger import BLANK, ERROR, RUNNING, WORDS

LONG = "a long text of the user " * 20
CASES = [
    (None, WORDS, False),
    (WORDS, WORDS.replace(b"prt_1", b"prt_2"), False),
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
    (json.dumps({"text": LONG}).encode(), json.dumps({"a": [f"{LONG}!"]}).encode(), False),
    (json.dumps({"text": LONG}).encode(), json.dumps({"a": [LONG[1:]]}).encode(), True),
    (json.dumps({"text": LONG + "\ud800"}).encode(), json.dumps({"a": LONG + "\ud800"}).encode(), False),
]


@pytest.mark.parametrize(("before", "after", "expected"), CASES)
def test_content_that_exists_nowhere_else_now(before: bytes | None, after: bytes | None, expected: bool) -> None:
    assert content.sole([Change("k", before, after)]) is expected


@pytest.mark.parametrize(("before", "after", "expected"), CASES)
def test_a_row_holds_what_its_column_says(before: bytes | None, after: bytes | None, expected: bool) -> None:
    """The same content of a part, in a database: of its row the ids and times are nobody's words."""
    one, other = (None if image is None else row("prt_1", image, n) for n, image in enumerate((before, after)))
    # What is no JSON is no content that can be told from its frame: the whole row counts, its ids too.
    assert content.sole([Change("part/prt_1", one, other)]) is (expected or before == b"  \n")


def row(identifier: str, data: bytes, updated: int) -> bytes:
    ids = {"id": identifier, "message_id": "msg_1", "session_id": "ses_1", "time_created": 1}
    return rows.row_image({**ids, "time_updated": updated, "data": data.decode()})


def test_a_part_that_moves_is_not_lost() -> None:
    moved = Change("k1", WORDS, None), Change("k2", None, WORDS.replace(b"prt_1", b"prt_0"))
    assert content.sole(moved[:1])
    assert not content.sole(moved)


def test_what_comes_along_unchanged_is_about_to_be_taken_away_by_the_client() -> None:
    assert content.sole([Change("part/a", RUNNING, ERROR), Change("part/b", WORDS, WORDS)])


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()), max_size=5))
def test_nothing_is_lost_by_another_layout(data: dict[str, object]) -> None:
    laid_out = json.dumps(data, indent=9).encode()
    assert not content.sole([Change("k", json.dumps(data, indent=1).encode(), laid_out)]) or not data


@pytest.mark.parametrize(
    ("image", "said", "shown"),
    [
        (b'{"type":"text"}', {"type": "text"}, {"type": "text"}),
        (
            b'{"id":"p","session_id":"s","data":"{\\"a\\":1}"}',
            {"a": 1},
            {"id": "p", "session_id": "s", "data": {"a": 1}},
        ),
        (b'{"id":"p","session_id":"s","data":"{torn"}', None, {"id": "p", "session_id": "s", "data": "{torn"}),
        (b'{"id":"ses_1","revert":"{}"}', {"id": "ses_1", "revert": "{}"}, {"id": "ses_1", "revert": "{}"}),
        (b"[1]", None, [1]),
        (b"{torn", None, None),
        (b"\xff\xfe\xfd", None, None),
        (b"[" * 100_000, None, None),
    ],
)
def test_a_record_is_read_and_laid_open(image: bytes, said: object, shown: object) -> None:
    assert content.said(image) == said
    assert content.shown(image) == shown


def test_which_records_are_parts() -> None:
    keys = "part/msg_1/prt_1.json", "part/prt_1", "message/ses_1/msg_1.json", "message/msg_1", "session/ses_1"
    assert [content.is_part(key) for key in keys] == [True, True, False, False, False]


def test_nothing_of_a_message_comes_back_that_was_only_edited_and_that_the_client_deleted() -> None:
    """Half of an answer, without its prompt; one that the repair took out does come back, with its parts."""
    edited, part = Change("message/msg_1", b'{"a":1}', b'{"a":2}'), Change("part/prt_1", row("prt_1", WORDS, 1), WORDS)
    assert content.homeless([edited, part], {"msg_1"}) == set()
    assert content.homeless([edited, part], {"msg_0"}) == {"message/msg_1", "part/prt_1"}
    taken_out = Change("message/msg_1", b'{"a":1}', None)
    assert content.homeless([taken_out, part], {"msg_0"}) == set()


@pytest.mark.parametrize("data", [b"\x96\x83", "\udc96\udc83"])
def test_a_part_whose_text_is_broken_belongs_to_its_message_all_the_same(data: bytes | str) -> None:
    """It was taken for one of a message that is gone: its undo was refused, and by force left it out."""
    columns = {"id": "prt_1", "message_id": "msg_1", "session_id": "ses_1", "time_created": 1, "time_updated": 1}
    part = Change("part/prt_1", rows.row_image({**columns, "data": data}), None)
    assert content.homeless([part], {"msg_1"}) == set()
    assert content.homeless([part], {"msg_2"}) == {"part/prt_1"}
