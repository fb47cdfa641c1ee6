"""What the client attached: words take its place; what is no image or document that it sends is none here either."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from recoveryd.clients.claude_code import edited_lines, transcript
from recoveryd.clients.claude_code.attachment import media, put_words
from recoveryd.clients.claude_code.wire import ClaudeCodeWire
from recoveryd.core import Edit, Session, StoreError
from recoveryd.tell.where import places
from tests.e2e.claude_code.attached import attach, document, image_file, notebook, pasted, queued
from tests.support.transcript import Transcript, call, text


def read(made: Transcript) -> Session:
    return transcript.session("s", made.session, transcript.read(made.raw().split(b"\n")), None)


def _one(put: Callable[[Transcript], object]) -> Session:
    made = Transcript()
    made.user("look")
    put(made)
    made.assistant(text("seen"))
    return read(made)


@pytest.mark.parametrize(
    ("put", "says"),
    [
        (lambda t: image_file(t, 1), {"type": "text", "file": {"content": "gone", "numLines": 1}}),
        (lambda t: notebook(t, 1, 2), {"type": "notebook"}),
        (lambda t: queued(t, pasted(1), pasted(2)), None),
        (lambda t: queued(t, document(), pasted(1)), None),
    ],
)
def test_words_take_the_place_of_one_image_and_all_else_stays(
    put: Callable[[Transcript], object], says: dict[str, Any] | None
) -> None:
    session = _one(put)
    message = session.messages[1]
    before = json.loads(message.raw or b"")
    first, *others = message.parts
    edit = Edit(
        message.id, first.id, {"type": "text", "text": "gone", "recoveryd": {"recovery": "r"}}, "take_out_media"
    )
    [change] = edited_lines.changes(session, [edit], "p/s.jsonl")
    after = json.loads(change.after or b"")
    assert list(media(before["attachment"]).values()) == [part.data for part in message.parts]
    assert list(media(after["attachment"]).values()) == [part.data for part in others]
    assert "gone" in json.dumps(after["attachment"]) and after.pop("recoveryd") == {"recovery": "r"}
    assert {**after, "attachment": None} == {**before, "attachment": None}
    if says is not None:
        assert after["attachment"]["content"]["type"] == says["type"]
        assert after["attachment"]["filename"] == before["attachment"]["filename"]


@pytest.mark.parametrize("put", [lambda t: queued(t, pasted(1), pasted(1), pasted(1)), lambda t: notebook(t, 1, 1, 2)])
def test_the_same_image_again_is_not_taken_for_the_one_that_went(put: Callable[[Transcript], object]) -> None:
    """It came to stand at its place, and went as well when the repair was read back; one was told."""
    made = Transcript()
    made.user("look")
    line = put(made)
    made.assistant(text("seen"))
    session = read(made)
    message = session.messages[1]
    first, *others = message.parts
    [change] = edited_lines.changes(
        session, [Edit(message.id, first.id, {"type": "text", "text": "gone"}, "take_out_media")], "p/s.jsonl"
    )
    lines = made.raw().split(b"\n")
    at = next(number for number, raw in enumerate(lines) if json.loads(raw or b"{}").get("uuid") == line)
    lines[at] = (change.after or b"").rstrip(b"\n")
    now = transcript.session("s", made.session, transcript.read(lines), None)
    assert [(part.id, part.data) for part in now.messages[1].parts] == [(part.id, part.data) for part in others]


def test_what_a_notebook_said_beside_its_plot_stays() -> None:
    made = Transcript()
    notebook(made, 1, 2)
    attachment = made.line(0)["attachment"]
    put_words(attachment, dict(zip(media(attachment), ["gone", "too"], strict=True)))
    [cell] = attachment["content"]["file"]["cells"]
    assert [output["text"] for output in cell["outputs"]] == ["hey\n", "<Figure>\ngone", "too"]


def test_an_edit_that_is_no_text_is_refused() -> None:
    session = _one(lambda t: image_file(t, 1))
    message = session.messages[1]
    for after in (None, {"type": "image", "source": {"type": "url", "url": "http://x"}}):
        with pytest.raises(StoreError, match="puts no words in the place of an image"):
            edited_lines.changes(session, [Edit(message.id, message.parts[0].id, after, "x")], "p/s.jsonl")


@pytest.mark.parametrize(
    "attachment",
    [
        {"type": "file", "content": {"type": "text", "file": {"content": "hello"}}},
        {"type": "file", "content": {"type": "image", "file": {"base64": "AAAA"}}},
        {"type": "file", "content": {"type": "image"}},
        {"type": "file", "content": {"type": "pdf", "file": {"base64": "", "filePath": "/a.pdf"}}},
        {"type": "file", "content": {"type": "notebook", "file": {"cells": [None, {"outputs": [{"text": "x"}]}]}}},
        {"type": "queued_command", "prompt": [None, {"type": "image"}], "commandMode": "task-notification"},
        {"type": "queued_command", "prompt": [document()], "origin": {"kind": "coordinator"}},
        {"type": "queued_command", "prompt": [document()], "origin": {"kind": "human"}, "isMeta": True},
        {"type": "queued_command", "prompt": [document()], "origin": "human"},
        {"type": "queued_command", "prompt": [pasted(1)], "renderedByBatchHead": True},
        {"type": "date", "date": "2026-11-22"},
        {"type": "file", "content": None},
        None,
        "x",
    ],
)
def test_what_holds_no_image_is_passed_over(attachment: Any) -> None:
    session = _one(lambda t: attach(t, attachment))
    assert [message.role for message in session.messages] == ["user", "assistant"]
    assert len(list(ClaudeCodeWire().build(session).blocks())) == 3


@pytest.mark.parametrize(
    ("model", "turn", "order"),
    [
        ("claude-opus-4-8", True, (2, 4, 6, 1, 3, 5)),
        ("glm-4.6", True, (2, 4, 6, 1, 3, 5)),
        ("claude-opus-4-7", True, (1, 2, 3, 4, 6, 5)),
        ("claude-opus-4-20250514", True, (1, 2, 3, 4, 6, 5)),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", True, (1, 2, 3, 4, 6, 5)),
        ("claude-3-7-sonnet-20250219", True, (1, 2, 3, 4, 6, 5)),
        ("claude-opus-5-5", None, (1, 2, 3, 4, 6, 5)),
    ],
)
def test_whether_a_file_is_sent_before_the_prompts_that_waited(
    model: str, turn: bool | None, order: tuple[int, ...]
) -> None:
    """As 2.1.332 does (`attached-queued-files` of tests/e2e/claude_code/test_wire.py): it stands at another place."""
    made = Transcript()
    made.assistant(text("a"), call(call_id="t1"))
    made.result("t1")
    for number in (1, 3):
        queued(made, pasted(number), humanTurn=turn)
        image_file(made, number + 1)
    made.user([text("and this"), pasted(5)])
    image_file(made, 6)
    made.assistant(text("done"))
    made.by(model)
    sent = [block.body for block in ClaudeCodeWire().build(read(made)).blocks() if block.type == "image"]
    assert [one["source"]["data"] for one in sent] == [pasted(n)["source"]["data"] for n in order]


def test_a_prompt_that_waited_counts_as_a_turn_and_an_attached_file_does_not() -> None:
    made = Transcript()
    made.user("look @shot1.png")
    image_file(made, 1)
    made.assistant(text("seen"))
    queued(made)
    queued(made, origin={"kind": "coordinator"})
    queued(made, isMeta=True)
    queued(made, pasted(2), origin=None)
    made.assistant(text("seen"))
    session = read(made)
    shown = [message for message in session.messages if message.parts and message.parts[0].type == "image"]
    edits = [Edit(m.id, m.parts[0].id, {"type": "text", "text": "gone"}, "take_out_media") for m in shown]
    assert list(places(session, edits)) == ["turn 1, image", "turn 3, image"]
