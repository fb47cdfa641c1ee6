"""Each repair on its own: what it proposes for one violation, and what it leaves alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from recoveryd.clients.opencode.editor import OpencodeEditor
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.core.editor import Marks
from recoveryd.core.edits import edited
from recoveryd.core.model import Edit, Kind, Session
from recoveryd.core.violation import Claims, Violation
from recoveryd.providers.anthropic.provider import ANTHROPIC
from recoveryd.providers.anthropic.rules import check
from recoveryd.repair.fixes import REPAIRS, RepairInput, Settings
from tests.e2e.media import data_url, png
from tests.support.build import SessionBuilder
from tests.support.parts import Part, file, reasoning, text, tool
from tests.support.values import as_session

OFF, BOTH = frozenset({False}), frozenset({True, False})
NOW = 1_791_000_000_000
PICTURE = file(data_url(png(4, 4)))


def session(*content: str | Part, question: tuple[str | Part, ...] = ("go",), closed: bool = True) -> Session:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user(*question)
    made.assistant(*content)
    if closed:
        made.user("next")
        made.assistant("fine")
    return as_session(made.planted())


class _Seen(NamedTuple):
    """A bench, and the session that it is about."""

    session: Session
    bench: RepairInput


def bench_of(of: Session, **settings: Any) -> _Seen:
    request = AnthropicMessages("anthropic", "claude-sonnet-4-5").build(of)
    editor = OpencodeEditor(of, Marks("rtest", NOW))
    return _Seen(of, RepairInput(request, check(request, Claims()), ANTHROPIC, editor, Settings(**settings), Claims()))


def found(bench: _Seen, claims: Claims) -> list[Violation]:
    return list(check(bench.bench.request, claims))


def proposed(bench: _Seen, claims: Claims | None = None) -> list[tuple[Edit, ...]]:
    """The proposals for the first violation."""
    violation = found(bench, claims or Claims(thinking=OFF))[0]
    return list(REPAIRS[violation.kind](bench.bench, violation))


def types(of: Session, message: int = 1) -> list[str]:
    return [part.type for part in of.messages[message].parts]


def test_what_stands_behind_a_call_gets_a_step_of_its_own() -> None:
    bench = bench_of(session(tool(), text("behind")))
    [[edit]] = proposed(bench)
    after = edited(bench.session, [edit])
    assert types(after) == ["step-start", "tool", "step-start", "text", "step-finish"]
    assert edit.after == {
        "id": edit.part_id,
        "sessionID": bench.session.id,
        "messageID": edit.message_id,
        "type": "step-start",
        "metadata": {"recoveryd": {"recovery": "rtest"}},
    }


def test_a_call_is_ended_as_the_client_ends_those_that_were_given_up() -> None:
    running = tool(status="running", metadata={"output": "half a line"}, title="ls")
    bench = bench_of(session(running), cancelled_text="(cancelled)")
    claims = Claims(unfinished=frozenset({bench.session.messages[1].parts[1].id}), thinking=OFF)
    [[edit]] = proposed(bench, claims)
    state = (edit.after or {})["state"]
    assert (state["status"], state["error"]) == ("error", "(cancelled)")
    assert state["metadata"] == {"output": "half a line"}, "what it had put out so far stays"
    assert state["input"] == {"command": "true"}
    assert state["time"]["start"] < state["time"]["end"] == NOW


def test_a_call_without_any_state_gets_a_legal_one() -> None:
    bench = bench_of(session(tool(status="")))
    [[edit]] = proposed(bench)
    state = (edit.after or {})["state"]
    assert state == {
        "status": "error",
        "input": {},
        "error": "Operation cancelled by user (ESC pressed)",
        "time": {"start": NOW, "end": NOW},
    }


@pytest.mark.parametrize("content", [(tool(),), (reasoning("hm"), tool())])
def test_the_turn_is_closed_behind_the_last_part_of_its_message(content: tuple[Part, ...]) -> None:
    bench = bench_of(session(*content, closed=False))
    [[step, closing]] = proposed(bench, Claims(thinking=BOTH))
    after = edited(bench.session, [step, closing])
    assert [part.id for part in after.messages[1].parts][-2:] == [step.part_id, closing.part_id]
    assert types(after)[-2:] == ["step-start", "text"]
    body = closing.after or {}
    assert (body["text"], body["synthetic"]) == ("[Tool execution completed.]", True)
    assert found(bench_of(after), Claims(thinking=BOTH)) == []


def test_rejected_thinking_goes_with_all_behind_it_or_all_of_it() -> None:
    of = session(reasoning("one"), text("a"), reasoning("two"), text("b"))
    second = of.messages[1].parts[3].id
    claims = Claims(accused=frozenset({second}), thinking=OFF)
    [one] = proposed(bench_of(of), claims)
    assert [(edit.part_id, edit.after) for edit in one] == [(second, None)]
    [both] = proposed(bench_of(of, keep_thinking=False), claims)
    assert len(both) == 2


def test_a_message_that_ends_in_thinking_gets_words_first() -> None:
    words, aside = proposed(bench_of(session(text("so"), reasoning("hm"))))
    assert (words[0].after or {})["text"] == "[user interrupted]"
    assert aside[0].after is None


def test_a_blank_text_beside_content_goes_and_one_alone_gets_words() -> None:
    beside, _ = proposed(bench_of(session(text(" "), text("a word"))))
    assert beside[0].after is None
    alone, _ = proposed(bench_of(session(text("\n", synthetic=True, extra=1)), placeholder="..."))
    body = alone[0].after or {}
    assert (body["text"], body["synthetic"], body["extra"]) == ("...", True, 1)


def test_a_message_of_nothing_gets_words_behind_its_last_step() -> None:
    [words] = proposed(bench_of(session(reasoning("never signed", None))))
    assert (words[0].after or {})["synthetic"] is True


def test_a_blank_output_beside_a_picture_is_filled_and_the_picture_stays() -> None:
    [[edit]] = proposed(bench_of(session(tool(output=" ", attachments=[PICTURE]))))
    state = (edit.after or {})["state"]
    assert state["output"] == "[no output]"
    assert state["attachments"] == [PICTURE]


def test_a_first_message_that_vanished_gets_words_that_the_client_draws() -> None:
    of = session("hello", question=(text(""),))
    [[edit]] = proposed(bench_of(of))
    assert edit.message_id == of.messages[0].id
    assert "synthetic" not in (edit.after or {})
    assert types(edited(of, [edit]), 0) == ["text", "text"]


def test_a_conversation_without_a_question_gets_one_like_the_next() -> None:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    answer = made.assistant("who asked?")
    made.user("me", agent="plan")
    of = as_session(made.planted())
    [[message, words]] = proposed(bench_of(of))
    body = message.after or {}
    assert body["agent"] == "plan" and body["model"] == of.messages[1].data["model"]
    assert body["time"]["created"] == answer["time"]["created"] - 1
    after = edited(of, [message, words])
    assert [m.role for m in after.messages] == ["user", "assistant", "user"]


def test_a_conversation_of_answers_alone_gets_a_question_to_the_same_model() -> None:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    answer = made.assistant("who asked?", agent="plan")
    [[message, _]] = proposed(bench_of(as_session(made.planted())))
    assert value(message, "agent") == "plan"
    assert value(message, "model") == {key: answer[key] for key in ("providerID", "modelID")}


def value(edit: Edit, *keys: str) -> Any:
    found: Any = edit.after
    for key in keys:
        found = found[key]
    return found


@pytest.mark.parametrize(
    ("given", "input_"),
    [("ls -l", {"input": "ls -l"}), ('{"a": 1}', {"a": 1}), (["ls"], {"input": ["ls"]}), (7, {"input": 7})],
)
def test_an_input_becomes_an_object_and_loses_nothing(given: Any, input_: Any) -> None:
    [[edit]] = proposed(bench_of(session(tool(arguments=given))))
    assert value(edit, "state", "input") == input_


def test_doubled_ids_become_two_and_the_first_keeps_its_own() -> None:
    of = session(tool(call_id="toolu_same"), tool(call_id="toolu_same"))
    [[edit]] = proposed(bench_of(of))
    assert edit.part_id == of.messages[1].parts[2].id
    assert value(edit, "callID") not in ("", "toolu_same")


@pytest.mark.parametrize(("name", "legal"), [("my tool", "my_tool"), ("", "unknown"), ("a" * 300, "a" * 200)])
def test_a_name_becomes_legal(name: str, legal: str) -> None:
    [[edit]] = proposed(bench_of(session(tool(name))))
    assert value(edit, "tool") == legal


def test_half_a_character_is_replaced_where_it_stands_and_nowhere_else() -> None:
    of = session(tool(arguments={"command\ud83d": "a\ud83db"}, output="cut \ud83d, grüße 😀"))
    [[edit]] = proposed(bench_of(of))
    assert value(edit, "state", "input") == {"command\ufffd": "a\ufffdb"}
    assert value(edit, "state", "output") == "cut \ufffd, grüße 😀"


def test_two_keys_with_half_a_character_stay_two() -> None:
    of = session(tool(arguments=dict(zip(("a\ud83d", "a\ude00"), ("one", "two"), strict=True))))
    [[edit]] = proposed(bench_of(of))
    assert sorted(value(edit, "state", "input").values()) == ["one", "two"]


def test_a_refused_picture_becomes_words_that_name_it() -> None:
    page = file(data_url(b"<html>"), filename="cat.png")
    [[edit]] = proposed(bench_of(session("fine", question=("look", page))))
    assert value(edit, "type") == "text"
    assert value(edit, "text").startswith("[The image cat.png was taken out: ")


@pytest.mark.parametrize("output", ["seen", "\n  indented\n", "line\n"])
def test_a_refused_picture_of_a_tool_takes_no_output_with_it(output: str) -> None:
    page = file(data_url(b"<html>"), filename="cat.png")
    [[edit]] = proposed(bench_of(session(tool(output=output, attachments=[page, PICTURE]))))
    assert value(edit, "state", "attachments") == [PICTURE]
    assert value(edit, "state", "output").startswith(output)
    assert "cat.png was taken out" in value(edit, "state", "output")


@pytest.mark.parametrize(("output", "kept"), [({"a": "result"}, "result"), (["one", "two"], "two")])
def test_an_output_that_is_no_text_is_kept_as_one(output: Any, kept: str) -> None:
    [[edit]] = proposed(bench_of(session(tool(output=output))))
    assert kept in value(edit, "state", "output")


def test_an_output_of_nothing_says_so() -> None:
    [[edit]] = proposed(bench_of(session(tool(output=None))))
    assert value(edit, "state", "output") == "[no output]"


@pytest.mark.parametrize("words", [["my words"], {"value": "my words"}])
def test_words_that_are_no_text_are_kept_as_one(words: Any) -> None:
    [[edit]] = proposed(bench_of(session(text("a"), text(words))))
    assert edit.after is not None, "the user's or the model's words are never set aside"
    assert "my words" in value(edit, "text")


def test_of_too_many_large_pictures_the_latest_go_and_only_so_many_as_must() -> None:
    """Or those parts first that hold several: then fewer have to be changed."""
    wide = file(data_url(png(2001, 2)))
    bench = bench_of(session(question=("look", *[wide] * 22)))
    parts = [part.id for part in bench.session.messages[0].parts]
    assert [[edit.part_id for edit in edits] for edits in proposed(bench)] == [parts[:-3:-1]] * 2
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user("look")
    made.assistant(tool(attachments=[wide] * 8))
    made.user(*[wide] * 15)
    bench = bench_of(as_session(made.planted()))
    latest, heaviest = proposed(bench, Claims(thinking=frozenset()))
    assert [edit.part_id for edit in latest] == [part.id for part in bench.session.messages[2].parts[:-4:-1]]
    assert [edit.message_id for edit in heaviest] == [bench.session.messages[1].id]
    for edits in (latest, heaviest):
        assert found(bench_of(edited(bench.session, edits)), Claims(thinking=frozenset())) == []


def test_of_several_pictures_in_a_part_only_so_many_go_as_are_too_many() -> None:
    wide = [file(data_url(png(2001, 2 + side)), filename=f"{side}.png") for side in range(22)]
    bench = bench_of(session(tool(attachments=wide)))
    for [edit] in proposed(bench, Claims(thinking=frozenset())):
        assert value(edit, "state", "attachments") == wide[:-2], "the latest go"
        assert edit.also == ("take_out_media",), "and are counted"


def test_of_pictures_that_are_too_heavy_together_the_heaviest_goes() -> None:
    heavy = [file(data_url(png(3, 2 + n, padding=3_500_000 + n)), filename=f"{n}.png") for n in range(8)]
    [[edit]] = proposed(bench_of(session(tool(attachments=heavy))), Claims(thinking=frozenset()))
    assert value(edit, "state", "attachments") == heavy[:-1]
    assert "more than 32 MB together" in value(edit, "state", "output")


def test_each_picture_that_goes_is_told_its_own_reason() -> None:
    page, wide = file(data_url(b"<html>"), filename="a.png"), file(data_url(png(8001, 2)), filename="b.png")
    [edits] = proposed(bench_of(session("fine", question=("look", page, wide))))
    assert [value(edit, "text").split("taken out: ")[1] for edit in edits] == [
        "it is no image that the provider can read]",
        "it has 8001 x 2 pixels, and the provider takes 8000 a side]",
    ]


def test_a_part_that_cannot_be_read_is_set_aside() -> None:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user("go")
    made.assistant("a word", {"type": "raw", "raw": b'{"id": "prt_'})
    [[edit]] = proposed(bench_of(as_session(made.planted())))
    assert (edit.after, edit.action) == (None, "set_aside_unreadable")


def test_metadata_that_stops_the_client_loses_only_what_is_no_object() -> None:
    of = session(text("a word", metadata={"ours": {"kept": 1}, "theirs": "x"}))
    [[edit]] = proposed(bench_of(of))
    assert value(edit, "metadata") == {"ours": {"kept": 1}, "recoveryd": {"recovery": "rtest"}}
    assert value(edit, "text") == "a word"


def test_new_parts_get_ids_in_their_order_and_leave_room() -> None:
    of = session("one", "two")
    message = of.messages[1]
    low, high = message.parts[1], message.parts[2]
    for _ in range(3):
        [edit] = OpencodeEditor(of, Marks("rtest", NOW)).words_behind(message.id, low.id, "words")
        assert low.id < (edit.part_id or "") < high.id
        of = edited(of, [edit])
        high = of.messages[1].parts[2]
        assert high.id == edit.part_id


def test_every_kind_that_is_repaired_is_a_kind_of_the_rules() -> None:
    assert set(REPAIRS) <= set(Kind)
    assert Kind.CONTEXT_OVERFLOW not in REPAIRS
