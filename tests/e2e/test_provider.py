"""The fake provider refuses what it should, for the right reason, and nothing else."""

from __future__ import annotations

import ast
import importlib
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.media import data_url, pixels, png, sniff
from tests.e2e.provider import Provider
from tests.e2e.signing import redacted, sign, verdict
from tests.e2e.strict import Strict

Body = dict[str, Any]
ON = {"type": "enabled", "budget_tokens": 1000}


def user(*content: Any) -> Body:
    return {"role": "user", "content": [_text(c) if isinstance(c, str) else c for c in content]}


def assistant(*content: Any) -> Body:
    return {"role": "assistant", "content": [_text(c) if isinstance(c, str) else c for c in content]}


def _text(words: str) -> Body:
    return {"type": "text", "text": words}


def thought(words: str, signature: str | None = None) -> Body:
    return {"type": "thinking", "thinking": words, "signature": sign(words) if signature is None else signature}


def call(name: str = "t1", tool: str = "bash", arguments: Any = None) -> Body:
    return {"type": "tool_use", "id": name, "name": tool, "input": {} if arguments is None else arguments}


def result(name: str = "t1", content: Any = "ok") -> Body:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def image(content: bytes, media_type: str = "image/png") -> Body:
    data = data_url(content).split(",")[1]
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def request(*messages: Body, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "tools": [{"name": "bash"}], "messages": list(messages), **fields}).encode()


REFUSED: list[tuple[str, str, bytes]] = [
    ("tool_result_missing", "messages.1: `tool_use` ids were", request(user("a"), assistant(call()), user("b"))),
    (
        "tool_result_missing",
        ": t1.",
        request(user("a"), assistant(call(), "x", call("t2")), user(result(), result("t2"))),
    ),
    ("tool_result_missing", "messages.2: Did not find 1", request(user("a"), assistant(call()), user("b", result()))),
    ("tool_result_orphan", "messages.2.content.1: unexpected", request(user("a"), assistant("b"), user("c", result()))),
    ("tool_result_orphan", "messages.0.content.0: unexpected", request(user(result()))),
    ("thinking_block_order", "found `tool_use`", request(user("a"), assistant(call()), user(result()), thinking=ON)),
    (
        "thinking_block_order",
        "messages.3.content.0.type",
        request(user("a"), assistant(thought("x"), call()), user(result()), assistant(call("t2")), user(result("t2")))[
            :-1
        ]
        + b', "thinking": {"type": "enabled"}}',
    ),
    (
        "thinking_disabled_violation",
        "messages.1.content.0.type: Expected `text`, but found `thinking`",
        request(user("a"), assistant(thought("x"), call()), user(result())),
    ),
    (
        "thinking_signature_invalid",
        "Invalid `signature`",
        request(user("a"), assistant(thought("x", "y"), "b"), user("c")),
    ),
    (
        "thinking_signature_invalid",
        "messages.1.content.0: Invalid `signature`",
        request(user("a"), assistant(thought("x", sign("z")), "b"), user("c"), assistant("d"), user("e")),
    ),
    (
        "thinking_signature_invalid",
        "thinking.signature: Field required",
        request(user("a"), assistant({"type": "thinking", "thinking": "x"}, "b"), user("c")),
    ),
    ("thinking_signature_invalid", "non-whitespace", request(user("a"), assistant(thought(" "), "b"), user("c"))),
    ("thinking_block_modified", "be modified", request(user("a"), assistant(thought("x", sign("z")), "b"), user("c"))),
    ("thinking_final_block", "messages.1: The final block", request(user("a"), assistant(thought("x")), user("c"))),
    ("empty_content", "messages.1: all messages", request(user("a"), assistant(), user("c"))),
    ("empty_content", "must be non-empty", request(user("a"), assistant(""), user("c"))),
    ("empty_content", "messages.2.content.0.text: text", request(user("a"), assistant("b"), user("\n"))),
    ("tool_call_invalid", "must be unique", request(user("a"), assistant(call(), call()), user(result()))),
    ("tool_call_invalid", "tool_use.id: String", request(user("a"), assistant(call("a.b")), user(result("a.b")))),
    ("tool_call_invalid", "tool_use.name: String", request(user("a"), assistant(call(tool="a b")), user(result()))),
    ("tool_call_invalid", "tool_use.id: String", request(user("a"), assistant(call("t1\n")), user(result("t1\n")))),
    ("tool_call_invalid", "tool_use.name: String", request(user("a"), assistant(call(tool="bash\n")), user(result()))),
    ("tool_call_invalid", "valid dictionary", request(user("a"), assistant(call(arguments="ls")), user(result()))),
    ("invalid_unicode", "no low surrogate in string: line 1 column", request(user("half \ud83d"))),
    ("invalid_unicode", "not valid JSON", b'{"messages": ['),
    ("role_order", 'must use the "user" role', request(assistant("b"), user("c"))),
    ("assistant_prefill", "does not support assistant message prefill", request(user("a"), assistant("b"))),
    ("media_rejected", "exceeds 5 MB maximum: ", request(user(image(png(2, 2, padding=4_000_000))))),
    ("media_rejected", "max allowed size: 8000 pixels", request(user(image(png(2, 8001))))),
    ("media_rejected", "many-image requests: 2000", request(user(*[image(png(2001, 2)) for _ in range(21)]))),
    ("media_rejected", "appears to be a image/png image", request(user(image(png(2, 2), "image/webp")))),
    ("media_rejected", "Could not process image", request(user(image(b"nothing")))),
    (
        "media_rejected",
        "messages.2.content.0.tool_result.content.0.image",
        request(user("a"), assistant(call()), user(result(content=[image(png(2, 2), "image/gif")]))),
    ),
]

ACCEPTED = [
    request(user("a")),
    request({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, user("c")),
    request(user("a"), user("b"), assistant("c"), assistant("d"), user("e")),
    request(user("a"), assistant(call()), user(result())),
    request(user("a"), assistant(call(), call("t2")), user(result("t2"), result(), "and more")),
    request(user("a"), assistant(thought("x"), "b", call()), user(result()), thinking=ON),
    request(user("a"), assistant(thought("x"), "b"), user("c")),
    request(user("a"), assistant("b"), user("c"), thinking=ON),
    request(user("a"), assistant(thought(""), "b"), user("c"), thinking=ON),
    request(
        user("a"), assistant({"type": "redacted_thinking", "data": redacted("1")}, call()), user(result()), thinking=ON
    ),
    request(user("😀 \\ud83d"), assistant("b"), user(image(png(8000, 1)))),
    request(user("a"), assistant(call()), user(result(content=[_text("x"), image(png(2, 2))]))),
    request(user(*[image(png(2001, 2)) for _ in range(20)])),
]


@pytest.mark.parametrize(("kind", "words", "raw"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_each_rule_refuses_in_the_words_of_the_provider(kind: str, words: str, raw: bytes) -> None:
    """The first broken rule is named, with the place of the block that breaks it."""
    _, refusal = Strict().check(raw)
    assert refusal is not None
    assert refusal.kind == kind
    assert words in refusal.message


@pytest.mark.parametrize("raw", ACCEPTED, ids=range(len(ACCEPTED)))
def test_what_is_legal_is_accepted(raw: bytes) -> None:
    """No rule mistakes a legal conversation for a broken one."""
    assert Strict().check(raw)[1] is None


def test_a_last_assistant_message_is_legal_where_prefill_is() -> None:
    """Older models take it, if it does not end in white space; it may then be empty, too."""
    strict = Strict(prefill=True)
    assert strict.check(request(user("a"), assistant("b")))[1] is None
    assert strict.check(request(user("a"), assistant()))[1] is None
    refusal = strict.check(request(user("a"), assistant("b ")))[1]
    assert refusal is not None
    assert refusal.kind == "trailing_whitespace"


def test_a_signature_belongs_to_its_text() -> None:
    """The salt makes signatures differ without making them less valid."""
    assert [verdict("x", sign("x")), verdict("x", sign("x", "salt"))] == ["valid", "valid"]
    assert verdict("y", sign("x")) == "other text"
    assert [verdict("x", ""), verdict("x", None), verdict("x", sign("x")[:-1])] == ["garbage"] * 3


BOUND = [
    user("a"),
    assistant(thought("one", sign("one", "1")), "b"),
    user("c"),
    assistant(thought("two", sign("two", "2")), "d"),
    user("e"),
    assistant(thought("three", sign("three", "3")), "f"),
    user("g"),
]


def _without(*dropped: int) -> list[Body]:
    return [assistant(*m["content"][1:]) if at in dropped else m for at, m in enumerate(BOUND)]


@pytest.mark.parametrize("dropped", [(), (1,), (5,), (1, 3), (3, 5), (1, 3, 5)])
def test_bound_thinking_may_go_from_either_end(dropped: tuple[int, ...]) -> None:
    """Thinking dropped from the start, from the end or altogether leaves the rest valid."""
    strict = Strict(bound=True)
    strict.check(request(*BOUND))
    assert strict.check(request(*_without(*dropped)))[1] is None


def test_bound_thinking_may_not_go_from_the_middle() -> None:
    """What is kept must be an unbroken run of what was issued."""
    strict = Strict(bound=True)
    strict.check(request(*BOUND))
    refusal = strict.check(request(*_without(3)))[1]
    assert refusal is not None
    assert refusal.message.startswith(
        "messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound"
    )


def test_an_edit_breaks_the_bound_thinking_behind_it() -> None:
    """An edit before a thinking block invalidates it; thinking before the edit, and an edit behind all, are fine."""
    strict = Strict(bound=True)
    strict.check(request(*BOUND))
    edited = [*BOUND[:2], user("another c"), *BOUND[3:]]
    refusal = strict.check(request(*edited))[1]
    assert refusal is not None
    assert refusal.message.startswith("messages.3.content.0")
    assert strict.check(request(*BOUND[:2], user("another c"), *_without(3, 5)[3:]))[1] is None
    assert strict.check(request(*BOUND[:-1], user("another g")))[1] is None
    assert strict.check(request(*BOUND, system="another"))[1] is not None


def test_bound_thinking_may_not_come_back() -> None:
    """What was issued when thinking before it was gone belongs to a conversation without it."""
    strict = Strict(bound=True)
    strict.check(request(*BOUND[:5]))
    assert strict.check(request(*_without(1)))[1] is None
    refusal = strict.check(request(*BOUND))[1]
    assert refusal is not None
    assert refusal.message.startswith("messages.5.content.0")


def test_thinking_is_bound_to_what_can_not_be_sent_too() -> None:
    """A half character in front of it: mended, the conversation is another one."""
    strict = Strict(bound=True)
    refusal = strict.check(request(user("a \ud83d"), *BOUND[1:]))[1]
    assert refusal is not None
    assert refusal.kind == "invalid_unicode"
    refusal = strict.check(request(user("a \ufffd"), *BOUND[1:]))[1]
    assert refusal is not None
    assert refusal.message.startswith("messages.1.content.0")


@pytest.mark.parametrize(
    "name", ["strict", "content_rules", "thinking_rules", "signing", "media", "provider", "replies"]
)
def test_the_strict_provider_shares_no_code_with_what_it_judges(name: str) -> None:
    """With one implementation for both, a mistake would hide itself."""
    module = importlib.import_module(f"tests.e2e.{name}")
    assert module.__file__ is not None
    imports = [
        named
        for node in ast.walk(ast.parse(Path(module.__file__).read_text()))
        for named in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]
    assert imports
    assert [named for named in imports if named.startswith("recoveryd") or named == "tests.support.judge"] == []


def test_bound_thinking_ignores_cache_marks() -> None:
    """Where the client puts its cache marks is no part of the conversation."""
    strict = Strict(bound=True)
    strict.check(request(*BOUND))
    marked = [user({**_text("a"), "cache_control": {"type": "ephemeral"}}), *BOUND[1:]]
    assert strict.check(request(*marked))[1] is None


def _post(provider: Provider, raw: bytes) -> tuple[int, bytes]:
    call_ = urllib.request.Request(f"{provider.url}/messages", raw, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(call_, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_the_provider_answers_with_a_stream_or_an_error() -> None:
    """Accepted requests get server-sent events, refused ones the error body; both are noted."""
    with Provider() as provider:
        status, content = _post(provider, request(user("a"), thinking=ON))
        assert status == 200
        assert b"event: message_stop" in content
        assert b"signature_delta" in content
        status, content = _post(provider, request(assistant("a"), user("b")))
        assert status == 400
        assert json.loads(content)["error"]["message"] == 'messages: first message must use the "user" role'
        assert [(r.kind, r.status) for r in provider.main] == [(None, 200), ("role_order", 400)]


def test_a_title_is_always_answered() -> None:
    """A title request is told apart, answered whatever it holds, and uses up neither script nor force."""
    title = json.dumps({"model": "m", "system": "You are a title generator.", "messages": []}).encode()
    with Provider() as provider:
        provider.script.append([replies.text("scripted")])
        provider.force("forced")
        assert _post(provider, title)[0] == 200
        assert provider.main == []
        assert _post(provider, request(user("a")))[0] == 400
        assert b"scripted" in _post(provider, request(user("a")))[1]


def test_a_forced_refusal_is_raw_where_it_is_asked_to_be() -> None:
    """Status and body are as given, once for each time that was asked for."""
    with Provider() as provider:
        provider.force(raw=b"<html>", status=502, times=2)
        answers = [_post(provider, request(user("a"))) for _ in range(3)]
        assert answers[:2] == [(502, b"<html>")] * 2
        assert answers[2][0] == 200
        assert provider.main[0].refused == "<html>"


def test_pictures_tell_type_and_size() -> None:
    """The test pictures are what they claim."""
    assert (sniff(png(3, 7)), pixels(png(3, 7))) == ("image/png", (3, 7))
    assert pixels(b"GIF89a\x03\x00\x07\x00") == (3, 7)
    assert (sniff(b"\xff\xd8\xff\xe0"), pixels(b"\xff\xd8\xff\xe0")) == ("image/jpeg", None)


def test_no_id_of_the_provider_reads_like_a_status() -> None:
    """The client would try again for more than a minute before it records a refusal that names one."""
    ids = [replies.new_id("toolu_") for _ in range(600)]
    assert len(set(ids)) == 600 and not any(map(str.isdigit, "".join(ids)))
