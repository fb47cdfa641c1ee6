"""Which thinking a repair keeps and which it sets aside, in lines for the log."""

from __future__ import annotations

from recoveryd.core.model import Edit, Kind, Message, Part, Session
from recoveryd.repair.thinking_explained import explain_thinking

SESSION = Session(
    "st",
    "ses_1",
    tuple(
        Message(
            f"msg_{n}", {"role": "assistant"}, (Part(f"prt_{n}", f"msg_{n}", {"type": "reasoning", "text": "secret"}),)
        )
        for n in range(3)
    ),
)


def aside(*numbers: int) -> list[Edit]:
    return [Edit(f"msg_{n}", f"prt_{n}", None, "set_aside_thinking") for n in numbers]


def test_each_block_has_a_line_with_its_reason_and_no_content() -> None:
    lines = list(explain_thinking(SESSION, aside(1, 2), Kind.THINKING_SIGNATURE_INVALID))
    assert lines == [
        "thinking prt_0 of message msg_0: kept, it stands before all that is edited",
        "thinking prt_1 of message msg_1: set aside, the provider rejects it",
        "thinking prt_2 of message msg_2: set aside, it stands behind another, and may be bound to it",
    ]
    assert "secret" not in "".join(lines)


def test_behind_another_edit_it_goes_because_it_may_be_bound() -> None:
    lines = list(
        explain_thinking(SESSION, [Edit("msg_0", "prt_x", None, "set_aside_blank"), *aside(1, 2)], Kind.EMPTY_CONTENT)
    )
    assert lines[1].endswith("set aside, it stands behind an edit, and may be bound to it")


def test_what_vanishes_from_the_request_and_stays_stored_is_told_so() -> None:
    edits = [Edit("msg_0", "prt_x", None, "set_aside_blank"), Edit("msg_1", "prt_1", {}, "unsent_thinking")]
    lines = list(explain_thinking(SESSION, edits, Kind.EMPTY_CONTENT))
    assert lines[1] == "thinking prt_1 of message msg_1: kept, the client does not send it any more"
    assert len(lines) == 3


def test_where_nothing_is_set_aside_nothing_is_said() -> None:
    assert list(explain_thinking(SESSION, [], Kind.EMPTY_CONTENT)) == []
