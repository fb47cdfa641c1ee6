"""What each stored part becomes on the wire: the table of what the real clients were seen to send, row by row."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from recoveryd.clients.opencode.protocols import protocol_of
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.anthropic import AnthropicByVertex, AnthropicMessages
from recoveryd.clients.opencode.wire.form import FORK, NEW, OLD, PAGED, Form
from recoveryd.clients.opencode.wire.prompt import ENVIRONMENT
from recoveryd.core.model import Failure, RecordedError, Session
from recoveryd.core.request import Request, Turn
from tests.e2e.media import data_url, png
from tests.e2e.signing import redacted
from tests.support.build import SessionBuilder
from tests.support.parts import (
    Part,
    aborted,
    api_error,
    compaction,
    file,
    raw,
    reasoning,
    step_start,
    subtask,
    text,
    tool,
)
from tests.support.values import as_session, at_times

WIRE = AnthropicMessages("anthropic", "claude-sonnet-4-5")
PICTURE = data_url(png(4, 4))
PDF = data_url(b"%PDF-1.4\n", "application/pdf")
BOTH = pytest.mark.parametrize("form", [OLD, NEW], ids=["old", "new"])
Shown = list[tuple[str, list[Any]]]


def builder() -> SessionBuilder:
    return SessionBuilder(1_790_000_000_000, seed=1)


def sent(session: Session, form: Form = OLD, *, prompted: bool = False) -> Request:
    wire = replace(WIRE, form=form)
    return wire.build(session) if prompted else wire.stored(session)


def shown(request: Request) -> Shown:
    return [(turn.role, [_short(dict(block.body)) for block in turn.blocks]) for turn in request.turns]


def _short(body: dict[str, Any]) -> Any:
    """A text is its words; a call its id; a result its id and content; thinking its words in a pair."""
    match body["type"]:
        case "text":
            return body["text"]
        case "tool_use":
            return {"call": body["id"]}
        case "tool_result":
            return {"result": body["tool_use_id"], "is": body["content"], "error": body.get("is_error", False)}
        case "thinking":
            return ("thinking", body["thinking"])
    return body


def of_answer(*parts: str | Part, form: Form = OLD, **fields: Any) -> Shown:
    """What an answer of these parts to "go" becomes, without the question."""
    made = builder()
    made.user("go")
    made.assistant(*parts, **fields)
    found = shown(sent(as_session(made.planted()), form))
    assert found[0] == ("user", ["go"] if form.bare_prompts else ["go", ENVIRONMENT])
    return found[1:]


def of_question(*parts: str | Part, form: Form = OLD) -> Shown:
    made = builder()
    made.user(*parts)
    return shown(sent(as_session(made.planted()), form))


def stuck_on(*parts: str | Part, form: Form = OLD, **fields: Any) -> list[str]:
    made = builder()
    made.user("go")
    made.assistant(*parts, **fields)
    return [part.fault for part in sent(as_session(made.planted()), form).unsendable]


def done(name: str = "c1", output: Any = "done\n") -> dict[str, Any]:
    return {"result": name, "is": output, "error": False}


@BOTH
def test_an_answer_is_its_texts_and_the_prompt_comes_last(form: Form) -> None:
    made = builder()
    made.user("one", "two")
    made.assistant("three")
    wire = sent(as_session(made.planted()), form, prompted=True)
    assert shown(wire) == [("user", ["one", "two"]), ("assistant", ["three"]), ("user", ["continue"])]
    assert wire.at(0, 1) is wire.turns[0].blocks[1]
    assert wire.at(1, None) is wire.turns[1].blocks[0]
    assert wire.at(9, 0) is wire.at(0, 9) is wire.at(-1, 0) is None


@BOTH
def test_each_step_is_a_message_and_a_message_of_results(form: Form) -> None:
    parts = (reasoning("hm"), tool(call_id="c1"), step_start(), text("seen"), tool(call_id="c2"))
    assert of_answer(*parts, form=form) == [
        ("assistant", [("thinking", "hm"), {"call": "c1"}]),
        ("user", [done("c1")]),
        ("assistant", ["seen", {"call": "c2"}]),
        ("user", [done("c2")]),
    ]


@BOTH
def test_neighbours_of_a_role_are_one_message_and_remember_what_they_are_made_of(form: Form) -> None:
    made = builder()
    first, second = made.user("one"), made.user("two")
    wire = sent(as_session(made.planted()), form)
    assert shown(wire) == [("user", ["one", "two"])]
    assert [message for message, _ in wire.turns[0].origins] == [first["id"], second["id"]]
    assert [block.message_id for block in wire.turns[0].blocks] == [first["id"], second["id"]]


@BOTH
def test_a_failed_message_is_left_out_with_all_that_it_holds(form: Form) -> None:
    assert of_answer("half a word", error=api_error(), form=form) == []


@BOTH
def test_an_aborted_message_is_sent_if_it_got_somewhere(form: Form) -> None:
    assert of_answer("half a word", error=aborted(), form=form, bare=True) == [("assistant", ["half a word"])]
    assert of_answer(reasoning("hm"), error=aborted(), form=form) == []
    assert of_answer(step_start(), error=aborted(), form=form, bare=True) == []


def test_an_abort_with_an_empty_text_sends_what_else_it_has() -> None:
    assert of_answer(reasoning("hm"), text(""), error=aborted()) == [("assistant", [("thinking", "hm")])]


@BOTH
def test_a_message_without_parts_is_left_out(form: Form) -> None:
    assert of_answer(form=form, completed=False) == []
    assert of_question(form=form) == []


@BOTH
def test_behind_an_answered_compaction_nothing_older_is_sent(form: Form) -> None:
    made = builder()
    made.user("long ago")
    made.assistant("\n")
    asked = made.user(compaction())
    made.assistant("all in short", parentID=asked["id"], summary=True)
    made.user("and now?")
    wire = sent(as_session(made.planted()), form)
    assert shown(wire) == [
        ("user", ["What did we do so far?"]),
        ("assistant", ["all in short"]),
        ("user", ["and now?"]),
    ]


@BOTH
def test_a_part_that_is_no_json_stops_the_new_client_also_behind_a_compaction(form: Form) -> None:
    """It reads the whole session, and then leaves out what it does not send."""
    made = builder()
    made.user("long ago")
    bad = made.assistant(raw(b"{"), "fine")
    asked = made.user(compaction())
    made.assistant("all in short", parentID=asked["id"], summary=True)
    stuck = [part.message_id for part in sent(as_session(made.planted()), form).unsendable]
    assert stuck == ([bad["id"]] if form is NEW else [])


@BOTH
def test_a_compaction_without_its_summary_leaves_all_before_it(form: Form) -> None:
    made = builder()
    made.user("long ago")
    made.user(compaction())
    assert shown(sent(as_session(made.planted()), form)) == [("user", ["long ago", "What did we do so far?"])]


@BOTH
def test_what_is_reverted_is_not_sent(form: Form) -> None:
    made = builder()
    made.user("go")
    made.assistant("done")
    wrong = made.user("wrong")
    made.assistant("wrong too")
    made.session["revert"] = {"messageID": wrong["id"]}
    assert shown(sent(as_session(made.planted()), form)) == [("user", ["go"]), ("assistant", ["done"])]


@pytest.mark.parametrize(
    ("form", "kept"), [(OLD, []), (PAGED, ["looking"]), (NEW, ["looking"])], ids=["old", "paged", "new"]
)
def test_of_a_message_that_is_reverted_from_a_part_on_the_parts_before_it_are_sent(form: Form, kept: list[str]) -> None:
    made = builder()
    made.user("go")
    answer = made.assistant(text("looking"), tool(), text("wrong"))
    cut = next(part for part in made.parts[answer["id"]] if part["type"] == "tool")
    made.session["revert"] = {"messageID": answer["id"], "partID": cut["id"]}
    assert shown(sent(as_session(made.planted()), form)) == [("user", ["go"]), *[("assistant", kept)][: len(kept)]]


@BOTH
def test_an_output_that_was_compacted_is_a_note(form: Form) -> None:
    cleared = tool(call_id="c1", time={"start": 1, "end": 2, "compacted": 3}, attachments=[file(PICTURE)])
    assert of_answer(cleared, form=form)[1] == ("user", [done(output="[Old tool result content cleared]")])


@BOTH
def test_an_ignored_text_is_sent_of_the_assistant_alone(form: Form) -> None:
    assert of_question(text("hidden", ignored=True), "seen", form=form) == [("user", ["seen"])]
    assert of_answer(text("hidden", ignored=True), form=form, bare=True) == [("assistant", ["hidden"])]
    assert of_answer(text("hidden", ignored=True), form=FORK, bare=True) == []
    assert of_answer(text("hidden", ignored=True), "seen", form=FORK, bare=True) == [("assistant", ["seen"])]


def test_what_kilo_shows_while_it_prepares_a_turn_is_not_sent() -> None:
    """Kilo leaves it where it is ended meanwhile. Its metadata is nothing that an SDK takes."""
    shown_meanwhile = text("Initializing snapshot…", synthetic=True, metadata={"kilocode.lifecycle": "transient"})
    for form in (FORK, NEW):
        assert of_answer(shown_meanwhile, form=form, bare=True) == []
        assert of_answer(shown_meanwhile, "done", form=form) == [("assistant", ["done"])]


@pytest.mark.parametrize(("form", "files"), [(OLD, 1), (PAGED, 1), (NEW, 1), (FORK, 0)])
def test_a_file_that_kilo_gives_its_user_is_not_sent(form: Form, files: int) -> None:
    made = tool("send_file", output="delivered", attachments=[file(PICTURE)])
    [_, (_, [result])] = of_answer(made, form=form)[:2]
    assert str(result).count("image/png") == files
    assert str(of_answer({**made, "tool": "read"}, form=FORK)).count("image/png") == 1


def test_of_one_millisecond_1_2_sends_the_later_row_first() -> None:
    """It sorts by time alone, downwards, and turns that round: `!cmd` writes two rows at once now and then."""
    made = builder()
    made.user("go")
    made.assistant("fine")
    made.user("The following tool was executed by the user")
    made.assistant(tool(call_id="c1"))
    made.user("next")
    session = as_session(made.planted())
    times = [1, 2, 3, 3, 5]
    session = at_times(session, times)
    roles = {form.name: [turn.role for turn in sent(session, form).turns] for form in (PAGED, NEW)}
    assert roles == {"paged": ["user", "assistant", "user"], "new": ["user", "assistant"] * 2 + ["user"]}
    assert [turn.role for turn in sent(as_session(made.planted()), PAGED).turns] == roles["new"], "no times are known"


@pytest.mark.parametrize("rows", [*permutations((1, 2, 3))])
def test_of_one_millisecond_1_2_goes_by_the_rows_and_other_versions_by_the_ids(rows: tuple[int, ...]) -> None:
    made = builder()
    for number in (1, 2, 3):
        made.user(f"prompt {number}")
        made.assistant(f"answer {number}")
    asked = as_session(made.planted()).messages[::2]
    tied = tuple(replace(m, at=5, row=row) for m, row in zip(asked, rows, strict=True))
    session = replace(as_session(made.planted()), messages=tied)
    words = {
        form.name: [block.body["text"] for turn in sent(session, form).turns for block in turn.blocks]
        for form in (OLD, PAGED, NEW)
    }
    by_id = ["prompt 1", "prompt 2", "prompt 3"]
    by_row = [words for _, words in sorted(zip(rows, by_id, strict=True), reverse=True)]
    assert words == {"old": by_id, "paged": by_row, "new": by_id}
    indexed = replace(session, messages=tuple(replace(message, row=0) for message in tied))
    told = [block.body["text"] for turn in sent(indexed, PAGED).turns for block in turn.blocks]
    assert told == by_id, "an index has them so (1.2.27, 1.3.2)"


def test_kilo_puts_a_text_behind_each_prompt_that_counts_in_a_place() -> None:
    made = builder()
    made.user("look", file(PICTURE))
    made.assistant(bare=True)  # it was stopped before a word
    made.user("no: at these", file(PDF, "application/pdf", "a.pdf"), file(PDF, "application/pdf", "b.pdf"))
    made.user("mine", text("\n<environment_details>\nold", synthetic=True))
    session = as_session(made.planted())
    [(_, plain)] = shown(sent(session, NEW))
    [(_, told)] = shown(sent(session, FORK))
    assert [at for at, block in enumerate(told) if block == ENVIRONMENT] == [2, 6]
    assert [block for block in told if block != ENVIRONMENT] == plain
    assert sent(session, FORK).turns[0].blocks[2].part_id == ""


@BOTH
def test_files_of_the_user_are_images_and_documents(form: Form) -> None:
    [(_, [words, image, document])] = of_question(
        "look", file(PICTURE), file(PDF, "application/pdf", "a.pdf"), form=form
    )
    assert words == "look"
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": PICTURE.split(",")[1]}
    assert (document["type"], document["title"]) == ("document", "a.pdf")


@pytest.mark.parametrize("form", [OLD, PAGED, NEW], ids=lambda form: form.name)
@pytest.mark.parametrize(
    "url",
    [PICTURE.replace("AAA", "AA\nA"), f"{PICTURE}\r\n", f" {PICTURE} ", PICTURE.replace(";base64,", ";\nbase64,\t")],
    ids=["lines", "end", "blanks", "head"],
)
def test_an_image_in_lines_is_sent_in_one_by_a_prompt_and_as_it_is_in_a_result(form: Form, url: str) -> None:
    """Measured on 1.1.53, 1.2.1 and 1.18.34: the address of a prompt's file is read by `new URL`."""
    assert url != PICTURE
    [(_, [image])] = of_question(file(url), form=form)
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": PICTURE.split(",")[1]}
    [_, (_, [result])] = of_answer(tool(call_id="c1", output="seen", attachments=[file(url)]), form=form)
    within = [item["source"]["data"] for item in result["is"] if item["type"] == "image"]
    assert within == ([url.partition(",")[2]] if url.startswith("data:") else [])


@BOTH
def test_a_text_file_and_a_folder_are_not_sent_as_such(form: Form) -> None:
    folder = file("file:///b", "application/x-directory", "b")
    assert of_question("look", file("file:///a.txt", "text/plain"), folder, form=form) == [("user", ["look"])]


@BOTH
def test_a_type_that_the_model_does_not_take_is_said_in_words(form: Form) -> None:
    [(_, [words])] = of_question(file("data:audio/mp3;base64,AAAA", "audio/mp3", "a.mp3"), form=form)
    assert words.startswith('ERROR: Cannot read "a.mp3"')


@BOTH
def test_attachments_stand_in_the_result(form: Form) -> None:
    [_, (_, [result])] = of_answer(tool(call_id="c1", output="seen", attachments=[file(PICTURE)]), form=form)
    assert [item["type"] for item in result["is"]] == ["text", "image"]


@pytest.mark.parametrize(
    ("form", "stuck"), [(OLD, 1), (PAGED, 1), (NEW, 0), (FORK, 0)], ids=lambda one: getattr(one, "name", "")
)
def test_a_file_of_a_tool_that_the_sdk_can_not_send_stops_the_clients_before_1_14(form: Form, stuck: int) -> None:
    """1.1.53 and 1.2.1 fail on what an MCP server gives as a `blob`; 1.18.34 leaves it out."""
    blob = file("data:application/octet-stream;base64,AAAA", "application/octet-stream", "a.bin")
    session = builder()
    session.user("go")
    session.assistant(tool(call_id="c1", output="seen", attachments=[blob]))
    request = sent(as_session(session.planted()), form)
    assert [unsendable.fault for unsendable in request.unsendable] == ["attachment"] * stuck


def test_an_empty_output_beside_an_attachment_is_sent_by_the_older_client_alone() -> None:
    part = tool(call_id="c1", output="", attachments=[file(PICTURE)])
    assert [item["type"] for item in of_answer(part)[1][1][0]["is"]] == ["text", "image"]
    assert [item["type"] for item in of_answer(part, form=NEW)[1][1][0]["is"]] == ["image"]


@BOTH
def test_a_subtask_is_a_sentence(form: Form) -> None:
    assert of_question(subtask(), form=form) == [("user", ["The following tool was executed by the user"])]


def test_redacted_thinking_is_sent_by_the_newer_client_alone() -> None:
    part = reasoning("", None, redactedData=redacted("1"))
    assert of_answer(part, "a word") == [("assistant", ["a word"])]
    assert of_answer(part, "a word", form=NEW)[0][1][0] == {"type": "redacted_thinking", "data": redacted("1")}


def test_an_interrupted_call_with_output_has_a_plain_result_in_the_newer_client() -> None:
    part = tool(call_id="c1", status="error", output="no", metadata={"interrupted": True, "output": "so far"})
    assert of_answer(part)[1] == ("user", [{"result": "c1", "is": "no", "error": True}])
    assert of_answer(part, form=NEW)[1] == ("user", [done(output="so far")])


def test_an_empty_text_is_nothing_and_a_blank_beside_signed_thinking_in_the_newer_client() -> None:
    assert of_answer(reasoning("hm"), text(""), "a word") == [("assistant", [("thinking", "hm"), "a word"])]
    newer = of_answer(reasoning("hm"), text(""), "a word", form=NEW)
    assert newer == [("assistant", [("thinking", "hm"), " ", "a word"])]
    assert of_answer(text(""), form=NEW) == []


@BOTH
def test_a_text_of_white_space_is_sent_as_it_is(form: Form) -> None:
    made = builder()
    made.user(" \n")
    made.assistant("\t")
    assert shown(sent(as_session(made.planted()), form, prompted=True)) == [
        ("user", [" \n"]),
        ("assistant", ["\t"]),
        ("user", ["continue"]),
    ]


def test_unsigned_thinking_keeps_an_empty_message() -> None:
    assert of_answer(reasoning("hm", None)) == [("assistant", [])]
    assert of_answer(reasoning("hm", None), "a word") == [("assistant", ["a word"])]


def test_thinking_without_words_is_sent_by_the_newer_client_alone() -> None:
    assert of_answer(reasoning(""), "a word") == [("assistant", ["a word"])]
    assert of_answer(reasoning(""), "a word", form=NEW)[0][1][0] == ("thinking", "")


VERTEX = AnthropicByVertex(WIRE.provider, WIRE.model)
AT_VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models"


@pytest.mark.parametrize("form", [OLD, PAGED, NEW, FORK], ids=lambda form: form.name)
def test_by_vertex_goes_what_is_left_out_for_anthropic_itself(form: Form) -> None:
    """Also thinking without words, which may be refused for its signature."""
    made = builder()
    made.user("go")
    made.assistant(reasoning("", None, redactedData=redacted("1")), reasoning(""), text("", metadata={"x": {"y": 1}}))
    made.user("next")
    made.assistant(text(""), error=aborted())
    request = replace(VERTEX, form=form).stored(as_session(made.planted()))
    answers = [[block.type for block in turn.blocks] for turn in request.turns if turn.role == "assistant"]
    assert answers == [["redacted_thinking", "thinking", "text"], []]


@pytest.mark.parametrize("form", [OLD, PAGED], ids=lambda form: form.name)
def test_by_vertex_an_empty_prompt_goes_empty_before_1_14(form: Form) -> None:
    made = builder()
    made.user("")
    made.assistant("hello")
    assert shown(replace(VERTEX, form=form).stored(as_session(made.planted()))) == [
        ("user", []),
        ("assistant", ["hello"]),
    ]
    assert of_question("", form=form) == []


@pytest.mark.parametrize(
    ("provider", "url", "made"),
    [
        ("google-vertex-anthropic", "", AnthropicByVertex),
        ("google-vertex", "", AnthropicByVertex),
        ("mine", f"{AT_VERTEX}/claude-sonnet-4-5:streamRawPredict", AnthropicByVertex),
        ("google-vertex-anthropic", "https://gateway.example/v1/messages", AnthropicMessages),
        ("anthropic", "", AnthropicMessages),
        ("azure", "https://x.services.ai.azure.com/anthropic/v1/messages", AnthropicMessages),
    ],
)
def test_the_address_tells_whose_sdk_asks_else_the_providers_id(provider: str, url: str, made: type) -> None:
    failure = Failure("", "", "", 0, RecordedError(url=url), provider, WIRE.model)
    [wire] = wires_of(failure, protocol_of(replace(failure, protocol="anthropic.messages")), [NEW])
    assert type(wire) is made


def test_the_thinking_of_another_model_goes_as_text_or_not_at_all() -> None:
    other: dict[str, Any] = {"modelID": "claude-opus-4-1"}
    assert of_answer(reasoning("hm"), "a word", **other) == [("assistant", ["a word"])]
    assert of_answer(reasoning("hm"), "a word", form=NEW, **other) == [("assistant", ["hm", "a word"])]


@BOTH
@pytest.mark.parametrize("kind", ["thinking", "patch", "snapshot", "unheard-of"])
def test_an_unknown_type_is_nothing(form: Form, kind: str) -> None:
    assert of_answer({"type": kind, "thinking": "hm", "text": "x"}, "a word", form=form) == [("assistant", ["a word"])]


@BOTH
@pytest.mark.parametrize("status", ["pending", "running"])
def test_an_unfinished_call_has_an_error_for_a_result(form: Form, status: str) -> None:
    [call, (_, [result])] = of_answer(tool(call_id="c1", status=status), form=form, completed=False)
    assert call == ("assistant", [{"call": "c1"}])
    assert result == {"result": "c1", "is": "[Tool execution was interrupted]", "error": True}


@BOTH
def test_a_failed_call_has_its_error_for_a_result(form: Form) -> None:
    [_, (_, [result])] = of_answer(tool(call_id="c1", status="error", output="no such file"), form=form)
    assert result == {"result": "c1", "is": "no such file", "error": True}


@BOTH
def test_a_call_of_an_unknown_status_is_nothing(form: Form) -> None:
    assert of_answer(tool(status="streaming"), "a word", form=form) == [("assistant", ["a word"])]


@BOTH
@pytest.mark.parametrize(
    ("fault", "part"),
    [
        ("state", tool(status="")),
        ("state", {**tool(), "state": None}),
        ("output", tool(output=None)),
        ("time", tool(time=None)),
        ("not_json", raw(b'{"id": "prt_')),
        ("not_json", raw(b"")),
        ("metadata", text("a word", metadata="mine")),
        ("metadata", text("a word", metadata={"recoveryd": "x"})),
        ("text", {"type": "text"}),
        ("signature", reasoning("hm", 7)),  # type: ignore[arg-type]
    ],
)
def test_on_some_parts_the_client_fails_before_it_sends_anything(form: Form, fault: str, part: Part) -> None:
    assert stuck_on("a word", part, form=form) == [fault]


@BOTH
def test_our_own_mark_is_sound(form: Form) -> None:
    assert stuck_on(text("a word", metadata={"recoveryd": {"recovery": "r1"}}), form=form) == []
    assert stuck_on(step_start(metadata={"recoveryd": {"recovery": "r1"}}), form=form) == []


def test_a_call_of_the_provider_is_dropped_by_the_newer_client_and_stops_the_older_one() -> None:
    part = {**tool(), "metadata": {"providerExecuted": True}}
    assert stuck_on(part) == ["metadata"] or stuck_on(part) == ["provider_executed"]
    assert of_answer(part, "a word", form=NEW) == [("assistant", ["a word"])]


def test_text_behind_a_call_moves_in_front_of_it_in_the_newer_client_and_thinking_does_not() -> None:
    parts = (tool(call_id="c1"), text("behind"))
    assert of_answer(*parts)[0] == ("assistant", [{"call": "c1"}, "behind"])
    assert of_answer(*parts, form=NEW)[0] == ("assistant", ["behind", {"call": "c1"}])
    mixed = (tool(call_id="c1"), reasoning("hm"), text("behind"))
    assert of_answer(*mixed, form=NEW)[0] == ("assistant", [{"call": "c1"}, ("thinking", "hm"), "behind"])


@BOTH
def test_illegal_calls_are_sent_as_they_are_but_for_the_ids_that_the_client_mends(form: Form) -> None:
    made = builder()
    made.user("go")
    made.assistant(tool("my tool", "ls", call_id="call.1"))
    wire = sent(as_session(made.planted()), form)
    call = wire.turns[1].blocks[0].body
    assert (call["id"], call["name"], call["input"]) == ("call_1", "my tool", "ls")


def test_half_a_character_is_mended_by_the_newer_client_but_not_in_an_input() -> None:
    half = "cut \ud83d"
    assert of_answer(text(half)) == [("assistant", [half])]
    assert of_answer(text(half), form=NEW) == [("assistant", ["cut \ufffd"])]
    made = builder()
    made.user("go")
    made.assistant(tool(arguments={"command": half}, output=half))
    wire = sent(as_session(made.planted()), NEW)
    assert wire.turns[1].blocks[0].body["input"] == {"command": half}
    assert wire.turns[2].blocks[0].body["content"] == "cut \ufffd"


@BOTH
def test_a_user_message_of_nothing_vanishes(form: Form) -> None:
    made = builder()
    made.user("")
    made.assistant("hello")
    assert shown(sent(as_session(made.planted()), form)) == [("assistant", ["hello"])]


@BOTH
def test_a_last_text_of_the_assistant_is_trimmed(form: Form) -> None:
    made = builder()
    made.user("go")
    made.assistant("so \n\u00a0")
    assert shown(sent(as_session(made.planted()), form))[-1] == ("assistant", ["so"])
    assert shown(sent(as_session(made.planted()), form, prompted=True))[1] == ("assistant", ["so \n\u00a0"])


@BOTH
def test_every_block_remembers_its_part_and_every_turn_where_its_steps_end(form: Form) -> None:
    made = builder()
    made.user("go")
    made.assistant(reasoning("hm"), text("so"), tool(call_id="c1"))
    session = as_session(made.planted())
    answer: Turn = sent(session, form).turns[1]
    parts = session.messages[1].parts
    assert [block.part_id for block in answer.blocks] == [part.id for part in parts[1:4]]
    assert answer.origins == ((session.messages[1].id, parts[-1].id),)


@pytest.mark.parametrize(
    ("model", "dropped"),
    [
        ("claude-opus-5-1", True),
        ("claude-sonnet-5.1", True),
        ("Claude-Opus-6", True),
        ("us.anthropic.claude-opus-5-1-20260801-v1:0", True),
        ("claude-5.1-mythos", False),
        ("claude-mythos-5-1", False),
        ("claude-mythos-5-2", True),
        ("claude-opus-5", False),
        ("claude-opus-5-20260101", False),
        ("claude_opus-5-1", False),
        ("opus-5-1", False),
    ],
)
def test_for_which_names_the_client_has_bound_thinking_dropped(model: str, dropped: bool) -> None:
    """As `blockBinding` in the binary of 1.18.33 does it: a name that it can't read, as of a proxy, is none."""
    assert Form.named("new").has_bound_dropped(model) is dropped
    assert not Form.named("old").has_bound_dropped(model)
