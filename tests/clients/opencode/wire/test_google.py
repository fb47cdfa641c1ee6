"""What the SDKs of Google make of a stored session: the rows in which they, and the client's forms, differ."""

from __future__ import annotations

from typing import Any

import pytest

from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core import Failure, Request
from tests.e2e.media import data_url, png
from tests.families.table import FAMILIES
from tests.support.build import SessionBuilder
from tests.support.parts import Part, file, reasoning, step_start, text, tool
from tests.support.values import as_session

PICTURE = file(data_url(png(4, 4)))
RETURNED = "Tool executed successfully and returned this image as a response"
PROTOCOLS = {"gemini": "google.generate", "gemini-2": "google.generate", "vertex": "google.vertex"}


def sent(name: str, form: str, *answer: Part | str) -> Request:
    """What goes for a question and an answer of these parts, stored by this family."""
    session = SessionBuilder(1_790_000_000_000, seed=1)
    session.user("go")
    session.assistant(*answer)
    family = FAMILIES[name]
    failure = Failure("st", "ses", "msg", 0, provider=family.provider, model=family.model)
    [wire] = wires_of(failure, PROTOCOLS[name], [Form.named(form)])
    return wire.stored(as_session(family.dressed(session.planted())))


def types(request: Request) -> list[list[str]]:
    return [[block.type for block in turn.blocks] for turn in request.turns[1:]]


def calls(request: Request) -> list[dict[str, Any]]:
    return [dict(block.body) for block in request.blocks() if block.type == "tool_use"]


@pytest.mark.parametrize(
    ("name", "form", "left"),
    [("gemini", "new", []), ("gemini", "old", [[]]), ("vertex", "new", [[]]), ("vertex", "paged", [[]])],
)
def test_an_answer_of_which_nothing_is_left_is_sent_without_parts_or_not_at_all(
    name: str, form: str, left: list[list[str]]
) -> None:
    assert types(sent(name, form, text(""))) == left


def test_to_gemini_3_on_vertex_a_call_that_nothing_signed_goes_with_a_mark() -> None:
    request = sent("vertex", "new", tool(), step_start(), reasoning("a plan"), tool(), tool())
    signatures = [call.get("signature") for call in calls(request)]
    assert signatures[0] == "skip_thought_signature_validator"
    assert signatures[1] not in (None, signatures[0])
    assert signatures[2] is None  # behind one that is signed, in the same step
    assert "signature" not in calls(sent("gemini", "new", tool()))[0]


def test_what_signs_a_step_is_found_under_the_name_of_the_sdk() -> None:
    for name, form, found in (("gemini", "old", True), ("vertex", "new", True), ("vertex", "old", False)):
        [call] = calls(sent(name, form, reasoning("a plan"), tool()))
        assert ("signature" in call) == found, (name, form)


def test_a_picture_of_a_tool_stands_in_its_response_behind_it_or_in_a_message_of_its_own() -> None:
    answer = tool(output="seen", attachments=[PICTURE])
    assert types(sent("gemini", "new", answer)) == [["tool_use"], ["tool_result"]]
    old = sent("gemini", "old", answer)
    assert types(old) == [["tool_use"], ["tool_result", "image", "text"]]
    assert old.turns[2].blocks[-1].body["text"] == RETURNED
    for name in ("gemini-2", "vertex"):
        assert types(sent(name, "new", answer)) == [["tool_use"], ["tool_result"], ["text", "image"]]
