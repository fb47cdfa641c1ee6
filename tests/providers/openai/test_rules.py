"""The rules of the Responses API on the items of a request, and what its errors say that those do not tell."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from recoveryd.core import Block, Claims, Failure, Kind, RecordedError, Request, Turn, texts_of
from recoveryd.providers import classify, provider_of
from recoveryd.providers.openai.provider import OPENAI

Item = dict[str, Any]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGP4z8AARwzEcQCukw/x0F8jngAAAABJRU5ErkJggg=="
)
CUSTOM: Item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "apply_patch", "input": "x"}


def request(*items: Item) -> Request:
    """The items of an input, each with its place as the id of its part; `own`: made by the client."""
    turns = []
    for number, item in enumerate(items):
        made = bool(item.get("own"))
        body = {key: value for key, value in item.items() if key != "own"}
        by_tool = body["type"].endswith("_output")
        role = body.get("role") or ("tool" if by_tool else "assistant")
        turns.append(Turn(role, (Block(body, "m", "" if made else str(number), unfinished=made),), (("m", ""),)))
    return Request(tuple(turns), flat=True)


def user(*parts: Item, text: str = "go") -> Item:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}, *parts]}


def answer(text: str = "done") -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def reasoning(sealed: str | None = "gAAAAxyz1", **fields: Any) -> Item:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed, **fields}


def call(call_id: str = "call_1", name: str = "shell", **fields: Any) -> Item:
    return {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name, "arguments": "{}", **fields}


def output(call_id: str = "call_1", value: Any = "ok") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def image(data: bytes = PNG, mime: str = "image/png", url: str | None = None) -> Item:
    full = f"data:{mime};base64,{base64.b64encode(data).decode()}"
    return {"type": "input_image", "image_url": full if url is None else url}


def said(words: str, param: str | None = None) -> RecordedError:
    return RecordedError(texts_of({"message": json.dumps({"error": {"message": words, "param": param}})}))


def blamed(sent: Request, words: str, param: str | None = None) -> list[tuple[str, str, str]]:
    """What is violated once this error was said: kind, part and field (of images their places)."""
    refused = classify(said(words, param))
    assert refused is not None, words
    named = sent.at(*refused.position) if refused.position else None
    return found(sent, OPENAI.claims(refused, sent, named))


def found(sent: Request, claims: Claims | None = None) -> list[tuple[str, str, str]]:
    told = []
    for v in OPENAI.check(sent, claims or Claims()):
        assert v.block is not None
        content = v.block.body.get("content") or v.block.body.get("output") or ()
        places = [str(at) for at, part in enumerate(content) if any(part is source for source, _ in v.media)]
        told.append((str(v.kind), v.block.part_id, v.field or ",".join(places)))
    return told


def test_who_speaks_this_protocol_is_held_to_its_rules() -> None:
    assert provider_of(Failure("store", "thread", "turn", 0, provider="any", protocol="openai.responses")) is OPENAI
    assert provider_of(Failure("store", "thread", "turn", 0, provider="openai", protocol="openai.chat")) is None


@pytest.mark.parametrize(
    "items",
    [
        [user(), reasoning(), call(), output(), answer()],
        [user(image()), answer()],
        [user(), call("c" * 64), output("c" * 64), answer()],
        [user(), call(name="n" * 128, namespace="n" * 128), output(), answer()],
        [user(), CUSTOM, {"type": "custom_tool_call_output", "call_id": "c", "output": [image()]}],
        [user(), {"type": "agent_message", "author": "a", "recipient": "b", "content": []}],
        [user(), reasoning(None, content=[{"type": "reasoning_text", "text": "a local model"}]), answer()],
        [user(), {"type": "web_search_call", "id": "ws_1", "action": {"type": "other"}}, answer()],
    ],
)
def test_what_some_provider_takes_is_no_violation_before_an_error_says_so(items: list[Item]) -> None:
    assert found(request(*items)) == []


@pytest.mark.parametrize(
    ("item", "kind", "field"),
    [
        (call("c" * 65), "tool_call_invalid", ""),
        (call(""), "tool_call_invalid", ""),
        (call(name="mcp.srv/tool x"), "tool_call_invalid", ""),
        (call(name=""), "tool_call_invalid", ""),
        (call(name="n" * 129), "tool_call_invalid", ""),
        (call(namespace="a b"), "tool_call_invalid", ""),
        ({"type": "message", "role": "tool", "content": []}, "foreign_item", ""),
        ({**user(), "role": "assistant"}, "foreign_item", ""),
        (user(image(url="")), "media_rejected", "1"),
        (user(image(url="file:///a.png")), "media_rejected", "1"),
        (user(image(), image(b"no image", "image/png")), "media_rejected", "2"),
        (user(image(mime="image/bmp")), "media_rejected", "1"),
    ],
)
def test_what_no_provider_takes_is_found_without_an_error(item: Item, kind: str, field: str) -> None:
    pair = [output(item["call_id"])] if "call_id" in item else []
    assert (kind, "1", field) in found(request(user(), item, *pair, answer()))


@pytest.mark.parametrize("field", ["name", "namespace"])
def test_how_long_a_name_may_be_behind_a_gateway_its_error_tells(field: str) -> None:
    sent = request(user(), call(**{field: "n" * 65}), output(), call("call_2", **{field: "n" * 64}), output("call_2"))
    too_long = f"Invalid 'input[1].{field}': string too long."
    told = f"{too_long} Expected a string with maximum length 64, but got a string with length 65 instead."
    assert blamed(sent, told) == [("tool_call_invalid", "1", "")]
    assert blamed(sent, too_long) == blamed(sent, told.replace("64", "65")) == [], "none is longer, or nothing tells"


@pytest.mark.parametrize("item", [call(id="fc_" + "x" * 80), call(id="toolu_1"), {**answer(), "id": "rs_1"}])
@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ("Invalid 'input[9].id': 'encitem_1'. Expected an ID that begins with 'fc'.", True),
        ("Invalid 'input[9].id': string too long. Expected a string with maximum length 64.", True),
        ("Invalid 'input[9].call_id': string too long. Expected a string with maximum length 64.", True),
        ("The encrypted content gAAA...xyz1 could not be verified.", True),
        ("The image data you provided does not represent a valid image.", False),
        ("No tool output found for function call call_9.", False),
    ],
)
def test_the_id_of_another_provider_counts_where_the_error_speaks_of_items(
    item: Item, words: str, counts: bool
) -> None:
    """Gateways give ids of their own, and take them."""
    pair = [output(item["call_id"])] if "call_id" in item else []
    sent = request(user(), item, *pair, answer())
    assert found(sent) == []
    assert blamed(sent, words) == ([("foreign_item", "1", "id")] if counts else [])


def test_an_image_of_over_20_mb_is_none_that_each_server_refuses() -> None:
    large = image(url="data:image/png;base64," + base64.b64encode(PNG + bytes(16 * 2**20)).decode())
    sent = request(user(image(), large))
    assert found(sent) == []
    assert blamed(sent, "You uploaded an unsupported image.") == [("media_rejected", "0", "2")]
    assert blamed(sent, "No tool output found for function call call_9.") == []


def test_whether_an_image_may_be_called_a_jpg_its_error_tells() -> None:
    """As MCP servers call a JPEG; where one is refused, all are."""
    odd = image(PNG + b"1", "image/jpg"), image(PNG + b"2", "image/JPG")
    sent = request(user(odd[0], image(PNG)), answer(), call(), output(value=[odd[1]]))
    assert found(sent) == []
    assert blamed(sent, "No tool output found for function call call_9.") == []
    both, words = [("media_rejected", "0", "1"), ("media_rejected", "3", "0")], "Expected a base64-encoded data URL"
    assert blamed(sent, f"Invalid 'input[3].output[0].image_url'. {words}, but got 'image/jpg'.") == both
    assert blamed(sent, "You uploaded an unsupported image.") == both[1:], "the other was answered"
    fresh = request(*(user(one) for one in (*odd, image(PNG))))
    assert blamed(fresh, "You uploaded an unsupported image.") == [("media_rejected", part, "1") for part in "01"]
    other = f"Invalid 'input[0].content[2].image_url'. {words}."
    assert blamed(sent, other) == [("media_rejected", "0", "2")]


def test_a_call_without_output_and_an_output_without_call() -> None:
    sent = request(user(), call("call_1"), output("call_2"))
    assert found(sent) == [("tool_result_missing", "1", ""), ("tool_result_orphan", "2", "")]


ENCRYPTED = "The encrypted content gAAA...xyz1 could not be verified. Reason: Encrypted content could not be decrypted."


def test_reasoning_that_cant_be_read_is_meant_whole_and_all_of_it() -> None:
    sent = request(user(), reasoning(), call(), output(), reasoning("gAAAAother"), answer())
    assert blamed(sent, ENCRYPTED) == [("reasoning_item", "1", ""), ("reasoning_item", "4", "")]


def test_a_compaction_is_meant_only_if_it_is_named_or_nothing_else_is_left() -> None:
    compaction = {"type": "compaction", "id": "cmp_340123b7bd", "encrypted_content": "gAAAAlong_zz=="}
    sent = request(compaction, user(), reasoning(), answer())
    assert blamed(sent, ENCRYPTED) == [("reasoning_item", "2", "")]
    for words in ("gAAA...zz==", "for item cmp_34....b7bd", "for item cmp_340123b7bd"):
        assert ("reasoning_item", "0", "") in blamed(sent, f"The encrypted content {words} could not be verified.")
    left = request(compaction, user(), answer())
    assert blamed(left, "The encrypted content could not be verified.") == [("reasoning_item", "0", "")]
    agent = {
        "type": "agent_message",
        "author": "a",
        "content": [{"type": "encrypted_content", "encrypted_content": "g"}],
    }
    other = request(compaction, user(), agent, answer())
    assert blamed(other, "The encrypted content could not be verified.") == [("foreign_item", "2", "")]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("Invalid 'input[0].encrypted_content': it could not be decrypted.", True),
        ("Missing required parameter: 'input[0].encrypted_content'.", False),
        ("Invalid 'input[0].encrypted_content': empty string.", False),
        ("Missing required parameter: 'input[0].summary'.", False),
    ],
)
def test_a_compaction_is_not_meant_by_what_can_not_be_said_of_it(words: str, meant: bool) -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    found = [("reasoning_item", "0", "")] if meant else []
    assert blamed(request(compaction, user(), answer()), words) == found


def test_a_compaction_whose_type_is_not_known_is_named_and_nothing_else_is_taken_for_it() -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    found = blamed(request(compaction, user(), answer()), "input.0.type: Invalid input")
    assert found == [("reasoning_item", "0", "type")]


def test_reasoning_without_its_encrypted_content_goes_and_the_other_stays() -> None:
    sent = request(user(), reasoning(None), answer(), user(), reasoning(""), call(), output(), reasoning(), answer())
    words = "Missing required parameter: 'input[1].encrypted_content'."
    assert blamed(sent, words) == [("reasoning_item", "1", ""), ("reasoning_item", "4", "")]


def test_reasoning_that_nothing_follows_is_all_found_by_one_error() -> None:
    sent = request(user(), reasoning(), user(), reasoning(id="rs_2"), answer(), reasoning(id="rs_3"), user())
    words = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    assert blamed(sent, words) == [("reasoning_item", "1", ""), ("reasoning_item", "5", "")]


def test_reasoning_that_nothing_follows_is_not_told_as_what_can_not_be_read() -> None:
    words = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    for sent, alone in (
        (request(user(), reasoning(), user(), reasoning(id="rs_2"), answer()), {"1"}),
        (request(user(), reasoning(None), answer(), reasoning(id="rs_2"), user()), {"3"}),
    ):
        refused = classify(said(words))
        assert refused is not None
        assert OPENAI.claims(refused, sent, None).lonely == alone
        unread = classify(said("The encrypted content gAAA...xyz1 could not be verified."))
        assert unread is not None
        assert not OPENAI.claims(unread, sent, None).lonely


MADE: Item = {"type": "image_generation_call", "id": "ig_1", "result": "iVBO"}
LATER = (reasoning(), call(), output(), reasoning(), answer())


@pytest.mark.parametrize(
    ("before", "after", "loses"),
    [
        ((user(),), (), True),
        ((user(),), (user(), reasoning()), True),  # one that nothing follows, and that nobody answered
        ((user(), reasoning(), user()), (), False),  # one that nothing follows, behind which the model went on
    ],
)
def test_reasoning_that_loses_what_followed_it_is_found_and_what_had_nothing_is_not(
    before: tuple[Item, ...], after: tuple[Item, ...], *, loses: bool
) -> None:
    """Nor is any found where the provider is known to want nothing behind it."""
    at = len(before) + 1
    sent = request(*before, reasoning(), MADE, *LATER, *after, user())
    refused = classify(said(f"input.{at}.type: Invalid input"))
    assert refused is not None
    claims = OPENAI.claims(refused, sent, sent.at(at, None))
    assert found(sent, claims) == [("foreign_item", str(at), "")]
    turns = list(sent.turns)
    turns[at] = replace(turns[at], blocks=(replace(turns[at].blocks[0], body=user()),))
    left = found(replace(sent, turns=tuple(turns)), claims)
    assert left == ([("reasoning_item", str(at - 1), "")] if loses else [])


def test_reasoning_that_loses_what_followed_it_is_found_where_the_error_is_of_such() -> None:
    sent = request(user(), reasoning(), reasoning(id="rs_2"), user(), *LATER, user())
    refused = classify(said("Item 'rs_2' of type 'reasoning' was provided without its required following item."))
    assert refused is not None
    claims = OPENAI.claims(refused, sent, None)
    turns = [turn for at, turn in enumerate(sent.turns) if at != 2]
    assert found(replace(sent, turns=tuple(turns)), claims) == [("reasoning_item", "1", "")]


def test_reasoning_that_can_not_be_read_is_found_once_also_where_it_loses_what_followed_it() -> None:
    sent = request(user(), reasoning(), answer(), user())
    refused = classify(said("The encrypted content gAAA...xyz1 could not be verified."))
    assert refused is not None
    claims = OPENAI.claims(refused, sent, None)
    assert claims.followed == claims.accused == {"1"}
    assert found(request(user(), reasoning(), user()), claims) == [("reasoning_item", "1", "")]


def test_text_beside_what_is_encrypted_is_one_field() -> None:
    text = [{"type": "reasoning_text", "text": "x"}]
    sent = request(user(), reasoning(content=text), answer(), reasoning(), answer())
    words = "Invalid 'input[1].content': array too long. Expected an array with maximum length 0, but got 1 instead."
    assert blamed(sent, words) == [("reasoning_item", "1", "content")]


def test_an_id_that_came_before_is_emptied_the_second_time() -> None:
    sent = request(user(), reasoning(id="rs_1"), answer(), reasoning(id="rs_1"), answer())
    words = "Duplicate item found with id rs_1. Remove duplicate items from your input and try again."
    assert blamed(sent, words) == [("reasoning_item", "3", "id")]


def test_ids_of_another_connection_are_all_emptied() -> None:
    sent = request(user(), {**answer(), "id": "msg_1"}, call(), output())
    assert [part for _, part, field in blamed(sent, "input item ID does not belong to this connection")] == ["1", "2"]


def test_an_item_of_a_type_that_is_not_known_is_meant_with_all_of_its_type_and_their_outputs() -> None:
    agent = {"type": "agent_message", "author": "a", "recipient": "b", "content": []}
    sent = request(user(), agent, answer(), agent)
    for words, param in [
        ("input.1.type: Invalid input", None),
        ("Invalid value: 'agent_message'. Supported values are: 'apply_patch_call', and 'message'.", "input[1].type"),
        ("Invalid value: 'agent_message'. Supported values are: 'apply_patch_call', and 'message'.", "input[1]"),
    ]:
        assert blamed(sent, words, param) == [("foreign_item", "1", ""), ("foreign_item", "3", "")]
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "apply_patch", "input": "x"}
    sent = request(
        user(), custom, {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}, call(), output()
    )
    assert [part for _, part, _ in blamed(sent, "input.1.type: Invalid input")] == ["1", "2"]


def test_what_a_person_wrote_and_answers_are_never_meant_whole() -> None:
    assert blamed(request(user(), answer()), "input.0.type: Invalid input") == []


def test_a_field_that_is_not_known_is_emptied_wherever_it_is() -> None:
    sent = request(user(), {**answer(), "phase": "x"}, {**answer(), "phase": "y"}, answer())
    assert [p for _, p, field in blamed(sent, "Unknown parameter: 'input[1].phase'.") if field == "phase"] == ["1", "2"]


@pytest.mark.parametrize(
    "field", ["content", "role", "type", "name", "call_id", "arguments", "output", "content[0].type"]
)
def test_a_field_that_is_what_an_item_says_is_never_emptied(field: str) -> None:
    sent = request(user(), reasoning(), call(), output(), answer())
    assert blamed(sent, f"Unknown parameter: 'input[1].{field}'.") == []


def test_of_content_that_is_not_known_only_that_of_reasoning_is_emptied() -> None:
    sent = request(user(), reasoning(content=[{"type": "reasoning_text", "text": "hm"}]), call(), output(), answer())
    assert {(p, field) for _, p, field in blamed(sent, "Unknown parameter: 'input[1].content'.")} == {("1", "content")}


def test_a_field_of_what_an_item_holds_is_no_field_of_the_item() -> None:
    sent = request(user(), {**answer(), "status": "completed"})
    assert blamed(sent, "Unknown parameter: 'input[0].content[0].status'.") == []


def test_searches_of_a_kind_that_is_not_known_and_those_without_an_id() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}
    sent = request(user(), search, {**search, "action": {"type": "other"}}, {**search, "id": None}, answer())
    words = "Invalid value: 'other'. Supported values are: 'search', 'open_page', and 'find_in_page'."
    assert blamed(sent, words, "input[2].action.type") == [("tool_call_invalid", "2", "")]
    words = "Missing required parameter: 'input[3].id'."
    assert blamed(sent, words) == [("foreign_item", "3", "")]
    both = request(user(), {**search, "action": {"type": "other"}, "id": None}, answer())
    words = "Missing required parameter: 'input[1].id'."
    assert blamed(both, words) == [("foreign_item", "1", "")], "a new action would leave it without an id"


def test_a_search_where_none_is_known() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}
    sent = request(user(), search, {**search, "id": "ws_2"}, answer())
    assert blamed(sent, "input.1.type: Invalid input") == [("foreign_item", "1", ""), ("foreign_item", "2", "")]


def test_an_input_that_is_too_long() -> None:
    sent = request(user(), call(arguments="x" * 1_048_577), output(), answer())
    words = (
        "Invalid 'input[1].arguments': string too long. Expected a string with maximum length 1048576, but got more."
    )
    assert found(sent) == []
    assert blamed(sent, words) == [("tool_call_invalid", "1", "")]


def test_the_image_that_is_named_and_no_other() -> None:
    one, other, third = (image(PNG + end) for end in (b"1", b"2", b"3"))
    sent = request(user(one, other, third), answer(), call(), output(value=[one, other]))
    words = "Invalid 'input[0].content[2].image_url'. Expected a base64-encoded data URL, but got something else."
    assert blamed(sent, words) == [("media_rejected", "0", "2")]
    words = "The image data you provided does not represent a valid image."
    assert blamed(sent, words, "input[3].output[1].image_url") == [("media_rejected", "3", "1")]


def test_a_place_where_an_answered_image_stands_is_another_where_one_is_new() -> None:
    """Plugins add and drop messages of a request, and a place counts what was sent."""
    one, other, third = (image(PNG + end) for end in (b"1", b"2", b"3"))
    words = "Invalid 'input[{}].content[1].image_url'. Expected a base64-encoded data URL, but got something else."

    def meant(place: int, *items: Item, told: bool = True) -> list[tuple[str, str, str]]:
        return blamed(replace(request(*items), models_told=told), words.format(place))

    assert meant(0, user(one), answer(), user(other)) == [("media_rejected", "2", "1")]
    assert meant(4, user(one), answer(), user(other)) == [("media_rejected", "2", "1")]
    assert meant(0, user(one), answer(), user(other, third)) == [], "it is not known which"
    assert meant(0, user(one), answer(), user(image(url=""))) == [("media_rejected", "2", "1")], "the rules find it"
    assert meant(2, user(one), answer(), user(other, third)) == [("media_rejected", "2", "1")]
    assert meant(0, user(one), answer(), user()) == [("media_rejected", "0", "1")], "none is new"
    assert meant(0, user(one), answer(), user(other), told=False) == [("media_rejected", "0", "1")]


@pytest.mark.parametrize(("megabytes", "gone"), [(1, []), (6, [("media_rejected", "1", "")])])
def test_a_place_of_an_image_that_the_model_made_is_believed_if_it_is_heavy(
    megabytes: int, gone: list[tuple[str, str, str]]
) -> None:
    made = {"type": "image_generation_call", "id": "ig_1", "result": "A" * (megabytes << 20)}
    sent = request(user(image(PNG)), made, answer(), user(image(PNG + b"x")))
    assert blamed(sent, "input[1].result: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes") == gone


def test_an_item_that_an_error_can_not_be_of_is_not_meant_by_its_place() -> None:
    sent = request(user(), reasoning(), answer(), reasoning(None), answer())
    words = "Missing required parameter: 'input[1].encrypted_content'."
    assert blamed(sent, words) == [("reasoning_item", "3", "")], "it is not missing there"
    custom = {**CUSTOM, "type": "local_shell_call", "id": "lsh_1"}
    sent = request(user(), custom, {"type": "function_call_output", "call_id": "c", "output": "ok"}, answer())
    words = "Invalid value: 'custom_tool_call'. Supported values are: 'function_call', and 'message'."
    assert blamed(sent, words, "input[1].type") == [], "another type is not known"
    assert [part for _, part, _ in blamed(sent, "input.1.type: Invalid input")] == ["1", "2"]


@pytest.mark.parametrize(
    "place", ["[0].content[0]", "[1].content[0]", "[0].content[9]", "[9].content[1]", "[3].output[1]"]
)
def test_a_place_without_an_image_accuses_none_of_several(place: str) -> None:
    sent = request(user(image(PNG + b"1")), answer(), call(), output(value=[image(PNG + b"2")]))
    assert blamed(sent, f"Invalid 'input{place}.image_url'. Expected a base64-encoded data URL.") == []


def test_where_there_is_but_one_image_it_is_meant_whatever_place_is_named() -> None:
    words = "Invalid 'input[9].content[4].image_url'. Expected a base64-encoded data URL."
    assert blamed(request(user(image()), answer()), words) == [("media_rejected", "0", "1")]
    assert blamed(request(user(image(), image(url=""))), words) == [("media_rejected", "0", "2")], "the rules find it"


def test_an_image_that_is_not_named_is_the_one_that_the_rules_find_or_else_all() -> None:
    words = "Invalid image in your last message. Please remove it and try again."
    sent = request(user(image(), image(url="")), user(image()))
    assert blamed(sent, words) == [("media_rejected", "0", "2")]
    sent = request(call(), user(image(), image()), output(value=[image()]))
    assert blamed(sent, words) == [("media_rejected", "1", "1,2"), ("media_rejected", "2", "0")]


@pytest.mark.parametrize(
    "words",
    [
        "Unable to process image, please try again later.",
        "Unable to process image: internal error",
        "Failed to process image: vision is not enabled",
        "The image type image/png is not supported by this model.",
    ],
)
def test_no_image_goes_for_what_may_be_said_of_the_model_or_by_a_server_that_fails(words: str) -> None:
    """All went, also those that were answered, as all new ones do for what names none."""
    two = user(image(), image(PNG + b"x"))
    for sent in (request(two), request(two, answer(), user())):
        assert blamed(sent, words) == []
        assert blamed(sent, "You uploaded an unsupported image.") == [("media_rejected", "0", "1,2")]
    assert blamed(request(two), f"input[0].content[1].image_url: {words}") == [("media_rejected", "0", "1")]
    answered = replace(request(user(image()), answer(), user(image(PNG + b"x"))), models_told=True)
    assert blamed(answered, f"input[0].content[1].image_url: {words}") == [], "the only new one may be sound"


def test_the_oldest_images_go_until_the_request_is_small_enough() -> None:
    large = image(PNG + b"x" * 300_000)  # 400 KB of base64
    sent = request(*(user(large) for _ in range(10)))
    words = "unexpected status 413 Payload Too Large: (4000000 bytes > 3000000 bytes). Reduce historical images."
    assert [part for _, part, _ in blamed(sent, words)] == ["0", "1", "2"]
    words = "unexpected status 413 Payload Too Large: request body size exceeds maximum allowed size: 3145728 bytes"
    assert [part for _, part, _ in blamed(sent, words)] == ["0", "1", "2"]
    words = "unexpected status 413 Payload Too Large: <html><title>413 Request Entity Too Large</title></html>"
    assert [part for _, part, _ in blamed(sent, words)] == [str(number) for number in range(10)]


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        ("image is too large", ["1"]),  # the heaviest
        ("image is too large: the limit is 5 MB", ["1", "2"]),
        ("image dimensions must be below 4096 pixels", []),
    ],
)
def test_of_one_image_too_large_the_others_stay(words: str, gone: list[str]) -> None:
    sent = request(*(user(image(PNG + bytes(n * 2**20 * 3 // 4))) for n in (1, 7, 6)))
    assert [part for _, part, _ in blamed(sent, words)] == gone
    assert [part for _, part, _ in blamed(request(user(image())), words)] == ["0"], "there is no other"


def test_images_that_the_provider_made_count_as_well() -> None:
    made = {"type": "image_generation_call", "id": "ig_1", "result": "A" * 300_000}
    sent = request(user(), made, answer())
    words = "unexpected status 413 Payload Too Large: request too large"
    refused = classify(RecordedError(texts_of({"message": words})))
    assert refused is not None
    [violation] = OPENAI.check(sent, OPENAI.claims(refused, sent, None))
    assert violation.kind is Kind.MEDIA_REJECTED
    assert violation.media[0][0]["type"] == "image_generation_call"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("Too many images in request: 3 > 2 allowed.", "there were more than the provider takes"),
        ("unexpected status 413 Payload Too Large: too big", "the request had more bytes than the provider takes"),
        ("Invalid image in your last message.", "the provider does not take it"),
    ],
)
def test_what_is_wrong_with_an_image_is_told_as_the_error_says_it(words: str, why: str) -> None:
    sent, refused = request(*(user(image()) for _ in range(3))), classify(said(words))
    assert refused is not None
    found = OPENAI.check(sent, OPENAI.claims(refused, sent, None))
    assert {told for violation in found for _, told in violation.media} == {why}


def test_no_more_images_go_than_are_too_many() -> None:
    sent = request(*(user(image()) for _ in range(5)))
    words = "Request contains 5 images, exceeding the maximum of 3 allowed per request"
    assert [part for _, part, _ in blamed(sent, words)] == ["0", "1"]
    assert [part for _, part, _ in blamed(sent, "Too many images in request: 5 > 4 allowed.")] == ["0"]


@pytest.mark.parametrize(
    "words",
    [
        "Exceeded maximum number of images (3) allowed in the request.",
        "Too many images in request. Max is 3.",
        "too many images in the message, max allowed is 3",
        "Too many images: 5 (limit: 3)",
        "Too many images. Maximum allowed: 3",
        "Too much media: 0 document pages + 5 images > 3",
        "messages: too many images: image_count > 3",
        "Image count 5 exceeds limit 3 per request.",
        "Number of images exceeds the limit of 3",
        "At most 3 image(s) may be provided in one request.",
        "too many URL images in request (max 3)",
    ],
)
def test_the_oldest_images_go_however_the_limit_is_said(words: str) -> None:
    sent = request(*(user(image()) for _ in range(5)))
    assert [part for _, part, _ in blamed(sent, words)] == ["0", "1"]


@pytest.mark.parametrize("words", ["Too many images in request.", "The number of images exceeds 36 megapixels"])
def test_no_image_goes_where_they_are_too_many_and_by_how_many_is_not_told(words: str) -> None:
    assert blamed(request(*(user(image()) for _ in range(5))), words) == []


@pytest.mark.parametrize(
    "words",
    [
        "Invalid image in your last message.",
        "image is too large",
        "Image width and height must be larger than 10 pixels",
    ],
)
def test_images_that_an_answer_stands_behind_were_not_refused(words: str) -> None:
    """The model was sent them, and went on. Where that is so of all, another may have been asked."""
    seen = [user(image()), answer()]
    assert [part for _, part, _ in blamed(request(*seen, user(image()), user()), words)] == ["2"]
    viewed = [user(image()), call(), {**output(), "output": [image()]}]
    assert [part for _, part, _ in blamed(request(*viewed), words)] == ["2"]
    assert [part for _, part, _ in blamed(request(*seen, user()), words)] == ["0"]
    drawn = {"type": "image_generation_call", "id": "ig_1", "result": "iVBORw0KGgo=" * 99}
    assert [part for _, part, _ in blamed(request(*seen, user(), reasoning(), drawn, answer(), user()), words)] == ["4"]


def test_no_image_goes_where_all_of_them_are_fewer_bytes_than_are_too_many() -> None:
    """The words alone are too long: without its images it would be refused alike."""
    words = "unexpected status 413 Payload Too Large: request body size exceeds maximum allowed size: 1048576 bytes"
    small = [user(image()) for _ in range(3)]
    assert blamed(request(*small, user(text="x" * 1_100_000)), words) == []
    large = user(image(PNG + bytes(900_000)))
    assert [part for _, part, _ in blamed(request(large, *small, user(text="x" * 300_000)), words)] == ["0"]


def test_a_message_of_another_agent_that_cant_be_read_leaves_reasoning_alone() -> None:
    content = [{"type": "encrypted_content", "encrypted_content": "gAAAAagents=="}]
    sent = request(user(), {"type": "agent_message", "author": "a", "content": content}, reasoning(), answer())
    assert blamed(sent, "The encrypted content gAAA...ts== could not be verified.") == [("foreign_item", "1", "")]


def test_what_is_said_in_the_stream_names_no_place_and_means_the_type() -> None:
    agent = {"type": "agent_message", "author": "a", "content": [{"type": "input_text", "text": "hi"}]}
    sent = request(user(), call(), output(), agent, answer())
    words = "stream disconnected before completion: Invalid value: 'agent_message'. Supported values are: "
    assert blamed(sent, words + "'apply_patch_call', and 'message'.") == [("foreign_item", "3", "")]
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "other"}}
    words = "Invalid value: 'other'. Supported values are: 'search', 'open_page', and 'find_in_page'."
    assert blamed(request(user(), search, answer()), words) == [("tool_call_invalid", "1", "")]


def test_a_place_that_holds_what_every_provider_takes_is_not_believed() -> None:
    """A client of another version counts otherwise: no call is turned into words for that."""
    sent = request(user(), call(), output(), answer())
    assert blamed(sent, "input.1.type: Invalid input") == []
    assert blamed(sent, "Missing required parameter: 'input[1].id'.") == []


def test_what_a_user_recorded_is_no_fault() -> None:
    recording = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    assert OPENAI.check(request(user(recording), answer(), user()), Claims()) == []
