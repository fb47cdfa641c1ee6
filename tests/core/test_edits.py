"""Edits in memory: what a store would hold once they are written."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from recoveryd.core.edits import deed_names, deeds, edited, merged, repeated, stored
from recoveryd.core.model import Edit, Message, Part, Session
from tests.support.generate import CHANCE, generate
from tests.support.values import as_session

TEXT = {"type": "text", "text": "new"}


def session() -> Session:
    parts = tuple(Part(f"prt_{n}", "msg_1", {"type": "text", "text": n}, b"raw") for n in "13")
    return Session("st", "ses", (Message("msg_1", {"role": "user"}, parts, b"raw"), Message("msg_3", {"role": "user"})))


def test_a_part_is_put_in_its_place_by_its_id() -> None:
    after = edited(session(), [Edit("msg_1", "prt_2", TEXT, "placeholder")])
    assert [part.id for part in after.messages[0].parts] == ["prt_1", "prt_2", "prt_3"]
    assert after.messages[0].parts[1] == Part("prt_2", "msg_1", TEXT)


def test_a_part_is_replaced_or_set_aside_and_the_others_stay_as_they_are() -> None:
    before = session()
    after = edited(
        before, [Edit("msg_1", "prt_1", None, "set_aside_blank"), Edit("msg_1", "prt_3", TEXT, "placeholder")]
    )
    assert [(part.id, part.data) for part in after.messages[0].parts] == [("prt_3", TEXT)]
    assert after.messages[1] is before.messages[1]
    assert before == session()


def test_a_message_comes_with_its_parts_in_the_order_of_its_id() -> None:
    edits = [Edit("msg_2", None, {"role": "user"}, "placeholder"), Edit("msg_2", "prt_x", TEXT, "placeholder")]
    after = edited(session(), edits)
    assert [message.id for message in after.messages] == ["msg_1", "msg_2", "msg_3"]
    assert [part.id for part in after.messages[1].parts] == ["prt_x"]


def test_a_message_keeps_its_parts_when_it_is_replaced() -> None:
    after = edited(session(), [Edit("msg_1", None, {"role": "assistant"}, "placeholder")])
    assert after.messages[0].role == "assistant"
    assert after.messages[0].parts == session().messages[0].parts


def test_a_message_set_aside_is_gone() -> None:
    assert [m.id for m in edited(session(), [Edit("msg_3", None, None, "x")]).messages] == ["msg_1"]


def test_a_new_message_takes_its_place_by_time_where_the_store_orders_by_time() -> None:
    timed = Session("st", "ses", (Message("msg_9", {}, at=5), Message("msg_1", {}, at=9)))
    after = edited(timed, [Edit("msg_5", None, {"time": {"created": 7}}, "placeholder")])
    assert [message.id for message in after.messages] == ["msg_9", "msg_5", "msg_1"]


def test_an_edit_without_its_message_is_an_error() -> None:
    with pytest.raises(KeyError):
        edited(session(), [Edit("msg_2", "prt_x", TEXT, "placeholder")])


def test_two_sets_of_edits_become_one_for_each_record() -> None:
    first = [Edit("msg_1", "prt_1", TEXT, "placeholder"), Edit("msg_1", "prt_2", TEXT, "placeholder")]
    then = [Edit("msg_1", "prt_1", None, "set_aside_blank"), Edit("msg_1", "prt_2", None, "set_aside_blank")]
    assert merged(first, then, session()) == (then[0],), "what was never stored needs no setting aside"


def test_the_records_of_a_session_are_its_messages_and_parts() -> None:
    known = {("msg_1", ""), ("msg_3", ""), ("msg_1", "prt_1"), ("msg_1", "prt_3")}
    assert stored(session()) == known


@given(CHANCE)
def test_edits_one_after_the_other_are_the_edits_merged(rng: random.Random) -> None:
    before = as_session(generate(rng, 1).planted)
    first, then = _any_edits(rng, before), _any_edits(rng, before)
    both = merged(first, then, before)
    assert _values(edited(edited(before, first), then)) == _values(edited(before, both))
    assert len({edit.record for edit in both}) == len(both)


def _any_edits(rng: random.Random, session: Session) -> list[Edit]:
    parts = [part for message in session.messages for part in message.parts]
    chosen = rng.sample(parts, min(len(parts), 3))
    taken = [Edit(p.message_id, p.id, rng.choice([None, {**TEXT, "text": str(n)}]), "x") for n, p in enumerate(chosen)]
    return taken + [Edit(p.message_id, p.id + "V", dict(TEXT), "x") for p in chosen[:1]]


def _values(session: Session) -> list[object]:
    return [
        (message.id, message.data, [(part.id, part.data) for part in message.parts]) for message in session.messages
    ]


@pytest.mark.parametrize(
    ("companion", "then_companion", "gone", "told"),
    [
        (False, False, False, ["take_out_media", "mend_call"]),
        (False, True, False, ["take_out_media"]),  # the call of which this is the result tells of the new id
        (True, False, False, ["mend_call"]),
        (True, True, False, []),
        (False, False, True, ["mend_call"]),
    ],
)
def test_all_that_was_done_to_one_record_is_told(
    companion: bool, then_companion: bool, gone: bool, told: list[str]
) -> None:
    first = Edit("msg_1", "prt_1", TEXT, "take_out_media", companion)
    then = Edit("msg_1", "prt_1", None if gone else TEXT, "mend_call", then_companion)
    both = merged([first], [then], session())
    assert [edit.record for edit in both] == [first.record]
    assert [edit.action for edit in deeds(both)] == told
    assert deeds(merged(both, [then], session())) == deeds(both)


def test_what_was_done_twice_to_a_record_is_told_twice_also_beside_another_deed() -> None:
    twice = repeated(Edit("msg_1", "prt_1", TEXT, "take_out_media"), 2)
    then = Edit("msg_1", "prt_1", TEXT, "mend_call")
    assert deed_names([twice]) == ("take_out_media",) * 2
    assert deed_names(merged([twice], [then], session())) == ("take_out_media", "take_out_media", "mend_call")


@pytest.mark.parametrize("action", ["take_out_media", "drop_field", "rename_document", "forget_tool"])
def test_images_and_fields_of_one_record_that_go_one_after_the_other_are_told_each(action: str) -> None:
    once = Edit("msg_1", "prt_1", TEXT, action)
    assert deed_names(merged([repeated(once, 2)], [once], session())) == (action,) * 3


def test_a_call_that_is_mended_in_two_rounds_is_one() -> None:
    mended = Edit("msg_1", "prt_1", TEXT, "mend_call")
    assert deed_names(merged([mended], [mended], session())) == ("mend_call",)
