"""What is sent of a thread: held to what the real 0.169.0 sent of each of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.codex.wire import CodexWire
from recoveryd.core import Request, StoreError
from tests.support.rollouts import THREAD, Rollout, message, threads


@pytest.fixture
def rollout(tmp_path: Path) -> Rollout:
    return Rollout(tmp_path / ".codex")


def sent(rollout: Rollout) -> Request:
    return CodexWire().stored(threads(rollout.home).load(THREAD))


def bodies(rollout: Rollout) -> list[Any]:
    """The items behind what the model is told first and the first prompt."""
    return [dict(block.body) for block in sent(rollout).blocks()][2:]


CALL = {"type": "function_call", "id": "fc_1", "name": "exec_command", "arguments": "{}", "call_id": "call_1"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
AGENT = {"type": "agent_message", "author": "/root/x", "recipient": "/root", "content": []}
SAME: tuple[dict[str, Any], ...] = (
    {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": None},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]},
    {"type": "compaction", "encrypted_content": "gAAAA"},
    {"type": "context_compaction", "encrypted_content": "gAAAA"},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBO"},
    SEARCH,
    AGENT,
    message("tool", "x"),
    {"type": "message", "role": "assistant", "content": []},
    message("user", "x", {"type": "input_image", "image_url": ""}),
    message("user", "x", {"type": "input_image", "file_id": "file-1"}),
    message("user", "x", {"type": "input_audio", "audio_url": "data:audio/wav;base64,UklGRg=="}),
    {**message("assistant", "x"), "status": "completed", "phase": "commentary"},
    {"type": "function_call_output", "output": "of no call"},
    {"type": "additional_tools", "role": "developer", "tools": []},
)
NO_EFFORT: tuple[Any, ...] = (None, {}, "low", [], {"effort": 5}, {"effort": None})
PASSED_OVER: tuple[dict[str, Any], ...] = (
    {"type": "other"},
    {"type": "item_reference", "id": "x"},
    {"type": "reasoning", "encrypted_content": "gAAAA"},
    {"type": "message", "role": "assistant", "content": "words"},
    {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "x"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": None}]},
    {**CALL, "arguments": {}},
    {"type": "agent_message", "content": []},
    {"type": "agent_message", "author": "a", "content": []},
    {**message("assistant", "x"), "phase": {}},
    {**message("assistant", "x"), "id": 5},
    {**CALL, "namespace": {}},
    {**CALL, "call_id": []},
    {"type": "reasoning", "summary": [{"type": "text", "text": "x"}]},
    {"type": "reasoning", "summary": [], "content": [{"type": "output_text", "text": "x"}]},
    {"type": "local_shell_call", "call_id": "call_1", "action": {"type": "exec"}},
    {"type": "web_search_call", "id": "ws_1", "action": "search"},
    {"type": "image_generation_call", "id": "ig_1", "result": "iVBO"},
    {"type": "tool_search_call", "call_id": "call_1", "arguments": {}},
    message("system", "x"),
    {"type": "function_call_output", "call_id": "call_none", "output": "x"},
    *({"type": "configuration_update", "reasoning": told} for told in NO_EFFORT),
    {"type": "configuration_update"},
)


@pytest.mark.parametrize("item", SAME, ids=repr)
def test_an_item_is_sent_as_it_is_stored(rollout: Rollout, item: dict[str, Any]) -> None:
    rollout.asks()
    rollout.item(item)
    assert bodies(rollout) == [item]


@pytest.mark.parametrize("item", PASSED_OVER, ids=repr)
def test_an_item_that_lacks_what_it_must_have_is_passed_over(rollout: Rollout, item: dict[str, Any]) -> None:
    rollout.asks()
    rollout.item(item)
    assert bodies(rollout) == []


def test_an_output_may_hold_what_is_encrypted_and_sounds(rollout: Rollout) -> None:
    rollout.asks()
    parts = [{"type": "encrypted_content", "encrypted_content": "g"}, {"type": "input_audio", "audio_url": "x"}]
    rollout.calls(output=parts)
    unheard = "audio content omitted because it could not be processed"
    assert bodies(rollout)[1]["output"] == [parts[0], {"type": "input_text", "text": unheard}]


def test_a_search_for_tools_without_output_gets_an_empty_one(rollout: Rollout) -> None:
    rollout.asks()
    rollout.item({"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {}})
    made = {
        "type": "tool_search_output",
        "call_id": "call_1",
        "status": "completed",
        "execution": "client",
        "tools": [],
    }
    assert bodies(rollout)[1] == made


def test_a_summary_is_sent_under_another_name_and_empty_content_of_reasoning_goes(rollout: Rollout) -> None:
    rollout.asks()
    rollout.item({"type": "compaction_summary", "encrypted_content": "gAAAA"})
    rollout.item({"type": "reasoning", "summary": [], "content": [], "encrypted_content": "g"})
    assert bodies(rollout) == [
        {"type": "compaction", "encrypted_content": "gAAAA"},
        {"type": "reasoning", "summary": [], "encrypted_content": "g"},
    ]


PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGP4z8AARwzEcQCukw/x0F8jngAAAABJRU5Er"
    "kJggg=="
)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (PNG, None),
        ("", None),
        ("foo", None),
        ("file:///tmp/a.png", None),
        ("data:image/png;base64,AAAA", "could not be processed"),
        ("data:image/png;base64,", "could not be processed"),
        ("data:image/svg+xml;base64,PHN2Zy8+", "could not be processed"),
        ("https://example.com/a.png", "remote image URLs are not supported"),
    ],
)
def test_an_image_that_the_client_can_not_use_is_sent_as_words(rollout: Rollout, url: str, said: str | None) -> None:
    rollout.asks("look", {"type": "input_image", "image_url": url})
    [prompt] = [block.body for block in sent(rollout).blocks() if block.part_id]
    kept = prompt["content"][1]
    assert kept == {"type": "input_image", "image_url": url} if said is None else said in kept["text"]


@pytest.mark.parametrize(
    "kind", ["image/jpg", "image/jpeg", "IMAGE/PNG", "application/octet-stream", "image/png;x=y", ""]
)
def test_an_image_is_sent_under_the_type_that_its_bytes_tell(rollout: Rollout, kind: str) -> None:
    image = {"type": "input_image", "image_url": PNG.replace("image/png", kind), "detail": "high"}
    rollout.asks("look", image)
    rollout.calls(output=[image, {**image, "detail": "low"}])
    prompt, _, given_back = [block.body for block in sent(rollout).blocks() if block.part_id]
    seen = {**image, "image_url": PNG}
    assert [prompt["content"][1], given_back["output"][0]] == [seen, seen]
    assert "detail 'low' is not supported" in given_back["output"][1]["text"]


def test_half_a_character_makes_the_client_pass_over_the_line(rollout: Rollout) -> None:
    rollout.asks()
    rollout.raw(b'{"type":"response_item","payload":{"type":"message","role":"assistant","content":')
    rollout.raw(rb'[{"type":"output_text","text":"\ud83d"}]}}' + b"\n")
    rollout.raw(b'{"type":"response_item","payload":{"type":"message","role":"assistant","content":')
    rollout.raw(rb'[{"type":"output_text","text":"\ud83d\ude00"}]}}' + b"\n")
    assert [body["content"][0]["text"] for body in bodies(rollout)] == ["\U0001f600"]


def test_a_call_without_output_gets_one_that_no_edit_can_touch(rollout: Rollout) -> None:
    rollout.asks()
    rollout.calls("call_1", None)
    rollout.item({"type": "custom_tool_call", "name": "x", "input": "y", "call_id": "call_2"})
    rollout.item({"type": "local_shell_call", "status": "completed", "call_id": "call_3", "action": {"type": "exec"}})
    rollout.calls("call_4")
    made = [block for block in sent(rollout).blocks() if block.unfinished]
    assert [(block.type, block.body["call_id"], block.body["output"], block.part_id) for block in made] == [
        ("function_call_output", "call_1", "aborted", ""),
        ("custom_tool_call_output", "call_2", "aborted", ""),
        ("function_call_output", "call_3", "aborted", ""),
    ]


def test_what_the_model_is_told_first_is_the_first_item_and_a_prompt_the_last(rollout: Rollout) -> None:
    rollout.healthy()
    request = CodexWire().build(threads(rollout.home).load(THREAD))
    first, last = request.turns[0].blocks[0], request.turns[-1].blocks[0]
    assert request.flat
    assert (first.body["role"], first.body["content"][0]["text"], first.part_id) == (
        "developer",
        "You are a coding agent.",
        "",
    )
    assert (last.body["role"], last.part_id) == ("user", "")
    assert [turn.role for turn in request.turns] == [
        "developer",
        "user",
        "assistant",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert request.at(2, 5) == request.turns[2].blocks[0]
    assert request.at(2, None) == request.turns[2].blocks[0]


def test_a_compaction_replaces_all_before_it(rollout: Rollout) -> None:
    rollout.healthy()
    rollout.line("compacted", {"message": "", "replacement_history": [message("user", "kept"), SEARCH]})
    turn = rollout.asks("next")
    assert bodies(rollout) == [SEARCH, {**message("user", "next"), "id": f"msg_{turn}"}]


KEPT = [message("user", "kept"), {"type": "compaction", "encrypted_content": "g"}]


@pytest.mark.parametrize(
    "payload",
    [
        {"replacement_history": KEPT, "replacement_history_metadata": [{}]},
        {"replacement_history": KEPT, "replacement_history_metadata": []},
    ],
)
def test_a_compaction_with_another_number_of_notes_replaces_nothing(rollout: Rollout, payload: dict[str, Any]) -> None:
    rollout.healthy()
    before = bodies(rollout)
    rollout.line("compacted", {"message": "", **payload})
    assert bodies(rollout) == before
    assert before


@pytest.mark.parametrize(
    "payload",
    [
        {"replacement_history": [*KEPT, {"type": "message", "role": "user"}]},
        {"replacement_history": [*KEPT, None]},
        {"replacement_history": [*KEPT, {"id": "without a type"}]},
        {"replacement_history": [{"type": "compaction"}]},
        {"replacement_history": "no list"},
    ],
)
def test_a_compaction_of_an_unknown_form_is_left_alone_unless_another_follows(
    rollout: Rollout, payload: dict[str, Any]
) -> None:
    rollout.healthy()
    rollout.line("compacted", {"message": "", **payload})
    with pytest.raises(StoreError, match="has a compaction of an unknown form"):
        bodies(rollout)
    rollout.compacted(KEPT)
    assert bodies(rollout) == KEPT[1:]


def test_an_item_of_a_compaction_is_sent_whatever_its_type_and_role(rollout: Rollout) -> None:
    notes: dict[str, Any] = {"replacement_history_metadata": [None, {}]}
    told = message("system", "x")
    rollout.line("compacted", {"replacement_history": [{"type": "of a later client", "x": 1}, told], **notes})
    request = CodexWire().stored(threads(rollout.home).load(THREAD))
    assert [block.body for block in request.blocks()][1:] == [{"type": "other"}, told]


def test_what_the_model_is_told_first_is_sent_once_where_it_is_stored_as_an_item(rollout: Rollout) -> None:
    """As 0.169.0 did with gpt-6.1-sol, then gpt-5.2, then gpt-6.1-sol again: else each place in an error is one off."""

    def first_two() -> list[str]:
        return [block.type for block in sent(rollout).blocks()][:2]

    tools = {"type": "additional_tools", "role": "developer", "tools": []}
    rollout.item(tools)
    rollout.item(
        message("developer", "You are an agent.")
    )  # another than the first line's, behind a switch's compaction
    rollout.healthy()
    assert first_two() == ["additional_tools", "message"]
    rollout.item(message("developer", "<model_switch>\nThe user was using another model."))
    assert first_two() == ["message", "additional_tools"]
    rollout.item(tools)
    rollout.item(message("developer", "<model_instructions>"))
    assert first_two() == ["additional_tools", "message"]


def test_tools_stand_before_it_where_a_model_that_takes_them_as_an_item_goes_on_without_one(rollout: Rollout) -> None:
    """As 0.169.0 did with gpt-5.2, then gpt-6.1-sol, then gpt-5.2 again."""
    rollout.healthy()
    alone = bodies(rollout)
    rollout.item(message("developer", "<model_switch>\nThe user was using another model."))
    rollout.line("turn_context", {"model": "gpt-6.1-sol", "comp_hash": "3000"})
    first, told, *rest = [dict(block.body) for block in sent(rollout).blocks()]
    assert first == {"type": "additional_tools", "role": "developer", "tools": []}
    assert told["content"][0]["text"] == "You are a coding agent."
    assert rest[1 : 1 + len(alone)] == alone
    rollout.line("turn_context", {"model": "gpt-5.2"})
    assert [block.type for block in sent(rollout).blocks()] == ["message", *(one["type"] for one in rest)]


def test_tools_that_change_in_a_thread_do_not_bring_back_what_was_told_first(rollout: Rollout) -> None:
    """As 0.169.0 did with gpt-6.1-sol once a feature was turned off: each place in an error was two off."""
    tools = {"type": "additional_tools", "role": "developer", "tools": []}
    rollout.item(tools)
    rollout.item(message("developer", "You are an agent."))
    rollout.healthy()
    rollout.item(message("developer", "This is an incremental tools update."))
    rollout.item(tools)
    rollout.healthy()
    types = [block.type for block in sent(rollout).blocks()]
    assert types[:3] == ["additional_tools", "message", "message"] and types.count("additional_tools") == 2


TOLD = {"type": "configuration_update", "reasoning": {"effort": "low"}}


def test_a_configuration_is_sent_to_the_model_that_was_told_it(rollout: Rollout) -> None:
    """As 0.169.0 did with gpt-6.1-sol of a provider named "OpenAI", then with gpt-5.6-sol, which is told none."""

    def told() -> int:
        return [dict(block.body) for block in sent(rollout).blocks()].count(TOLD)

    rollout.line("turn_context", {"model": "gpt-6.1-sol"})
    rollout.item(TOLD)
    rollout.line("turn_context", {"model": "gpt-6.1-sol"})
    assert told() == 1
    rollout.line("turn_context", {"model": "gpt-5.6-sol"})
    assert told() == 0
    rollout.line("turn_context", {"model": "gpt-6.1-terra"})
    rollout.item(TOLD)
    assert told() == 2


def test_a_compaction_of_an_older_client_leaves_the_words_of_the_user_and_a_summary(rollout: Rollout) -> None:
    turn = rollout.asks("look", {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="})
    rollout.calls()
    rollout.item(message("user", "<environment_context>"))
    rollout.answers()
    rollout.line("compacted", {"message": "in short"})
    asked = {**message("user", "look"), "id": f"msg_{turn}"}
    assert bodies(rollout) == [message("user", "in short")]
    request = CodexWire().stored(threads(rollout.home).load(THREAD))
    assert [block.body for block in request.blocks()][1] == asked
    rollout.line("compacted", {"message": ""})
    assert bodies(rollout)[-1] == message("user", "(no summary available)")


def test_turns_that_were_rolled_back_are_not_sent(rollout: Rollout) -> None:
    rollout.healthy()
    rollout.asks("a mistake")
    rollout.calls("call_9")
    rollout.event("thread_rolled_back", num_turns=1)
    types = [body["type"] for body in bodies(rollout)]
    assert types == ["reasoning", "function_call", "function_call_output", "message"]
