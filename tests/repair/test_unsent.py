"""What was sent before a repair and is not named by it is sent after it: an independent check, by the words alone."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.codex.editor import CodexEditor
from recoveryd.clients.codex.error_record import read as read_error
from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.codex.wire import CodexWire
from recoveryd.clients.opencode.wire.form import NEW, OLD, Form
from recoveryd.core import (
    Block,
    Edit,
    Failure,
    Kind,
    Marks,
    Message,
    Part,
    Refusal,
    Request,
    Session,
    Turn,
    deed_names,
    edited,
)
from recoveryd.providers import classify, rules_for
from recoveryd.repair.inputs import PlanInput, Settings
from recoveryd.repair.plan import Plan, plan
from recoveryd.repair.unsent import name_unsent, unsent
from recoveryd.tell import deeds_sentence, places
from tests.e2e.codex import stuck as _stuck  # noqa: F401 the shapes declare themselves
from tests.e2e.codex.shapes import STUCK
from tests.e2e.codex.strict import Strict
from tests.families.judged import built, planned, refusal
from tests.families.table import FAMILIES
from tests.repair.test_plan import _case, actions
from tests.support.build import SessionBuilder
from tests.support.examples import examples
from tests.support.generate import CHANCE, generate, soup
from tests.support.judge import wire_of, wires
from tests.support.parts import aborted, reasoning, text
from tests.support.unsent import lost
from tests.support.values import as_session

FORMS = ("old", "paged", "new", "fork")


def _stopped(*content: Any, many: int = 1) -> Session:
    """Answers that their user stopped, each between a prompt and an answered one."""
    made = SessionBuilder(1_790_000_000_000, seed=1)
    for number in range(many):
        made.user(f"go {number}")
        made.assistant(*content, error=aborted())
        made.user("next")
        made.assistant("fine")
    return as_session(made.planted())


@pytest.mark.parametrize("form", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("many", [1, 9])
def test_a_stopped_answer_of_thinking_and_a_blank_text_is_still_sent(form: Form, many: int) -> None:
    """OpenCode sends no stopped answer that has only thinking: without its blank text it would not be sent at all."""
    session = _stopped(reasoning("hm"), text(" "), many=many)
    made = plan(replace(_case(session, Kind.EMPTY_CONTENT), wires=wires(form)))
    assert set(actions(made)) <= {"placeholder", "set_aside_thinking"}
    assert isinstance(made, Plan)
    before, after = wire_of(session, form), wire_of(edited(session, made.edits), form)
    assert lost(session, before, after, made.edits) == []
    assert [turn.role for turn in after.turns] == [turn.role for turn in before.turns]


class Forgetful:
    """A wire that leaves out a blank answer once it is not blank any more: whatever is done, all beside it vanishes."""

    protocol = "anthropic.messages"
    form_name = "new"

    def build(self, session: Session) -> Request:
        request = wires(NEW)[0].build(session)
        return replace(request, turns=tuple(turn for turn in request.turns if self._sends(turn)))

    stored = build

    def _sends(self, turn: Turn) -> bool:
        said = [block.body.get("text") for block in turn.blocks]
        return turn.role == "user" or "fine" in said or " " in said


def _forgotten(*content: Any) -> tuple[Session, Plan | Refusal]:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user("go")
    made.assistant(*content)
    made.user("next")
    made.assistant("fine")
    session = as_session(made.planted())
    return session, plan(replace(_case(session, Kind.EMPTY_CONTENT), wires=(Forgetful(),)))


def test_thinking_that_every_plan_loses_is_named() -> None:
    session, made = _forgotten(reasoning("hm"), text(" "))
    assert actions(made) == ["set_aside_blank", "unsent_thinking"]
    assert isinstance(made, Plan)
    said = deeds_sentence(deed_names(made.edits), Kind.EMPTY_CONTENT)
    assert said == "Took out 1 blank text, left 1 thinking block stored that is no longer sent"
    assert places(session, made.edits) == ("turn 1, text", "turn 1, thinking")
    thinking = edited(session, made.edits).messages[1].parts
    assert [part.data for part in thinking if part.type == "reasoning"] == [made.edits[1].after]


@pytest.mark.parametrize("said", [text("I know"), text("日本語", synthetic=True)])
def test_what_was_said_is_never_lost_for_a_repair(said: dict[str, Any]) -> None:
    _, made = _forgotten(said, text(" "))
    assert isinstance(made, Refusal)
    assert made.understood
    words = "words of the model (messages.1)"
    assert made.reason == f"what would heal it would keep {words} from being sent, and nothing is wrong with that"


def _part(part: str, kind: str = "text", message: str = "m", **body: Any) -> Block:
    return Block({"type": kind, **body}, message, part)


def _request(*blocks: Block) -> Request:
    return Request(tuple(Turn("assistant", (block,), ((block.message_id, block.part_id),)) for block in blocks))


BEFORE = _request(
    _part("p1", text="a "),
    _part("p2", "tool_use", id="t", input={"x": 1}),
    _part("p2", "tool_result", tool_use_id="t", content="42"),
    _part("p3", "thinking", thinking="", signature="s"),
    _part("p4", "text", text=" "),
    Block({"type": "text", "text": "both"}, "m", "p5", carriers=(("m", "p5"), ("m", "p6"))),
    Block({"type": "text", "text": "made up"}, "", ""),
)
SESSION = Session(
    "s",
    "ses_1",
    (Message("m", {"role": "assistant"}, tuple(Part(f"p{n}", "m", {"type": "text"}) for n in range(1, 7))),),
)
ALL = {("p1", "said"), ("p2", "call"), ("p2", "output"), ("p3", "thinking"), ("p5", "said"), ("p6", "said")}


def _gone(after: Request, *edits: Edit) -> set[tuple[str, str]]:
    return {(one.record[1], one.sort) for one in unsent(SESSION, [BEFORE], [after], edits)}


def _but(*kept: Block) -> set[tuple[str, str]]:
    return ALL - _gone(_request(*kept))


def test_blanks_and_what_the_client_makes_up_may_vanish_and_nothing_else() -> None:
    assert _gone(BEFORE) == set()
    assert _gone(_request()) == ALL


def test_what_is_still_sent_may_stand_elsewhere_under_another_id_and_in_other_words_around() -> None:
    assert _but(_part("p1", text="[x]a[y]")) == {("p1", "said")}
    assert _but(_part("p1", text="b")) == set()
    assert _but(_part("p2", "tool_use", id="new", input={"x": 1})) == {("p2", "call")}
    assert _but(_part("p2", "function_call_output", call_id="new", output="42")) == {("p2", "output")}
    assert _but(_part("p3", "text", text="", message="m")) == {("p3", "thinking")}
    assert _but(_part("p5", text="one")) == {("p5", "said")}


def test_a_part_that_an_edit_takes_out_is_named_and_one_that_it_changes_has_to_be_sent() -> None:
    assert _gone(_request(), *(Edit("m", f"p{n}", None, "set_aside_item") for n in range(1, 7))) == set()
    assert _gone(_request(), Edit("m", None, None, "gone")) == set()
    changed = Edit("m", "p2", {"type": "tool"}, "mend_call")
    assert {("p2", "call"), ("p2", "output")} <= _gone(_request(), changed)
    now = _part("p2", "tool_use", id="n", input={}), _part("p2", "tool_result", tool_use_id="n", content="")
    assert ("p2", "output") not in _gone(_request(*now), changed)


def test_a_picture_beside_an_output_goes_with_it() -> None:
    shown = _part("p2", "image", source={"type": "base64", "data": "iVBO"})
    cleared = _part("p2", "tool_result", tool_use_id="t", content="[cleared]")
    call = _part("p2", "tool_use", id="t", input={"x": 1})
    sent, edit = _request(*BEFORE.blocks(), shown), Edit("m", "p2", {"type": "tool"}, "clear_output")
    rest = [block for block in BEFORE.blocks() if block.part_id != "p2"]
    assert unsent(SESSION, [sent], [_request(*rest, call, cleared)], [edit]) == ()
    [alone] = unsent(SESSION, [sent], [_request(*rest, cleared)], [edit])
    assert alone.sort == "call"
    [seen] = unsent(SESSION, [sent], [_request(*rest, call, cleared)], [replace(edit, action="mend_call")])
    assert seen.sort == "media"


def test_each_edit_tells_of_its_own_part() -> None:
    gone = unsent(SESSION, [BEFORE], [_request(_part("p1", text="a"), *BEFORE.blocks())], ())
    assert name_unsent([], gone, SESSION) == ()
    [thinking] = [one for one in unsent(SESSION, [BEFORE], [_request()], ()) if one.sort == "thinking"]
    gone_too, other = Edit("m", "p1", None, "x"), Edit("m", "p3", {}, "x")
    alone = Edit("m", "p3", {"type": "text"}, "unsent_thinking")  # as it is stored
    assert name_unsent([gone_too], [thinking], SESSION) == (gone_too, alone)
    assert name_unsent([other], [thinking], SESSION) == (replace(other, also=("unsent_thinking",)),)
    beside = replace(other, companion=True)
    assert name_unsent([beside], [thinking], SESSION) == (replace(other, action="unsent_thinking"),)


def _tagged(session: Session, rng: random.Random) -> Session:
    """The same with words of its own in each part; more answers are stopped, and more of their texts are blank."""
    numbers = count()

    def words(old: object) -> object:
        return f"W{next(numbers):04d}x{old}" if isinstance(old, str) and old.strip() else old

    def part_of(part: Part, *, mine: bool) -> Part:
        data = json.loads(json.dumps(part.data, default=dict))
        state = data.get("state") if isinstance(data, dict) else None
        if not isinstance(data, dict):
            return part
        if part.type == "text" and mine and rng.random() < 0.3:
            data["text"] = rng.choice((" ", "\n"))
        elif part.type in ("text", "reasoning"):
            data["text"] = words(data.get("text"))
        elif isinstance(state, dict):
            state |= {key: words(state[key]) for key in ("output", "error") if key in state}
            state |= {"input": {**state["input"], "tag": words("x")}} if isinstance(state.get("input"), dict) else {}
        return replace(part, data=data)

    def message_of(message: Message) -> Message:
        mine = message.role == "assistant"
        stopped = {"error": aborted()} if mine and rng.random() < 0.25 else {}
        parts = tuple(part_of(part, mine=mine) for part in message.parts)
        return replace(message, data={**message.data, **stopped}, parts=parts)

    return replace(session, messages=tuple(map(message_of, session.messages)))


@examples(1500)
@given(CHANCE, st.sampled_from(sorted(FAMILIES)), st.sampled_from(FORMS))
def test_nothing_is_lost_that_is_not_told_whatever_the_provider_and_the_client(
    rng: random.Random, name: str, form: str
) -> None:
    family = FAMILIES[name]
    generated = soup(rng) if rng.random() < 0.4 else generate(rng, rng.randint(0, 4))
    session = _tagged(as_session(family.dressed(generated.planted)), rng)
    for _ in range(3):
        said = refusal(family, session, form, thinking=generated.thinking)
        made = planned(family, session, form, said) if said is not None else Refusal("")
        if isinstance(made, Refusal):
            assert "would keep" not in made.reason
            return
        after = edited(session, made)
        gone = lost(session, built(family, session, form), built(family, after, form), made)
        assert [words for _, words in gone if re.match(r"W\d{4}x", words)] == []
        session = after


@pytest.mark.parametrize("name", STUCK)
def test_nothing_of_a_thread_of_codex_is_lost_that_is_not_told(name: str, tmp_path: Path) -> None:
    """As far as one error after the other leads; that all of them heal, the real client shows."""
    shape, wire = STUCK[name], CodexWire()
    rollout = shape.build(tmp_path)
    rollout.write(tmp_path)
    session = CodexThreads(tmp_path / "sessions").load(rollout.thread)
    for _ in range(3):
        body = {"input": [dict(block.body) for block in wire.build(session).blocks()]}
        fault = (shape.door or Strict()).judge(body, len(json.dumps(body, default=dict)))
        if fault is None:
            return
        message = (shape.spell(fault) if shape.spell else json.dumps(fault.body()).encode()).decode()
        if fault.status != 400:
            message = f"unexpected status {fault.status} Refused: {message}, url: http://127.0.0.1:1/v1/responses"
        error = read_error({"message": message, "codex_error_info": "other"})
        failure = Failure(session.store, session.id, "m", 0, error, "openai", "gpt-5.2", wire.protocol)
        evidence = classify(error)
        if evidence is None:
            return
        editor = lambda of: CodexEditor(of, Marks("r1", 1))  # noqa: E731
        provider = rules_for(failure, [wire])
        made = plan(PlanInput(session, failure, evidence, Settings(), [wire], provider, editor))
        if isinstance(made, Refusal):
            assert "would keep" not in made.reason
            return
        after = edited(session, made.edits)
        assert lost(session, wire.build(session), wire.build(after), made.edits) == []
        session = after
