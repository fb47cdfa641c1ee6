"""The shapes that are refused for good: those of public threads, and what else follows from the API's rules."""

from __future__ import annotations

from tests.e2e.codex.pictures import data_url, png
from tests.e2e.codex.rollout import MODEL, Item, Rollout
from tests.e2e.codex.sealed import OTHER, seal
from tests.e2e.codex.shapes import (
    ALIEN,
    REFUSED_PICTURE,
    Gateway,
    again,
    detail,
    from_nginx,
    from_zod,
    in_numbers,
    picture,
    sound_turns,
    stuck,
)
from tests.e2e.codex.strict import Strict

RAW = [{"type": "reasoning_text", "text": "what a local model thought"}]


def function(rollout: Rollout, call_id: str, **fields: object) -> Item:
    """A call of a function with the fields of another provider."""
    call = {"type": "function_call", "id": rollout.id("fc"), "name": "exec_command", "arguments": '{"cmd":"ls"}'}
    return {**call, "call_id": call_id, **fields}


def result(call_id: str, output: object = "one two", kind: str = "function_call_output") -> Item:
    """The output of a call."""
    return {"type": kind, "call_id": call_id, "output": output}


def say(rollout: Rollout, text: str = "done") -> None:
    """The model's words at the end of a turn."""
    rollout.answer(text)


# Reasoning that is encrypted


@stuck("reasoning_item")
def reasoning_garbled(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.reasoning(ALIEN)
    say(rollout)


@stuck("reasoning_item")
def reasoning_of_another_organization(rollout: Rollout) -> None:
    for number in range(3):
        rollout.turn(f"think {number}")
        rollout.reasoning(seal(OTHER))
        say(rollout)


@stuck("reasoning_item")
def reasoning_foreign_in_the_middle_of_a_turn(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.reasoning(seal())
    rollout.call("ls", "one")
    rollout.reasoning(seal(OTHER))
    rollout.call("pwd", "two")
    rollout.reasoning(seal())
    say(rollout)


@stuck("reasoning_item")
def reasoning_without_what_is_encrypted(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.item({"type": "reasoning", "id": rollout.id("rs"), "summary": [], "encrypted_content": None})
    say(rollout)
    rollout.turn("think more")
    rollout.reasoning("")
    say(rollout)


@stuck("reasoning_item")
def reasoning_that_nothing_follows(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.reasoning(seal())
    rollout.turn("again")
    rollout.reasoning(seal())
    say(rollout)


@stuck("reasoning_item", slow=True)
def reasoning_between_a_call_and_its_output(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.item(function(rollout, "call_between"))
    rollout.reasoning(seal())
    rollout.item(result("call_between"))
    say(rollout)


@stuck("reasoning_item")
def reasoning_with_text_beside_it(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.reasoning(seal(), content=RAW)
    say(rollout)


@stuck("reasoning_item", slow=True)
def reasoning_with_text_in_its_place(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.reasoning("", content=RAW)
    say(rollout)


@stuck("reasoning_item", "reasoning_item")
def reasoning_of_two_others_at_once(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.reasoning("", content=RAW)
    rollout.call()
    rollout.reasoning(seal(OTHER))
    say(rollout)
    rollout.turn("and")
    rollout.reasoning(ALIEN, content=RAW)
    rollout.turn("and then")
    say(rollout)


@stuck("reasoning_item", in_stream=True)
def reasoning_that_is_refused_in_the_stream(rollout: Rollout) -> None:
    rollout.turn("think")
    rollout.reasoning(seal(OTHER))
    say(rollout)


# A compaction


def user_said(text: str) -> Item:
    """What a compaction keeps of a person's words."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


@stuck("reasoning_item")
def compaction_garbled(rollout: Rollout) -> None:
    summary = {"type": "compaction", "id": rollout.id("cmp"), "encrypted_content": ALIEN}
    rollout.turn("compact")
    rollout.compacted([user_said("question 0"), summary])


@stuck("reasoning_item", slow=True)
def compaction_of_another_organization_without_an_id(rollout: Rollout) -> None:
    rollout.turn("compact")
    rollout.compacted([user_said("question 0"), {"type": "compaction", "encrypted_content": seal(OTHER)}])


@stuck("reasoning_item")
def reasoning_garbled_inside_a_compaction(rollout: Rollout) -> None:
    kept = {"type": "reasoning", "id": rollout.id("rs"), "summary": [], "encrypted_content": ALIEN}
    words = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "kept"}]}
    rollout.turn("compact")
    rollout.compacted([user_said("question 0"), kept, words])


@stuck("tool_call_invalid", slow=True)
def call_inside_a_compaction(rollout: Rollout) -> None:
    rollout.turn("compact")
    rollout.compacted([user_said("question 0"), function(rollout, "c" * 80, id=None), result("c" * 80)])


@stuck("media_rejected")
def picture_inside_a_compaction(rollout: Rollout) -> None:
    message = user_said("look")
    message["content"].append({"type": "input_image", "image_url": ""})
    rollout.turn("compact")
    rollout.compacted([message])


# Calls


@stuck("tool_call_invalid")
def call_with_a_long_id(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.call(call_id="call_" + "x" * 81)
    say(rollout)


@stuck("tool_call_invalid")
def call_with_an_empty_id(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.item(function(rollout, ""))
    rollout.item(result(""))
    say(rollout)


@stuck("tool_call_invalid")
def call_with_an_illegal_name(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.call(name="mcp.server/tool x")
    rollout.call(name="été")
    say(rollout)


@stuck("tool_call_invalid", slow=True)
def call_with_an_illegal_namespace(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.item(function(rollout, "call_space", namespace="mcp server"))
    rollout.item(result("call_space"))
    say(rollout)


@stuck("tool_call_invalid", slow=True)
def custom_call_with_a_long_id(rollout: Rollout) -> None:
    call_id = "toolu_" + "y" * 70
    call = {"type": "custom_tool_call", "id": rollout.id("ctc"), "name": "apply_patch", "input": "*** Begin Patch"}
    rollout.turn("go")
    rollout.item({**call, "call_id": call_id})
    rollout.item(result(call_id, kind="custom_tool_call_output"))
    say(rollout)


@stuck("tool_call_invalid", slow=True)
def shell_call_with_a_long_id(rollout: Rollout) -> None:
    action = {"type": "exec", "command": ["ls", "-l"]}
    call = {"type": "local_shell_call", "id": rollout.id("lsh"), "status": "completed", "action": action}
    rollout.turn("go")
    rollout.item({**call, "call_id": "l" * 90})
    rollout.item(result("l" * 90))
    say(rollout)


@stuck("tool_call_invalid", slow=True)
def tool_search_with_a_long_id(rollout: Rollout) -> None:
    both = {"call_id": "t" * 70, "status": "completed", "execution": "client"}
    rollout.turn("go")
    rollout.item({"type": "tool_search_call", "id": rollout.id("tsc"), "arguments": {"query": "x"}, **both})
    rollout.item({"type": "tool_search_output", "tools": [], **both})
    say(rollout)


@stuck("tool_call_invalid")
def many_calls_of_another_provider(rollout: Rollout) -> None:
    for number in range(40):
        rollout.turn(f"go {number}")
        rollout.call(call_id=f"toolu_vrtx_{number:03d}_" + "z" * 70, name=f"server.tool {number}")
        say(rollout)


@stuck("tool_call_invalid", slow=True)
def call_with_an_input_that_is_too_long(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.item(function(rollout, "call_long", arguments='{"text":"' + "a b " * 270_000 + '"}'))
    rollout.item(result("call_long"))
    say(rollout)


@stuck("tool_call_invalid")
def web_search_of_a_kind_that_is_not_known(rollout: Rollout) -> None:
    rollout.turn("search")
    rollout.item(
        {"type": "web_search_call", "id": rollout.id("ws"), "status": "completed", "action": {"type": "other"}}
    )
    say(rollout)


# Items and ids of others


@stuck("foreign_item", slow=True)
def web_search_without_an_id(rollout: Rollout) -> None:
    rollout.turn("search")
    rollout.item({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}})
    say(rollout)


@stuck("foreign_item")
def item_with_a_long_id(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.item(function(rollout, "call_a", id="fc_" + "i" * 71))
    rollout.item(result("call_a"))
    say(rollout)


@stuck("reasoning_item")
def custom_call_with_the_id_of_a_function(rollout: Rollout) -> None:
    call = {"type": "custom_tool_call", "id": rollout.id("fc"), "name": "apply_patch", "input": "*** Begin Patch"}
    rollout.turn("go")
    rollout.item({**call, "call_id": "call_b"})
    rollout.item(result("call_b", kind="custom_tool_call_output"))
    say(rollout)


@stuck("reasoning_item", slow=True)
def items_with_one_id(rollout: Rollout) -> None:
    own = rollout.id("rs")
    for number in range(2):
        rollout.turn(f"go {number}")
        rollout.reasoning(seal(), id=own)
        say(rollout)


@stuck("foreign_item", spell=from_zod)
def agent_message_with_words(rollout: Rollout) -> None:
    content = [{"type": "input_text", "text": "a message of another agent"}]
    rollout.turn("go")
    agent = {"type": "agent_message", "id": rollout.id("am"), "author": "/root/a", "recipient": "/root"}
    rollout.item({**agent, "content": content})
    say(rollout)


@stuck("foreign_item", in_stream=True, slow=True)
def agent_message_that_is_refused_in_the_stream(rollout: Rollout) -> None:
    content = [{"type": "input_text", "text": "a message of another agent"}]
    rollout.turn("go")
    rollout.item({"type": "agent_message", "author": "/root/a", "recipient": "/root", "content": content})
    say(rollout)


@stuck("foreign_item", slow=True)
def agent_message_that_is_encrypted(rollout: Rollout) -> None:
    content = [{"type": "encrypted_content", "encrypted_content": seal(OTHER)}]
    rollout.turn("go")
    agent = {"type": "agent_message", "id": rollout.id("am"), "author": "/root/a", "recipient": "/root"}
    rollout.item({**agent, "content": content})
    say(rollout)


@stuck("foreign_item", spell=from_zod, door=Gateway(unknown=frozenset({"custom_tool_call", "custom_tool_call_output"})))
def custom_calls_where_none_are_known(rollout: Rollout) -> None:
    rollout.turn("patch")
    for number in range(3):
        call = {
            "type": "custom_tool_call",
            "id": rollout.id("ctc"),
            "name": "apply_patch",
            "input": f"*** Begin {number}",
        }
        rollout.item({**call, "call_id": f"call_p{number}"})
        rollout.item(result(f"call_p{number}", f"patched {number}", "custom_tool_call_output"))
    say(rollout)


@stuck("foreign_item", spell=from_zod, door=Gateway(unknown=frozenset({"tool_search_call", "tool_search_output"})))
def tool_searches_where_none_are_known(rollout: Rollout) -> None:
    tool = {"type": "function", "name": "read", "description": "Reads.", "parameters": {"type": "object"}}
    found = {"type": "namespace", "name": "mcp__files", "description": "Tools of files.", "tools": [tool]}
    rollout.turn("search")
    for number, tools in enumerate(([found, tool], [])):
        both = {"call_id": f"call_t{number}", "status": "completed", "execution": "client"}
        rollout.item({"type": "tool_search_call", "id": rollout.id("tsc"), "arguments": {"query": "x"}, **both})
        rollout.item({"type": "tool_search_output", "tools": tools, **both})
    rollout.item(function(rollout, "call_found", name="read", namespace="mcp__files"))
    rollout.item(result("call_found"))
    say(rollout)


@stuck("foreign_item", spell=from_zod, door=Gateway(unknown=frozenset({"web_search_call"})))
def web_searches_where_none_are_known(rollout: Rollout) -> None:
    rollout.turn("look it up")
    for query in ("x", "y"):
        rollout.reasoning(seal())
        action = {"type": "search", "query": query}
        rollout.item({"type": "web_search_call", "id": rollout.id("ws"), "status": "completed", "action": action})
    say(rollout)


@stuck("foreign_item", spell=from_zod, door=Gateway(unknown=frozenset({"image_generation_call"})))
def picture_that_the_model_made_where_none_is_known(rollout: Rollout) -> None:
    made = data_url(png(4)).partition(",")[2]
    rollout.turn("paint")
    rollout.reasoning(seal())
    rollout.item({"type": "image_generation_call", "id": rollout.id("ig"), "status": "completed", "result": made})
    say(rollout)


@stuck(
    "foreign_item",
    spell=from_zod,
    door=Gateway(unknown=frozenset({"custom_tool_call", "custom_tool_call_output"}), names_pictures=True),
)
def pictures_in_custom_outputs_where_none_are_known(rollout: Rollout) -> None:
    rollout.turn("look")
    for number, words in enumerate(([{"type": "input_text", "text": "a screenshot"}], [])):
        call = {"type": "custom_tool_call", "id": rollout.id("ctc"), "name": "exec", "input": f"image({number})"}
        shown = [*words, picture(png(4 + number))]
        rollout.item({**call, "call_id": f"call_i{number}"})
        rollout.item(result(f"call_i{number}", shown, "custom_tool_call_output"))
    say(rollout)


@stuck("foreign_item")
def message_of_a_role_that_is_not_known(rollout: Rollout) -> None:
    rollout.turn("go")
    content = [{"type": "input_text", "text": "what a tool of another program said"}]
    rollout.item({"type": "message", "role": "tool", "content": content})
    say(rollout)


@stuck("foreign_item")
def answer_in_the_form_of_a_prompt(rollout: Rollout) -> None:
    rollout.turn("go")
    content = [{"type": "input_text", "text": "an answer — with “quotes” and \u2028 a line"}]
    rollout.item({"type": "message", "id": rollout.id("msg"), "role": "assistant", "content": content})


@stuck("foreign_item", slow=True)
def prompt_in_the_form_of_an_answer(rollout: Rollout) -> None:
    rollout.turn("go")
    content = [{"type": "output_text", "text": "a prompt 🙂"}]
    rollout.item({"type": "message", "id": rollout.id("msg"), "role": "user", "content": content})
    say(rollout)


@stuck("foreign_item", door=Gateway(unknown_fields=frozenset({"phase"})))
def field_that_is_not_known(rollout: Rollout) -> None:
    rollout.turn("go")
    content = [{"type": "output_text", "text": "an answer of the newest model"}]
    rollout.item({"type": "message", "role": "assistant", "phase": "final_answer", "content": content})


# Images


@stuck("media_rejected")
def picture_with_an_empty_address(rollout: Rollout) -> None:
    rollout.turn("look", picture(), {"type": "input_image", "image_url": ""})
    say(rollout)


@stuck("media_rejected", slow=True)
def picture_with_no_address(rollout: Rollout) -> None:
    rollout.turn("look", {"type": "input_image", "image_url": "file:///tmp/shot.png"}, picture())
    say(rollout)


@stuck("media_rejected")
def picture_in_an_output_with_an_empty_address(rollout: Rollout) -> None:
    shown = [{"type": "input_text", "text": "a screenshot"}, {"type": "input_image", "image_url": ""}, picture()]
    rollout.turn("look")
    rollout.call("view", shown, name="view_image")
    say(rollout)


@stuck("media_rejected")
def picture_that_is_refused_and_not_named(rollout: Rollout) -> None:
    rollout.turn("look", picture(REFUSED_PICTURE))
    say(rollout)
    rollout.turn("and this", picture())
    say(rollout)


@stuck("media_rejected", door=Strict(names_pictures=True))
def picture_that_is_named_among_several(rollout: Rollout) -> None:
    rollout.turn("look", picture(), picture(REFUSED_PICTURE), picture())
    say(rollout)
    rollout.turn("and this", picture())
    say(rollout)


@stuck("media_rejected", door=Strict(names_pictures=True))
def pictures_under_types_that_the_client_mends_and_one_that_is_named(rollout: Rollout) -> None:
    types = ("image/jpg", "application/octet-stream", "image/png;name=shot.png", "", "image/webp")
    shown = [{"type": "input_image", "image_url": data_url(png(4 + at), kind)} for at, kind in enumerate(types)]
    rollout.turn("look", *shown, picture(REFUSED_PICTURE))
    say(rollout)
    rollout.turn("look")
    rollout.call("view", [*shown, picture(detail="low")], name="view_image")
    say(rollout)


@stuck("media_rejected", door=Strict(names_pictures=True))
def picture_in_a_custom_output_that_is_named(rollout: Rollout) -> None:
    call = {"type": "custom_tool_call", "id": rollout.id("ctc"), "name": "shot", "input": "x", "call_id": "call_shot"}
    shown = [{"type": "input_text", "text": "a screenshot"}, picture(), picture(REFUSED_PICTURE)]
    rollout.turn("look")
    rollout.item(call)
    rollout.item(result("call_shot", shown, "custom_tool_call_output"))
    say(rollout)


@stuck("media_rejected", door=Strict(names_pictures=True))
def picture_that_is_named_behind_another_prompt(rollout: Rollout) -> None:
    rollout.turn("look", picture(png(5, 5)))
    rollout.turn("the server was down; and at this", picture(REFUSED_PICTURE))
    say(rollout)


@stuck("media_rejected", spell=detail)
def picture_behind_a_bad_request(rollout: Rollout) -> None:
    rollout.turn("look", picture(REFUSED_PICTURE))
    say(rollout)
    rollout.turn("look")
    rollout.call("view", [picture()], name="view_image")
    say(rollout)


def large_pictures(rollout: Rollout, many: int, side: int = 500) -> None:
    """Images of 1 MB of base64 each (750 KB), one a turn, every other one in an output."""
    for number in range(many):
        data = png(side, side, noise=number)
        if number % 2:
            rollout.turn(f"shot {number}", picture(data))
        else:
            rollout.turn(f"shot {number}")
            rollout.call("view", [picture(data)], name="view_image")
        say(rollout)


@stuck("media_rejected", door=Strict(largest=2_097_152), spell=in_numbers)
def pictures_that_are_too_large_together(rollout: Rollout) -> None:
    large_pictures(rollout, 4)


@stuck("media_rejected", door=Strict(largest=2_097_152), slow=True)
def pictures_that_are_too_large_and_nobody_says_how(rollout: Rollout) -> None:
    large_pictures(rollout, 3)


@stuck("media_rejected", door=Strict(largest=2_097_152), spell=from_nginx, slow=True)
def pictures_that_are_too_large_for_a_server_between(rollout: Rollout) -> None:
    large_pictures(rollout, 3)


@stuck("media_rejected", door=Strict(largest_images=2_200_000), slow=True)
def pictures_that_are_too_many_bytes(rollout: Rollout) -> None:
    large_pictures(rollout, 4)


@stuck("media_rejected", door=Strict(most=3))
def pictures_that_are_too_many(rollout: Rollout) -> None:
    for number in range(5):
        rollout.turn(f"shot {number}", picture(png(4, 4 + number)))
        say(rollout)


@stuck("media_rejected", door=Strict(largest=2_097_152), slow=True)
def pictures_that_the_provider_made(rollout: Rollout) -> None:
    made = data_url(png(900, 900, noise=1)).partition(",")[2]
    rollout.turn("paint")
    rollout.item({"type": "image_generation_call", "id": rollout.id("ig"), "status": "completed", "result": made})
    say(rollout)


# Several faults, and long threads


@stuck("tool_call_invalid", "reasoning_item")
def call_and_reasoning_at_once(rollout: Rollout) -> None:
    rollout.turn("go")
    rollout.reasoning(seal(OTHER))
    rollout.call(call_id="c" * 70, name="a b")
    say(rollout)


@stuck("foreign_item", "media_rejected", slow=True)
def role_and_picture_at_once(rollout: Rollout) -> None:
    rollout.turn("look", picture(REFUSED_PICTURE))
    content = [{"type": "input_text", "text": "spoken by a tool"}]
    rollout.item({"type": "message", "role": "tool", "content": content})
    rollout.item(function(rollout, "call_n", name="été"))
    rollout.item(result("call_n"))
    say(rollout)


@stuck("reasoning_item", "media_rejected")
def reasoning_and_picture_at_once(rollout: Rollout) -> None:
    rollout.turn("look", picture(REFUSED_PICTURE))
    rollout.reasoning(ALIEN)
    say(rollout)


@stuck("reasoning_item")
def words_of_all_scripts(rollout: Rollout) -> None:
    rollout.turn('читай 日本語 🙂 \u2028 “ok” \\ " \t')
    rollout.reasoning(ALIEN, "думаю 🙂 \u2029")
    rollout.call("echo 'é \\u00e9'", "É\u0000\u001b[31m red")
    say(rollout, "готово ✅")


@stuck("reasoning_item", slow=True)
def reasoning_of_another_organization_in_500_turns(rollout: Rollout) -> None:
    for number in range(500):
        rollout.turn(f"question {number} of many")
        rollout.reasoning(seal(OTHER, size=900))
        rollout.call(f"cat {number}", f"line {number}\n" * 20)
        rollout.reasoning(seal(OTHER, size=900))
        rollout.answer(f"answer {number} of many")


@stuck("tool_call_invalid", slow=True)
def calls_of_another_provider_in_500_turns(rollout: Rollout) -> None:
    sound_turns(rollout, 400)
    for number in range(100):
        rollout.turn(f"go {number}")
        rollout.call(call_id=f"toolu_bdrk_{number:03d}_" + "z" * 70, name=f"server.tool {number}")
        say(rollout)


# Models since GPT-5.6, and a thread that moves to one


again("picture-that-is-named-among-several")
again("picture-that-is-named-among-several", configured=True)
again("picture-that-is-named-behind-another-prompt")
again("picture-that-is-named-behind-another-prompt", configured=True)
again("picture-that-is-named-behind-another-prompt", begun=MODEL)
again("picture-in-a-custom-output-that-is-named")
again("picture-inside-a-compaction")
again("pictures-in-custom-outputs-where-none-are-known")
again("tool-searches-where-none-are-known")
again("agent-message-with-words")
again("agent-message-with-words", begun=MODEL)
again("field-that-is-not-known")
again("call-with-a-long-id")
again("reasoning-garbled")
