"""What the SDKs of other doors than Anthropic's make of a stored session: the rows in which they differ from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from recoveryd.clients.opencode.editor import OpencodeEditor
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.bedrock import BedrockConverse
from recoveryd.clients.opencode.wire.copilot import CopilotChat
from recoveryd.clients.opencode.wire.form import FORK, NEW, OLD, PAGED, Form
from recoveryd.clients.opencode.wire.openrouter import OpenRouterChat
from recoveryd.clients.opencode.wire.sdk import SdkWire
from recoveryd.core import Claims, Failure, Marks, Message, Request, Session, edited
from recoveryd.providers import NO_RULES
from tests.e2e.media import data_url, png
from tests.families.table import FAMILIES
from tests.support.build import SessionBuilder, api_error
from tests.support.parts import Part, file, reasoning, text, tool
from tests.support.values import as_session

WIRES: dict[str, type[SdkWire]] = {
    "bedrock": BedrockConverse,
    "openrouter": OpenRouterChat,
    "copilot": CopilotChat,
}
EDITOR = partial(OpencodeEditor, marks=Marks("rtest", 1))
BOTH = pytest.mark.parametrize("form", [OLD, NEW], ids=["old", "new"])
PICTURE = data_url(png(4, 4))
DOCUMENT = file(data_url(b"%PDF-1.4\n", "application/pdf"), "application/pdf", "a.pdf")


def stored(name: str, *answer: Part | str) -> Session:
    """A question, and an answer of these parts as this family would have stored it."""
    session = SessionBuilder(1_790_000_000_000, seed=1)
    session.user("go")
    session.assistant(*answer)
    return as_session(FAMILIES[name].dressed(session.planted()))


def wire(name: str, form: Form) -> SdkWire:
    return WIRES[name](FAMILIES[name].provider, FAMILIES[name].model, form)


def sent(name: str, form: Form, *answer: Part | str) -> Request:
    return wire(name, form).stored(stored(name, *answer))


def types(request: Request) -> list[tuple[str, list[str]]]:
    return [(turn.role, [block.type for block in turn.blocks]) for turn in request.turns]


def bodies(request: Request, kind: str) -> list[dict[str, Any]]:
    return [dict(block.body) for block in request.blocks() if block.type == kind]


def test_bedrock_mends_names_inputs_and_blanks_by_itself() -> None:
    request = sent("bedrock", NEW, text("\n"), tool("my tool", "ls"))
    assert types(request)[1] == ("assistant", ["tool_use"])
    assert [(call["name"], call["input"]) for call in bodies(request, "tool_use")] == [
        ("mytool", {"rawInvalidInput": "ls"})
    ]
    assert [call["name"] for call in bodies(sent("bedrock", OLD, tool("my tool")), "tool_use")] == ["my tool"]


def test_an_answer_of_which_bedrock_gets_nothing_was_sent_empty_once() -> None:
    assert types(sent("bedrock", OLD, reasoning("never signed", None))) == [("user", ["text"]), ("assistant", [])]
    assert types(sent("bedrock", NEW, reasoning("never signed", None))) == [("user", ["text"])]


@BOTH
def test_texts_of_a_chat_are_one_in_front_of_the_calls(form: Form) -> None:
    for name in ("openrouter", "copilot"):
        request = sent(name, form, text("one "), tool(), text("two"))
        assert types(request)[1:] == [("assistant", ["text", "tool_use"]), ("user", ["tool_result"])]
        assert bodies(request, "text")[1]["text"] == "one two"


@BOTH
def test_images_of_a_tool_stand_beside_its_result_in_a_chat(form: Form) -> None:
    answer = tool("read", {"filePath": "/a.png"}, "Image read", attachments=[file(PICTURE)])
    for name in ("openrouter", "copilot"):
        assert types(sent(name, form, answer))[-1] == ("user", ["tool_result", "text", "image"])
    assert types(sent("bedrock", form, answer))[-1] == ("user", ["tool_result"])


def test_a_document_stops_the_client_before_copilot_alone() -> None:
    session = SessionBuilder(1_790_000_000_000, seed=1)
    session.user("look", DOCUMENT)
    failed(UNSUPPORTED.format("application/pdf"))(session)
    for name, stuck in (("copilot", 1), ("openrouter", 0), ("bedrock", 0)):
        request = wire(name, NEW).stored(as_session(FAMILIES[name].dressed(session.planted())))
        assert len(request.unsendable) == stuck
        assert len(NO_RULES.check(request, Claims())) == stuck, "whoever is behind the SDK"


def asked_of_copilot(*turns: Part, answer: Callable[[SessionBuilder], object] | None = None) -> Session:
    """A question with these files, and what came of it."""
    session = SessionBuilder(1_790_000_000_000, seed=1)
    session.user("look", *turns)
    if answer is not None:
        answer(session)
    return as_session(FAMILIES["copilot"].dressed(session.planted()))


def failed(words: str, **fields: Any) -> Callable[[SessionBuilder], object]:
    return lambda session: session.assistant(error={"name": "UnknownError", "data": {"message": words}}, **fields)


UNSUPPORTED = "AI_UnsupportedFunctionalityError: 'file part media type {}' functionality not supported."


@pytest.mark.parametrize("form", [OLD, PAGED, NEW, FORK], ids=lambda form: form.name)
@pytest.mark.parametrize(
    ("answer", "stuck"),
    [
        (lambda session: session.assistant("I can't read it"), False),
        (lambda session: session.assistant(error=api_error("text content blocks must be non-empty", 400)), False),
        (failed("The operation timed out."), False),
        (failed(UNSUPPORTED.format("application/zip")), False),
        (failed(UNSUPPORTED.format("application/pdf")), True),
        (lambda session: session.assistant(completed=False, bare=True), False),
        (lambda session: session.assistant("hi", providerID="openai", modelID="gpt-5"), False),
        (lambda session: session.assistant("so far", summary=True), False),
        (lambda session: session.assistant(tool("bash"), bare=True), False),  # `!ls`
        (None, False),
    ],
    ids=["answered", "refused", "timeout", "zip", "pdf", "open", "other-model", "summary", "shell", "nothing"],
)
def test_a_document_stops_the_client_only_where_it_failed_on_one(
    form: Form, answer: Callable[[SessionBuilder], object], stuck: bool
) -> None:
    """It sends words where the model, by its catalog, reads no documents: then nothing is to be taken out."""
    request = wire("copilot", form).build(asked_of_copilot(DOCUMENT, answer=answer))
    assert bool(request.unsendable) is stuck
    words = 'ERROR: Cannot read "a.pdf" (this model does not support pdf input). Inform the user.'
    assert request.turns[0].blocks[1].body == {"type": "text", "text": words}


def test_what_a_client_can_not_send_anew_does_not_accuse_what_it_sent() -> None:
    def more(session: SessionBuilder) -> None:
        session.assistant("I can't read it")
        session.user("and this?", file("data:application/zip;base64,AAAA", "application/zip", "a.zip"))
        failed(UNSUPPORTED.format("application/zip"))(session)

    request = wire("copilot", NEW).build(asked_of_copilot(DOCUMENT, answer=more))
    assert [stuck.reason.split()[-1] for stuck in request.unsendable] == ["application/zip"]


def test_a_document_that_the_client_fails_on_now_is_mended_whatever_was_answered() -> None:
    """Its catalog says since then that the model reads documents; or an undo put it back."""

    def more(session: SessionBuilder) -> None:
        session.assistant("I can't read it")
        session.user("go on")
        failed(UNSUPPORTED.format("application/pdf"))(session)

    session = asked_of_copilot(DOCUMENT, answer=more)
    [stuck] = wire("copilot", NEW).build(session).unsendable
    after = edited(session, EDITOR(session).mend_unsendable(stuck.part_id, stuck.fault, stuck.reason, "cancelled"))
    assert wire("copilot", NEW).build(after).unsendable == ()


@pytest.mark.parametrize(("form", "named"), [(OLD, "pdf"), (PAGED, "pdf"), (NEW, '"a.pdf"'), (FORK, '"a.pdf"')])
def test_words_stand_beside_a_result_where_the_document_would(form: Form, named: str) -> None:
    """As 1.1.53, 1.2.1 and 1.18.34 send it: before 1.14 a file of a tool has no name there."""
    session = SessionBuilder(1_790_000_000_000, seed=1)
    session.user("look")
    session.assistant(tool("read", {"filePath": "/a"}, "PDF read successfully", attachments=[DOCUMENT]))
    session.assistant("I can't read it")
    request = wire("copilot", form).build(as_session(FAMILIES["copilot"].dressed(session.planted())))
    assert request.unsendable == ()
    beside = [str(block.body.get("text")) for block in request.turns[2].blocks]
    assert beside[2] == f"ERROR: Cannot read {named} (this model does not support pdf input). Inform the user."


def test_a_picture_that_bedrock_does_not_take_stays_where_words_were_sent() -> None:
    session = SessionBuilder(1_790_000_000_000, seed=1)
    session.user("look", file("data:image/bmp;base64,Qk0=", "image/bmp", "a.bmp"))
    failed("AI_UnsupportedFunctionalityError: Unsupported image mime type: image/bmp")(session)
    one = as_session(FAMILIES["bedrock"].dressed(session.planted()))
    assert len(wire("bedrock", NEW).build(one).unsendable) == 1
    session.user("go on")
    session.assistant("I see nothing")
    request = wire("bedrock", NEW).build(as_session(FAMILIES["bedrock"].dressed(session.planted())))
    assert (request.unsendable, types(request)[0]) == ((), ("user", ["text"] * 3))


def test_equal_reasoning_goes_to_openrouter_once() -> None:
    session = SessionBuilder(1_790_000_000_000, seed=1)
    for _ in range(2):
        session.user("go")
        session.assistant(reasoning("the same"), text("done"))
    twice = as_session(FAMILIES["openrouter"].dressed(session.planted()))
    assert len(bodies(wire("openrouter", NEW).stored(twice), "thinking")) == 1
    assert len(bodies(wire("openrouter", OLD).stored(twice), "thinking")) == 2


@BOTH
@pytest.mark.parametrize("name", ["openrouter", "copilot"])
def test_thinking_that_is_set_aside_goes_from_all_that_carries_it(name: str, form: Form) -> None:
    """The reasoning goes whole; of the text and the call only what the provider alone can read."""
    session = stored(name, reasoning("a plan", "forged"), text("I run it"), tool())
    request = wire(name, form).stored(session)
    thinking = [block for block in request.blocks() if block.is_thinking]
    edits = EDITOR(session).set_aside(thinking[:1], "set_aside_thinking")
    after = edited(session, edits)
    request = wire(name, form).stored(after)
    assert not any(block.is_thinking for block in request.blocks())
    assert types(request)[1] == ("assistant", ["text", "tool_use"])
    assert [part.type for message in after.messages[1:] for part in message.parts if part.type != "step-start"] == [
        "text",
        "tool",
        "step-finish",
    ]
    assert sum(not edit.companion for edit in edits) == 1


def test_a_call_that_the_provider_is_said_to_have_run_gets_its_result_back() -> None:
    session = stored("openrouter", {**tool(), "metadata": {"providerExecuted": True}})
    request = wire("openrouter", NEW).stored(session)
    assert types(request)[1:] == [("assistant", ["tool_use"])]
    call = request.turns[1].blocks[0]
    after = edited(session, EDITOR(session).cancel_call(call, "cancelled"))
    assert types(wire("openrouter", NEW).stored(after))[1:] == [("assistant", ["tool_use"]), ("user", ["tool_result"])]


def test_a_document_of_a_tool_leaves_the_call_and_its_output() -> None:
    picture = file(PICTURE)
    session = stored("copilot", tool("read", {"filePath": "/a"}, "two files", attachments=[DOCUMENT, picture]))
    [message, *_] = session.messages[::-1]
    asked = {key: message.data[key] for key in ("providerID", "modelID")}
    words = UNSUPPORTED.format("application/pdf")
    error = {"name": "UnknownError", "data": {"message": words}}
    newer = Message("msg_z", {"role": "assistant", **asked, "time": {"created": 1_791_000_000_000}, "error": error})
    session = replace(session, messages=(*session.messages, newer))
    stuck = wire("copilot", NEW).stored(session).unsendable[0]
    after = edited(session, EDITOR(session).mend_unsendable(stuck.part_id, stuck.fault, stuck.reason, "cancelled"))
    request = wire("copilot", NEW).stored(after)
    assert request.unsendable == ()
    assert types(request)[-2:] == [("assistant", ["tool_use"]), ("user", ["tool_result", "text", "image"])]
    assert bodies(request, "tool_result")[0]["content"].startswith("two files\n[The file a.pdf was taken out: ")


@BOTH
@pytest.mark.parametrize("protocol", ["anthropic.messages", "bedrock.converse", "openai.chat"])
@pytest.mark.parametrize(
    ("model", "called", "sent_id"),
    [
        ("claude-sonnet-4-5", "", "functions_bash_0"),
        ("claude-sonnet-4-5", "arn:aws:bedrock:us-east-1:1:application-inference-profile/a", "functions.bash:0"),
        ("sonnet", "claude-sonnet-4-5", "functions_bash_0"),
        ("fast", "devstral-small", "functions"),
        ("devstral-small", "prod", "functions.bash:0"),
    ],
)
def test_ids_of_calls_are_mended_by_the_name_that_the_provider_gets(
    form: Form, protocol: str, model: str, called: str, sent_id: str
) -> None:
    """As the real clients do it, where the configuration gives a model another `id`; seen on 1.18.34."""
    failure = Failure("st", "ses", "msg", 0, provider="lab", model=model, called=called)
    (made,) = wires_of(failure, protocol, [form])
    calls = bodies(made.stored(stored("bedrock", tool(call_id="functions.bash:0"))), "tool_use")
    assert [call["id"] for call in calls] == [sent_id]
