"""Which lines of a transcript the client goes on with, where they hang together oddly; seen on the real 2.1.330.

`tests/e2e/claude_code/chains.py` holds all of it to the client itself.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recoveryd.clients import javascript
from recoveryd.clients.claude_code import transcript
from recoveryd.clients.claude_code.wire import ClaudeCodeWire
from recoveryd.core import StoreError
from tests.support.transcript import Line, Transcript, call, dump, stamp, text

MARK = b"\xef\xbb\xbf"
Break = Callable[[Transcript], object]


def said(raw: bytes) -> list[object]:
    """The words of each line of the conversation."""
    read = transcript.session("s", "x", transcript.read(raw.split(b"\n")), None)
    return [part.data and part.data.get("text") for message in read.messages for part in message.parts]


def two_turns() -> Transcript:
    made = Transcript()
    for question, answer in (("a", "b"), ("c", "d")):
        made.user(question)
        made.assistant(text(answer))
    return made


def _again(made: Transcript, **fields: object) -> None:
    made.lines.append({**made.line(2), **fields})


def _later(made: Transcript) -> None:
    """More than five seconds lie between a line and the one before it."""
    made.line(2).update(parentUuid="gone", timestamp=stamp(made.ms + 4_000))


def _leaf_before_sidechain(made: Transcript) -> None:
    """The way on from the leaf that was noted leads over a line of a subagent's."""
    made.lines.insert(2, {"type": "last-prompt", "leafUuid": made.line(1)["uuid"], "sessionId": made.session})
    side = {**made.line(0), "uuid": "side", "parentUuid": made.line(1)["uuid"], "isSidechain": True}
    made.lines.insert(3, side)
    made.line(4)["parentUuid"] = "side"


def _other_branch(made: Transcript) -> None:
    """The newest line is of another branch than the leaf that was noted."""
    made.event({"type": "last-prompt", "leafUuid": made.line(1)["uuid"], "sessionId": made.session})
    made.last = made.line(0)["uuid"]
    made.user("e")


def _leaf_before_compaction(made: Transcript) -> None:
    made.event({"type": "last-prompt", "leafUuid": made.line(3)["uuid"], "sessionId": made.session})
    made.add({"type": "system", "subtype": "compact_boundary", "parentUuid": None})
    made.user("S", isCompactSummary=True)


def _taken_back(made: Transcript, kind: str, **fields: object) -> None:
    """A line behind the second answer that takes it back, if it is of a type that does."""
    named = [str(made.line(3)["uuid"])[:24] + "0" * 12, 7]
    made.add({"type": kind, "message": {}, "isMeta": True, "retractedMessageUuids": named, **fields})


BREAKS: dict[str, tuple[Break, list[object]]] = {
    "a line names a later one": (lambda t: t.line(2).update(parentUuid=t.line(3)["uuid"]), ["a", "b", "c", "d"]),
    "a line names itself": (lambda t: t.line(3).update(parentUuid=t.line(3)["uuid"]), ["a", "b", "c", "d"]),
    "the first names the last": (lambda t: t.line(0).update(parentUuid=t.line(3)["uuid"]), ["a", "b", "c", "d"]),
    "a line names one that is not there": (lambda t: t.line(2).update(parentUuid="gone"), ["a", "b", "c", "d"]),
    "a line far behind names one that is not there": (_later, ["c", "d"]),
    "a subagent's line behind the leaf": (_leaf_before_sidechain, ["a", "b", "a", "c", "d"]),
    "another branch behind the leaf": (_other_branch, ["a", "b"]),
    "an answer taken back": (lambda t: _taken_back(t, "user"), ["a", "b", "c"]),
    "an answer taken back by a notice": (
        lambda t: _taken_back(t, "system", subtype="model_refusal_fallback"),
        ["a", "b", "c"],
    ),
    "an answer that a line of another type names": (lambda t: _taken_back(t, "system"), ["a", "b", "c", "d"]),
    "a list of no form": (lambda t: _taken_back(t, "user", retractedMessageUuids="x"), ["a", "b", "c", "d"]),
    "a compaction behind the leaf": (_leaf_before_compaction, ["S"]),
    "an id twice": (lambda t: _again(t, message={"role": "user", "content": "other"}), ["a", "b", "other", "d"]),
    "an id twice, elsewhere": (lambda t: _again(t, parentUuid=t.line(0)["uuid"]), ["a", "c", "d"]),
    "broken UTF-8": (
        lambda t: t.lines.__setitem__(2, dump(t.line(2)).replace(b'"c"', b'"\xff"')),
        ["a", "b", "�", "d"],
    ),
    "no number": (lambda t: t.lines.__setitem__(2, dump(t.line(2)).replace(b"false", b"NaN", 1)), ["a", "b", "d"]),
    "a mark before the first": (lambda t: t.lines.__setitem__(0, MARK + dump(t.line(0))), ["a", "b", "c", "d"]),
    "a mark before another": (lambda t: t.lines.__setitem__(2, MARK + dump(t.line(2))), ["a", "b", "d"]),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_conversation_is_the_one_that_the_client_goes_on_with(name: str) -> None:
    made = two_turns()
    break_it, expected = BREAKS[name]
    break_it(made)
    assert said(made.raw()) == expected


def sent(made: Transcript) -> list[tuple[str, str]]:
    """Whose call, result or word each block is that the next prompt is sent behind."""
    read = transcript.session("s", "x", transcript.read(made.raw().split(b"\n")), None)
    bodies = [block.body for turn in ClaudeCodeWire().build(read).turns for block in turn.blocks]
    names = (body.get("id") or body.get("tool_use_id") or body.get("text") for body in bodies)
    return [
        (str(name), str(body["content"])[:18] if body["type"] == "tool_result" else body["type"])
        for name, body in zip(names, bodies, strict=True)
    ]


ENDED, LOST = "[Tool call interru", "[Tool result missi"
CALLS = [("x", "text"), ("t1", "tool_use"), ("t2", "tool_use")]
SILENT = ("No response requested.", "text")


def called(*results: str, one_line: bool = False) -> Transcript:
    made = Transcript()
    made.user("q")
    made.assistant(text("x"), call(call_id="t1"), call(call_id="t2"), one_line=one_line)
    for name in results:
        made.result(name, "out")
    return made


@pytest.mark.parametrize(
    ("written", "results"),
    [
        ((), [("t1", ENDED), ("t2", ENDED)]),
        (("t1",), [("t1", "out"), ("t2", ENDED)]),
        (("t2",), [("t2", "out"), ("t1", ENDED)]),
    ],
)
def test_calls_of_a_client_that_was_killed_before_their_results_are_sent_all_the_same(
    written: tuple[str, ...], results: list[tuple[str, str]]
) -> None:
    """An id that no provider takes stands in the way there, too."""
    assert sent(called(*written)) == [("q", "text"), *CALLS, *results, SILENT, ("continue", "text")]


@pytest.mark.parametrize("one_line", [True, False])
def test_where_the_turn_went_on_a_line_whose_calls_all_lack_their_results_is_not_sent(one_line: bool) -> None:
    made = called("t1", one_line=one_line)
    made.assistant(text("done"))
    lost = [*CALLS, ("t2", LOST)] if one_line else CALLS[:2]
    assert sent(made)[1:] == [*lost, ("t1", "out"), ("done", "text"), ("continue", "text")]
    made = called(one_line=one_line)
    made.user("more")
    made.assistant(text("done"))
    kept: list[tuple[str, str]] = [] if one_line else CALLS[:1]
    assert [one for one in sent(made) if one[0] not in ("q\n", "q")] == [
        *kept,
        ("more", "text"),
        ("done", "text"),
        ("continue", "text"),
    ]


def test_behind_an_answer_that_got_no_further_than_its_thinking_one_is_made_up() -> None:
    made = two_turns()
    made.user("e")
    made.assistant({"type": "thinking", "thinking": "hm", "signature": "s"})
    assert sent(made)[4:] == [("e", "text"), SILENT, ("continue", "text")]


def test_what_a_command_shows_to_the_user_alone_is_not_sent() -> None:
    made = two_turns()
    shown: Line = {"type": "system", "subtype": "local_command", "content": "<local-command-stdout>x"}
    made.add({**shown, "isDisplayOnly": True})
    assert said(made.raw()) == ["a", "b", "c", "d"]
    made.add(shown)
    assert said(made.raw())[4:] == ["<local-command-stdout>x"]
    assert [name for name, _ in sent(made)][4:] == ["<local-command-stdout>x\n", "continue"]


def test_a_last_line_counts_without_its_newline_and_not_if_it_is_cut_off() -> None:
    raw = two_turns().raw()
    assert said(raw[:-1]) == ["a", "b", "c", "d"]
    assert said(raw[:-9]) == ["a", "b", "c"]


def compacted(made: Transcript, *, behind: str, **kept: object) -> None:
    """A compaction that says which lines it kept, its summary, and a turn behind it; `behind`: "end" or "summary"."""
    end = made.add({"type": "system", "subtype": "compact_boundary", "parentUuid": None})
    summary = made.user("summary", isCompactSummary=True)
    anchor = {"anchorUuid": end if behind == "end" else summary}
    made.line(-2)["compactMetadata"] = {
        name: {**told, **anchor} for name, told in kept.items() if isinstance(told, dict)
    }
    made.user("next")
    made.assistant(text("goes on"))


def test_what_a_compaction_kept_is_sent_behind_the_line_that_it_names() -> None:
    """Each compaction of 2.1.330 keeps some: at least the newest answer, or what stands before or behind a prompt that
    its user chose (`/rewind`)."""
    for behind, expected in (
        ("summary", ["summary", "c", "d", "next", "goes on"]),
        ("end", ["c", "d", "summary", "next", "goes on"]),
    ):
        made = two_turns()
        uuids = [made.line(number)["uuid"] for number in (2, 3)]
        compacted(made, behind=behind, preservedMessages={"uuids": uuids})
        assert said(made.raw()) == expected
        made = two_turns()
        uuids = [made.line(number)["uuid"] for number in (2, 3)]
        compacted(made, behind=behind, preservedSegment={"headUuid": uuids[0], "tailUuid": uuids[1]})
        assert said(made.raw()) == expected


def test_of_several_compactions_the_last_one_says_what_is_kept() -> None:
    made = two_turns()
    compacted(made, behind="summary", preservedMessages={"uuids": [made.line(3)["uuid"]]})
    made.add({"type": "system", "subtype": "compact_boundary", "parentUuid": None})
    made.user("summary of all", isCompactSummary=True)
    assert said(made.raw()) == ["summary of all"]


def test_what_a_compaction_kept_is_not_moved_where_it_is_not_there() -> None:
    made = two_turns()
    compacted(made, behind="summary", preservedMessages={"uuids": [made.line(3)["uuid"], "gone"]})
    assert said(made.raw()) == ["summary", "next", "goes on"]
    made = two_turns()
    compacted(made, behind="summary", preservedSegment={"headUuid": "gone", "tailUuid": made.line(3)["uuid"]})
    assert said(made.raw()) == ["summary", "next", "goes on"]


def test_a_leaf_that_its_user_went_back_to_is_the_end_until_they_go_on() -> None:
    made = two_turns()
    made.event({"type": "last-prompt", "leafUuid": made.line(1)["uuid"], "explicit": True})
    assert said(made.raw()) == ["a", "b"]
    made.last = made.line(1)["uuid"]
    made.user("other")
    assert said(made.raw()) == ["a", "b", "other"]
    made = two_turns()
    made.event({"type": "last-prompt", "leafUuid": None, "explicit": True})
    assert said(made.raw()) == []
    made.last = None
    made.user("new")
    assert said(made.raw()) == ["new"]


def test_what_came_back_from_a_call_belongs_to_it_wherever_it_hangs() -> None:
    """Beside a line of the chain that is another call's result, say."""
    made = Transcript()
    made.user("q")
    calls = made.assistant(call(call_id="t1"), call(call_id="t2"), call(call_id="t3"))
    made.result("t1", "one")
    made.result("t2", "two")
    made.last = calls[-1]
    made.result("t3", "three")
    made.assistant(text("done"))
    read = transcript.session("s", "x", transcript.read(made.raw().split(b"\n")), None)
    data = [part.data or {} for message in read.messages for part in message.parts]
    assert [one["content"] for one in data if one["type"] == "tool_result"] == ["one", "two", "three"]


def test_a_line_that_only_the_client_can_read_is_named() -> None:
    """It reads and sends what is nested ten thousand deep."""
    raw = two_turns().raw().replace(b'"c"', b'{"a":' * 50_000 + b"1" + b"}" * 50_000)
    with pytest.raises(StoreError, match=r"Line 3 of /p/x\.jsonl is nested too deeply"):
        transcript.read(raw.split(b"\n"), "/p/x.jsonl")
    assert transcript.parse(raw.split(b"\n")[2]) is None


def test_what_was_sent_is_kept_for_the_client_alone_and_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such lines are most of a file of a gigabyte."""
    made = two_turns()
    for number in (1, 3):
        made.lines.insert(number, {"type": "api-request", "params": {"messages": ["x" * 1000]}})
    parsed: list[int] = []
    real = javascript.parse_json

    def parse(raw: bytes) -> object:
        parsed.append(len(raw))
        return real(raw)

    monkeypatch.setattr(javascript, "parse_json", parse)
    assert said(made.raw()) == ["a", "b", "c", "d"]
    assert parsed and max(parsed) < 1000
