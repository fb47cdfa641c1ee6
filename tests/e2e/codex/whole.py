"""The shapes that no repair is due for: sound ones, and those that the client mends as it sends them."""

from __future__ import annotations

from tests.e2e.codex.pictures import data_url, png
from tests.e2e.codex.rollout import Rollout
from tests.e2e.codex.sealed import seal
from tests.e2e.codex.shapes import mended, picture, sound
from tests.e2e.codex.stuck import function, result, say, user_said


@sound
def plain(rollout: Rollout) -> None:
    rollout.turn("hello")
    say(rollout, "привет 🙂")


@sound
def all_sorts_of_calls(rollout: Rollout) -> None:
    rollout.turn("work")
    rollout.reasoning(seal())
    rollout.item(function(rollout, "call_w1"))
    rollout.item(function(rollout, "call_w2"))
    rollout.item(result("call_w2"))
    rollout.item(result("call_w1"))
    custom = {"type": "custom_tool_call", "id": rollout.id("ctc"), "name": "apply_patch", "input": "*** Begin Patch"}
    rollout.item({**custom, "call_id": "call_w3"})
    rollout.item(result("call_w3", kind="custom_tool_call_output"))
    shell = {"type": "local_shell_call", "id": rollout.id("lsh"), "status": "completed"}
    rollout.item({**shell, "call_id": "call_w4", "action": {"type": "exec", "command": ["ls"]}})
    rollout.item(result("call_w4"))
    search = {"type": "web_search_call", "id": rollout.id("ws"), "status": "completed"}
    rollout.item({**search, "action": {"type": "search", "query": "x"}})
    say(rollout)


@sound
def pictures_of_both_sides(rollout: Rollout) -> None:
    rollout.turn("look", picture(), picture(detail="high"))
    rollout.call("view", [{"type": "input_text", "text": "shot"}, picture()], name="view_image")
    say(rollout)


@sound
def compacted(rollout: Rollout) -> None:
    rollout.turn("compact")
    summary = {"type": "compaction", "id": rollout.id("cmp"), "encrypted_content": seal()}
    rollout.compacted([user_said("question 0"), summary])


@sound
def reasoning_without_a_summary(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.item({"type": "reasoning", "id": rollout.id("rs"), "summary": [], "encrypted_content": seal()})
    say(rollout)


@mended
def call_without_output(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.call(output=None)


@mended
def output_without_call(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.item(result("call_nobody"))
    say(rollout)


@mended
def two_outputs(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.call(call_id="call_twice")
    rollout.item(result("call_twice", "again"))
    say(rollout)


@mended
def picture_that_is_none(rollout: Rollout) -> None:
    rollout.turn("look", {"type": "input_image", "image_url": data_url(b"no image at all")}, picture(png()[:40]))
    rollout.call("view", [{"type": "input_image", "image_url": data_url(b"BM nothing", "image/bmp")}])
    say(rollout)


@mended
def picture_of_another_type_than_it_says(rollout: Rollout) -> None:
    rollout.turn("look", {"type": "input_image", "image_url": data_url(png(), "image/jpeg")})
    say(rollout)


@mended
def item_that_nobody_knows(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.item({"type": "frobnicate", "x": 1})
    say(rollout)


@mended
def lines_that_are_torn(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.lines.append(b'{"timestamp":"2026-11-20T09:00:00.000Z","ordinal":99,"type":"response_item","payl')
    rollout.lines.append(b"\0" * 64)
    rollout.lines.append(b"not json")
    say(rollout)


@mended
def half_a_character(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.lines.append(
        b'{"timestamp":"2026-11-20T09:00:00.000Z","ordinal":77,"type":"response_item","payload":{"type":"message",'
        b'"role":"assistant","content":[{"type":"output_text","text":"half \\ud83d of one"}]}}'
    )
    say(rollout)


@mended
def arguments_that_are_no_json(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.item(function(rollout, "call_bad", arguments="{bad"))
    rollout.item(result("call_bad"))
    say(rollout)


@mended
def nothing_in_a_message(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.item({"type": "message", "role": "assistant", "content": []})
    rollout.item({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]})
