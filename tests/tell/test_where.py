"""Where something was done: the turn as a person counts, and the part by its name."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given

from recoveryd.clients.claude_code import transcript
from recoveryd.clients.opencode.shortener import OpencodeShortener
from recoveryd.core import Marks, edited
from recoveryd.core.edits import deed_names, deeds
from recoveryd.core.model import Edit, Event, Kind, Outcome, Session
from recoveryd.repair.plan import Plan, plan
from recoveryd.tell.actions import deeds_sentence
from recoveryd.tell.toast import BODY_LENGTH
from recoveryd.tell.where import places, places_line, tool_name
from tests.support.build import SessionBuilder
from tests.support.cases import notice
from tests.support.examples import examples
from tests.support.generate import CHANCE, generate, soup
from tests.support.judge import stuck
from tests.support.parts import compaction, file, reasoning, text, tool
from tests.support.transcript import Transcript, call
from tests.support.transcript import text as words
from tests.support.values import as_session


def session_of(*turns: tuple[Any, ...]) -> Session:
    """A session of turns: the prompt, then what the model answered."""
    built = SessionBuilder(seed=1)
    for prompt, *answer in turns:
        built.user(prompt)
        built.assistant(*answer)
    return as_session(built.planted())


def set_aside(session: Session, kind: str, number: int = 0) -> Edit:
    part = [p for m in session.messages for p in m.parts if p.type == kind][number]
    return Edit(part.message_id, part.id, None, "set_aside_blank")


@pytest.mark.parametrize(
    ("prompt", "answer", "kind", "place"),
    [
        ("go", tool("bash"), "tool", "turn 2, tool bash"),
        ("go", reasoning("hm"), "reasoning", "turn 2, thinking"),
        ("go", text(" "), "text", "turn 2, text"),
        ("go", {"type": "odd"}, "odd", "turn 2, part"),
        (file("data:image/png;base64,AA=="), "fine", "file", "turn 2, image"),
        ("go", tool("x" * 100), "tool", f"turn 2, tool {'x' * 40}"),
        ("go", {**tool(), "tool": "<b>\n\u202e"}, "tool", "turn 2, tool"),
        ("go", {**tool(), "tool": ["bash"]}, "tool", "turn 2, tool"),
    ],
)
def test_a_part_is_named_by_its_turn_and_what_it_is(prompt: Any, answer: Any, kind: str, place: str) -> None:
    session = session_of(("before", reasoning("a") if kind == "text" else tool("read")), (prompt, answer))
    at = -1 if kind != "file" else 0
    assert places(session, [set_aside(session, kind, at)]) == (place,)


def test_a_turn_is_a_prompt_of_the_user_and_not_of_the_client() -> None:
    built = SessionBuilder(seed=1)
    built.user("first")
    built.assistant("fine")
    built.user(compaction())
    built.assistant("summary")
    built.user({**text("Continue if you have next steps"), "synthetic": True})
    built.assistant("more")
    built.user({**text("a file follows"), "synthetic": True}, "second")
    built.assistant(tool("bash"))
    session = as_session(built.planted())
    assert places(session, [set_aside(session, "tool")]) == ("turn 2, tool bash",)


def extract(session: Session, at: int) -> list[Edit]:
    """An extract in the place of all before a message, as an edit of the store."""
    before = session.messages[at].id
    return list(OpencodeShortener(session, Marks("r3k9x2", 1), "/tool-output").compact(before, "What was asked: go"))


@pytest.mark.parametrize(
    ("at", "place"),
    [(1, "within turn 1"), (2, "before turn 2"), (5, "within turn 3"), (6, "within turn 3"), (8, "before turn 4")],
)
def test_an_extract_stands_before_a_turn_or_within_one(at: int, place: str) -> None:
    """What the client puts into a turn itself, and the line by which the model goes on, are no turns."""
    built = SessionBuilder(seed=1)
    for prompt in ("first", "second", "third"):
        built.user(prompt)
        built.assistant(tool("bash"))
    built.user({**text("Continue if you have next steps"), "synthetic": True})
    built.assistant("more")
    built.user("fourth")
    session = as_session(built.planted())
    edits = extract(session, at)
    assert places(session, edits) == (place,)
    assert places(edited(session, edits), [set_aside(edited(session, edits), "tool", 2)]) == ("turn 3, tool bash",)


def test_what_stands_before_the_first_prompt_says_so() -> None:
    built = SessionBuilder(seed=1)
    built.assistant(tool("bash"))
    session = as_session(built.planted())
    assert places(session, [set_aside(session, "tool")]) == ("before turn 1, tool bash",)


def test_what_is_put_in_is_named_by_what_it_is_about() -> None:
    session = session_of(("go", tool("read"), tool("bash"), text("behind")))
    message = session.messages[-1]
    call = [part for part in message.parts if part.type == "tool"][1]
    step = {"type": "step-start"}
    split = Edit(message.id, call.id + "0", step, "split_step")
    closed = [
        Edit(message.id, "prt_z1", step, "close_turn", companion=True),
        Edit(message.id, "prt_z2", text("x"), "close_turn"),
    ]
    asked = [
        Edit("msg_0", None, {"role": "user"}, "placeholder", companion=True),
        Edit("msg_0", "prt_0", text("x"), "placeholder"),
    ]
    said = Edit(message.id, "prt_y", text("[user interrupted]"), "placeholder")
    edits = [*asked, split, said, *closed]
    assert places(session, edits) == ("turn 1, prompt", "turn 2, tool bash", "turn 2, answer", "end of turn 2")
    assert len(deeds(edits)) == 4


def test_many_places_are_the_first_and_a_number() -> None:
    assert places_line(()) == ""
    assert places_line(("end of turn 2",)) == "end of turn 2"
    assert places_line(("end of turn 2", "turn 1, text")) == "turn 1, text"
    assert places_line(("turn 1, text", "turn 2, text", "turn 1, text")) == "turn 1, text and 1 more place"
    assert places_line(("a", "b", "c")) == "a and 2 more places"


@examples(100)
@given(CHANCE)
def test_every_plan_has_its_places_and_its_notice_fits(rng: random.Random) -> None:
    generated = soup(rng) if rng.random() < 0.4 else generate(rng, rng.randint(1, 4))
    case = stuck(as_session(generated.planted), generated.thinking)
    made = plan(case.case) if case else None
    if case is not None and isinstance(made, Plan):
        found, actions = places(case.session, made.edits), deed_names(made.edits)
        assert len(found) == len(actions) > 0
        prompts = sum(m.role == "user" for m in case.session.messages) + 1
        for place in found:
            assert 1 <= int(place.split("turn ")[1].split(",")[0]) <= prompts
        kind = Kind.THINKING_SIGNATURE_INVALID
        names = ("r3k9x2", "st", "ses_" + "x" * 26, "", "msg_1")
        event = Event(*names, kind, Outcome.HEALED, deeds_sentence(actions, kind), actions, places=found)
        assert len(notice(event).body) <= BODY_LENGTH


def test_a_turn_of_claude_code_is_a_prompt_and_not_what_tools_or_the_client_say() -> None:
    made = Transcript()
    made.user("go")
    for name in ("a", "b"):
        made.assistant({"type": "tool_use", "id": f"toolu_{name}", "name": "Bash", "input": {}})
        made.result(f"toolu_{name}")
    made.user([{"type": "text", "text": "[Request interrupted by user]"}])
    made.user("Caveat: the messages below were made by the user", isMeta=True)
    made.user("<command-name>/model</command-name>")
    made.user("This session is being continued from another one.", isCompactSummary=True)
    made.assistant({"type": "text", "text": "fine"})
    made.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    made.assistant({"type": "text", "text": "  "})
    session = transcript.session("s", made.session, transcript.read(made.raw().split(b"\n")), None)
    edits = [set_aside(session, "tool_use", at) for at in (0, 1)] + [set_aside(session, "text", -1)]
    assert places(session, edits) == ("turn 1, tool Bash", "turn 1, tool Bash", "turn 2, text")


def test_a_block_of_claude_code_is_named_and_neither_results_nor_a_command_are_a_turn() -> None:
    made = Transcript()
    made.user("go")
    made.assistant(call())
    made.result("toolu_01")
    made.assistant({"type": "thinking", "thinking": "hm", "signature": "s"}, words("a"))
    given = {"content": "<local-command-stdout>x</local-command-stdout>"}
    made.add({"type": "system", "subtype": "local_command", **given})
    made.user([words("see"), {"type": "image"}, {"type": "document"}])
    search = call("web_search", "s1", type="server_tool_use")
    made.assistant(search, {"type": "web_search_tool_result", "tool_use_id": "s1"}, {"type": "odd"})
    made.result("toolu_gone")
    found = transcript.session("s", made.session, transcript.read(made.raw().split(b"\n")), None)
    parts = [part for message in found.messages for part in message.parts]
    edits = [Edit(part.message_id, part.id, {**(part.data or {}), "new": 1}, part.id) for part in parts]
    assert places(found, edits) == (
        "turn 1, text",
        "turn 1, tool Bash",
        "turn 1, tool Bash",
        "turn 1, thinking",
        "turn 1, text",
        "turn 1, text",
        "turn 2, text",
        "turn 2, image",
        "turn 2, document",
        "turn 2, tool web_search",
        "turn 2, tool web_search",
        "turn 2, part",
        "turn 2, tool",
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bash", "bash"),
        ("functions.bash", "functions.bash"),
        ('bash {"command":"echo secret"}', ""),
        ("a b", ""),
        ("", ""),
    ],
)
def test_what_is_no_name_of_a_tool_is_not_told(name: str, told: str) -> None:
    """A model may write its whole call into the name: that is content, and a notice may go into the log."""
    assert tool_name({"tool": name}) == tool_name({"name": name}) == told
