"""Edits of a thread: each in the length of its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.codex import content
from recoveryd.clients.codex.editor import CodexEditor
from recoveryd.clients.codex.wire import CodexWire
from recoveryd.core import Block, CallLimits, Change, Edit, Edits, Json, Marks, edited
from tests.support.rollouts import THREAD, Rollout, message, threads

LIMITS = CallLimits(re.compile(r"[^a-zA-Z0-9_-]"), 128, 64, 100)
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo" + "A" * 53}

SEARCHED = {"type": "tool_search_output", "execution": "client", "status": "completed"}


@pytest.fixture
def rollout(tmp_path: Path) -> Rollout:
    made = Rollout(tmp_path / ".codex")
    made.asks()
    return made


def written(rollout: Rollout, edit: Callable[[CodexEditor, list[Block]], Edits]) -> list[Any]:
    """What is sent of a thread once `edit` is written, behind its first prompt; the same as it was in memory."""
    store = threads(rollout.home)
    session, size = store.load(THREAD), rollout.path.stat().st_size
    blocks = list(CodexWire().stored(session).blocks())[2:]
    edits = edit(CodexEditor(session, Marks("r1", 0)), blocks)
    foreseen = [block.body for block in CodexWire().stored(edited(session, edits)).blocks()]
    store.apply(store.changes(session, edits))
    found = [block.body for block in CodexWire().stored(store.load(THREAD)).blocks()]
    assert found == foreseen
    assert rollout.path.stat().st_size == size
    return found[2:]


def test_both_sides_of_a_call_get_the_same_legal_id(rollout: Rollout) -> None:
    rollout.calls("call." + "x" * 80, name="mcp.srv/tool")
    call, output = written(rollout, lambda editor, blocks: editor.mend_call(blocks[0], LIMITS))
    assert call["call_id"] == output["call_id"]
    assert re.fullmatch(r"call_[0-9a-f]{1,59}", call["call_id"])
    assert (call["name"], output["output"]) == ("mcp_srv_tool", "ok")


def test_a_namespace_is_made_legal_as_a_name_is(rollout: Rollout) -> None:
    rollout.item({"type": "function_call", "name": "x", "namespace": "a b", "arguments": "{}", "call_id": "call_1"})
    rollout.item({"type": "function_call_output", "call_id": "call_1", "output": "ok"})
    assert written(rollout, lambda editor, blocks: editor.mend_call(blocks[0], LIMITS))[0]["namespace"] == "a_b"


@pytest.mark.parametrize("in_history", [False, True])
def test_what_was_edited_before_has_no_more_room_than_its_line(rollout: Rollout, in_history: bool) -> None:
    items = [
        {"type": "custom_tool_call", "name": "x", "input": "i", "call_id": "c"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "o"},
    ]
    if in_history:
        rollout.compacted(items)
    for item in () if in_history else items:
        rollout.line("response_item", item)
    session = threads(rollout.home).load(THREAD)
    output = next(block for block in CodexWire().stored(session).blocks() if block.type.endswith("_output"))
    first = Edit(output.message_id, output.part_id, {**items[1], "output": "p"}, "mend_call")
    for now in (session, edited(session, [first])):
        assert CodexEditor(now, Marks("r1", 0)).as_message(output, "as_message") == ()


def test_where_there_is_no_room_what_no_request_needs_makes_it(rollout: Rollout) -> None:
    own = {"internal_chat_message_metadata_passthrough": {"turn_id": "01a201b8-039e-7180-80c0-0dc201f2ec18"}}
    rollout.item(
        {"type": "function_call", "id": "fc_" + "0" * 32, "name": "x", "arguments": "{}", "call_id": "", **own}
    )
    rollout.item({"type": "function_call_output", "call_id": "", "output": "ok", **own})
    call, output = written(rollout, lambda editor, blocks: editor.mend_call(blocks[0], LIMITS))
    assert call["call_id"] == output["call_id"] != ""
    assert (call["name"], output["output"]) == ("x", "ok")


def test_a_field_without_which_the_client_passes_over_the_item_is_not_emptied(rollout: Rollout) -> None:
    rollout.item({**message("assistant", "done"), "phase": "final_answer"})
    [kept] = written(rollout, lambda editor, blocks: editor.without_field(blocks[0], "content", "drop_field"))
    assert kept["content"] == [{"type": "output_text", "text": "done"}]
    [emptied] = written(rollout, lambda editor, blocks: editor.without_field(blocks[0], "phase", "drop_field"))
    assert (emptied["content"], emptied["phase"]) == (kept["content"], None)


def test_a_legal_call_is_left_as_it_is(rollout: Rollout) -> None:
    rollout.calls()
    before = rollout.bytes()
    written(rollout, lambda editor, blocks: editor.mend_call(blocks[0], LIMITS))
    assert rollout.bytes() == before


def test_an_input_that_is_too_long_says_so(rollout: Rollout) -> None:
    rollout.item({"type": "function_call", "name": "x", "arguments": "{" + " " * 200 + "}", "call_id": "call_1"})
    [call, _] = written(rollout, lambda editor, blocks: editor.mend_call(blocks[0], LIMITS))
    assert json.loads(call["arguments"]) == {"note": "[202 characters taken out]"}


def test_the_images_that_are_spoken_against_become_notes_and_no_others(rollout: Rollout) -> None:
    bad = {**IMAGE, "image_url": IMAGE["image_url"] + "AAAB"}
    rollout.item(message("user", "look", IMAGE, bad))
    rollout.item({"type": "function_call", "name": "x", "arguments": "{}", "call_id": "call_1"})
    text = {"type": "input_text", "text": "t"}
    rollout.item({"type": "function_call_output", "call_id": "call_1", "output": [IMAGE, text]})

    def take_out(editor: CodexEditor, blocks: list[Block]) -> Edits:
        taken = [editor.take_out_media(block, _ends_in_b, "bad") for block in (blocks[0], blocks[2])]
        return tuple(edit for edits in taken for edit in edits)

    named, _, output = written(rollout, take_out)
    note = {"type": "input_text", "text": "[image removed: bad]"}
    assert named["content"] == [{"type": "input_text", "text": "look"}, IMAGE, note]
    assert output["output"] == [IMAGE, text]


def _ends_in_b(source: Json) -> str | None:
    return "bad" if source["image_url"].endswith("B") else None


def test_a_note_is_as_long_as_there_is_room(rollout: Rollout) -> None:
    rollout.item(message("user", "look", {"type": "input_image", "image_url": ""}))
    [item] = written(rollout, lambda editor, blocks: editor.take_out_media(blocks[0], lambda _: "empty", "empty"))
    assert item["content"][1] == {"type": "input_text", "text": "[]"}


def test_a_field_goes_and_the_rest_stays(rollout: Rollout) -> None:
    rollout.thinks(content=[{"type": "reasoning_text", "text": "x"}])
    [item] = written(rollout, lambda editor, blocks: editor.without_field(blocks[0], "content", "x"))
    assert (item["content"], item["encrypted_content"]) == (None, "gAAAA")


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            {
                "type": "agent_message",
                "author": "/r",
                "recipient": "/x",
                "content": [{"type": "input_text", "text": "hi"}],
            },
            message("assistant", "hi"),
        ),
        (message("tool", "from a tool"), message("user", "from a tool")),
        (
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "apply_patch", "input": "*** P"},
            message("assistant", "apply_patch: *** P"),
        ),
        (
            {"type": "local_shell_call", "call_id": "call_1", "action": {"type": "exec"}, "status": "completed"},
            message("assistant", 'local_shell_call: {"type": "exec"}'),
        ),
        (
            {"type": "tool_search_call", "execution": "client", "status": "completed", "arguments": {"query": "q"}},
            message("assistant", 'tool_search_call: {"query": "q"}'),
        ),
        (
            {**SEARCHED, "tools": [{"name": "mcp__a", "tools": [{"name": "b"}, {"name": "c"}]}, {"name": "d"}, 1]},
            message("assistant", "tools: mcp__a (b, c), d"),
        ),
        ({**SEARCHED, "tools": []}, message("assistant", "tools: none")),
        ({**message("assistant", "x"), "content": [{"type": "input_text", "text": "x"}]}, message("assistant", "x")),
    ],
)
def test_a_foreign_item_goes_on_as_words(rollout: Rollout, item: dict[str, Any], said: dict[str, Any]) -> None:
    rollout.item(item)
    assert written(rollout, lambda editor, blocks: editor.as_message(blocks[0], "x")) == [said]


def in_words(editor: CodexEditor, blocks: list[Block]) -> Edits:
    return tuple(edit for block in blocks for edit in editor.as_message(block, "x"))


SOUND = {"type": "input_audio", "audio_url": "data:audio/wav;base64,UklGRg=="}


@pytest.mark.parametrize("media", [IMAGE, SOUND])
@pytest.mark.parametrize("words", [[], [{"type": "input_text", "text": "a screenshot"}]])
def test_an_output_goes_on_with_all_that_it_shows(rollout: Rollout, media: Json, words: list[Json]) -> None:
    own = {"id": "ctco_" + "0" * 36, "internal_chat_message_metadata_passthrough": {"turn_id": "0" * 36}}
    rollout.item({"type": "custom_tool_call", "call_id": "call_1", "name": "exec", "input": "image(r)"})
    rollout.item({"type": "custom_tool_call_output", "call_id": "call_1", "output": [*words, media], **own})
    said = {"type": "message", "role": "user"}
    source = {"type": "input_text", "text": "custom_tool_call_output:"}
    output = written(rollout, in_words)[1]
    assert output == {**said, "content": [source, *words, media]}


def test_an_output_that_has_just_room_for_what_it_shows_goes_on_without_its_source(rollout: Rollout) -> None:
    call = {"type": "custom_tool_call", "id": "ctc_" + "0" * 36, "name": "x", "input": "i", "call_id": "call_1"}
    rollout.line("response_item", call)
    rollout.line("response_item", {"type": "custom_tool_call_output", "call_id": "call_1", "output": [IMAGE]})
    output = written(rollout, in_words)[1]
    assert output == {"type": "message", "role": "user", "content": [IMAGE]}


@pytest.mark.parametrize("prompt", [{}, {"revised_prompt": "a red cat"}])
def test_an_image_that_the_model_made_goes_on_with_what_was_asked_for(rollout: Rollout, prompt: dict[str, str]) -> None:
    made = {"type": "image_generation_call", "id": "ig_" + "0" * 48, "status": "completed", **prompt}
    rollout.item({**made, "result": IMAGE["image_url"].partition(",")[2]})
    asked = [{"type": "input_text", "text": text} for text in ("image_generation_call:", *prompt.values())]
    assert written(rollout, in_words) == [{"type": "message", "role": "user", "content": [*asked, IMAGE]}]


def test_an_item_without_words_is_no_message(rollout: Rollout) -> None:
    sealed = {"type": "encrypted_content", "encrypted_content": "g"}
    rollout.item({"type": "agent_message", "author": "/r", "recipient": "/x", "content": [sealed]})
    assert written(rollout, lambda editor, blocks: editor.as_message(blocks[0], "x"))[0]["type"] == "agent_message"


def test_items_of_a_compaction_are_edited_in_its_line(rollout: Rollout) -> None:
    history = [message("user", "a"), {"type": "compaction", "encrypted_content": "g"}, message("user", "b", IMAGE)]
    rollout.compacted(history)

    def edit(editor: CodexEditor, blocks: list[Block]) -> Edits:
        aside = editor.set_aside([block for block in blocks if block.type == "compaction"], "x")
        return (*aside, *editor.take_out_media(blocks[-1], lambda _: "bad", "bad"))

    [last] = written(rollout, edit)
    assert last["content"][1]["type"] == "input_text"


def test_what_is_taken_out_of_a_compaction_takes_its_note_with_it(rollout: Rollout) -> None:
    history = [message("user", "a"), {"type": "compaction", "encrypted_content": "g"}, message("user", "b")]
    notes = [{"history_sequence": n} for n in range(3)]
    rollout.line("compacted", {"replacement_history": history, "replacement_history_metadata": notes})
    left = written(rollout, lambda editor, blocks: editor.set_aside(blocks[:1], "x"))
    assert left == [message("user", "b")]
    kept = json.loads(rollout.bytes().splitlines()[-1])["payload"]
    assert kept["replacement_history_metadata"] == [notes[0], notes[2]]


def test_a_field_stays_without_which_a_compaction_would_be_passed_over(rollout: Rollout) -> None:
    history = [message("user", "a"), {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"}]
    rollout.compacted(history)
    assert written(rollout, lambda editor, blocks: editor.without_field(blocks[0], "summary", "x")) == history[1:]


def test_turns_can_not_be_put_in_between(rollout: Rollout) -> None:
    rollout.answers()
    session = threads(rollout.home).load(THREAD)
    request, editor = CodexWire().stored(session), CodexEditor(session, Marks("r1", 0))
    block, turn = request.turns[-1].blocks[0], request.turns[-1]
    made = [editor.cancel_call(block, "x"), editor.own_step(block), editor.words_behind("m", None, "x")]
    made += [editor.close_turn(turn, "x"), editor.replace_text(block, "x"), editor.mend_unicode(block)]
    assert made == [()] * 6
    assert editor.user_words_before([turn], 0, "x") == ()


# What its records say


def line(payload: dict[str, Any]) -> bytes:
    return json.dumps({"timestamp": "2026", "ordinal": 1, "type": "response_item", "payload": payload}).encode()


def test_what_a_line_lost_is_told_and_what_only_names_it_is_not() -> None:
    words = line(message("user", "words"))
    assert content.sole([Change("k", words, line({"type": "other"}))])
    assert not content.sole([Change("k", words, words + b"  ")])
    assert not content.sole([Change("k", line({"type": "x"}), line({"type": "other"}))])
    assert content.sole([Change("k", b"{torn", b"{}   ")])
    assert content.said(words) == message("user", "words")
    assert content.said(b"{torn") is content.shown(b"{torn") is None
    assert content.is_part(f"line/{THREAD}/0000000000001")


def test_a_field_goes_whole_where_nothing_in_its_place_is_longer(rollout: Rollout) -> None:
    rollout.line("response_item", {"type": "function_call", "id": "x", "name": "n", "arguments": "{}", "call_id": "c"})
    item = {"type": "function_call", "name": "n", "arguments": "{}", "call_id": "c"}
    assert written(rollout, lambda editor, blocks: editor.without_field(blocks[0], "id", "drop_field"))[0] == item


def test_what_the_client_writes_anew_with_each_load_is_not_taken_out(rollout: Rollout) -> None:
    """A provider that does not know it would refuse the next one: the same repair each time."""
    told = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    rollout.item(told)
    rollout.thinks()
    assert written(rollout, lambda editor, blocks: editor.set_aside(blocks, "x")) == [told]


@pytest.mark.parametrize("model", [{"model": "gpt-6.1-sol", "comp_hash": "3000"}, {"model": "gpt-5.2"}])
def test_tools_as_an_item_stay_for_a_model_that_is_given_them_anew(rollout: Rollout, model: dict[str, str]) -> None:
    tools = {"type": "additional_tools", "role": "developer", "tools": []}
    rollout.item(tools)
    rollout.thinks()
    rollout.line("turn_context", model)
    left = written(rollout, lambda editor, blocks: editor.set_aside(blocks, "x"))
    assert left == ([tools] if "comp_hash" in model else [])
