"""Plans, on sessions at random: what they promise, checked by the independent strict provider."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients.opencode.wire.form import NEW, OLD, Form
from recoveryd.core.edits import edited, merged, stored
from recoveryd.core.model import Edit, Json, Kind, Refusal, Refused, Session
from recoveryd.core.violation import Claims, Violation
from recoveryd.providers.anthropic.bound_thinking import unbound
from recoveryd.providers.anthropic.provider import ANTHROPIC
from recoveryd.providers.anthropic.rules import check
from recoveryd.repair.fixes import REPAIRS, RepairInput, Settings
from recoveryd.repair.inputs import PlanInput
from recoveryd.repair.plan import Plan, objections, plan
from tests.shapes import BROKEN, HEALTHY, Shape
from tests.support.build import SessionBuilder
from tests.support.examples import examples
from tests.support.generate import CHANCE, FAULTS, LATER, Generated, generate, soup
from tests.support.judge import EDITOR, SIGNATURE, Stuck, bound_to, refusal, stuck, wire_of, wires
from tests.support.parts import aborted, file, reasoning, text, tool
from tests.support.refused import refused
from tests.support.unsent import lost
from tests.support.values import as_failure, as_session, session_of

FORMS = st.sampled_from([(OLD,), (NEW,), (OLD, NEW)])
SEEDS = [shape for shape in BROKEN if shape.stage == 2]


def planned(case: Stuck) -> Plan:
    made = plan(case.case)
    assert isinstance(made, Plan), made
    return made


def healed(case: Stuck) -> Session:
    return edited(case.session, planned(case).edits)


def sessions(rng: random.Random) -> Generated:
    """A few known faults, or any parts at all."""
    return soup(rng) if rng.random() < 0.4 else generate(rng, rng.randint(1, 5))


@pytest.mark.parametrize("shape", SEEDS, ids=[shape.name for shape in SEEDS])
def test_every_shape_of_a_seed_kind_is_healed(shape: Shape) -> None:
    """Bound or not, with thinking on or off, and by the kind that the provider named."""
    before = session_of(shape)
    case = stuck(before, shape.thinking)
    assert case is not None
    assert case.refusal.kind == shape.kind
    assert case.case.evidence.kind == shape.kind
    strict = bound_to(case.session)
    after = healed(case)
    while case is not None and case.refusal.kind not in SIGNATURE:
        case = stuck(after, shape.thinking)
        after = healed(case) if case is not None else after
    if case is not None:  # a signature that nobody could know of, behind the fault that was named
        strict = bound_to(case.session)
    for thinking in (True, False):
        assert refusal(after, thinking) is None
        assert refusal(after, thinking, strict) is None


@pytest.mark.parametrize("shape", HEALTHY, ids=[shape.name for shape in HEALTHY])
def test_a_healthy_shape_explains_no_refusal(shape: Shape) -> None:
    """Whatever a provider may have said of it: nothing is found, so nothing is proposed."""
    session = session_of(shape)
    failure = _case(session, Kind.EMPTY_CONTENT).failure
    for kind in (Kind.EMPTY_CONTENT, Kind.ROLE_ORDER, Kind.TOOL_RESULT_MISSING, Kind.THINKING_FINAL_BLOCK):
        found = plan(replace(_case(session, kind), failure=failure))
        assert isinstance(found, Refusal)
        assert not found.understood


@examples(200)
@given(CHANCE, FORMS)
def test_the_next_prompt_is_accepted_whatever_was_broken(rng: random.Random, forms: tuple[Form, ...]) -> None:
    """Only signatures may take another round: that one is bad is known from the provider alone."""
    generated = sessions(rng)
    session = as_session(generated.planted)
    for turn in range(5):
        case = stuck(session, generated.thinking, forms=forms)
        if case is None:
            break
        assert turn == 0 or case.refusal.kind in SIGNATURE
        assert case.case.evidence.kind == case.refusal.kind
        session = healed(case)
        for form in forms:
            strict = bound_to(case.session, form)
            for thinking in (True, False):
                why, bound = refusal(session, thinking, form=form), refusal(session, thinking, strict, form)
                assert why is None or why.kind in SIGNATURE
                assert bound is None or "bound to a different conversation" not in bound.message
    assert turn < 4


@examples(150)
@given(CHANCE, FORMS)
def test_illegal_parts_are_healed_among_all_the_others(rng: random.Random, forms: tuple[Form, ...]) -> None:
    wild = soup(rng, wild=True) if rng.random() < 0.5 else generate(rng, rng.randint(1, 4), of=(*FAULTS, *LATER))
    case = stuck(as_session(wild.planted), wild.thinking, forms=forms)
    if case is None:
        return
    session = healed(case)
    for form in forms:
        assert wire_of(session, form).unsendable == ()
        for thinking in (True, False):
            why = refusal(session, thinking, form=form)
            assert why is None or why.kind in SIGNATURE


@examples(120)
@given(CHANCE, FORMS)
def test_planned_again_on_its_own_result_it_proposes_nothing(rng: random.Random, forms: tuple[Form, ...]) -> None:
    """The claims go with it: the place that the error named is another one by now."""
    generated = sessions(rng)
    case = stuck(as_session(generated.planted), generated.thinking, forms=forms)
    if case is None:
        return
    first = planned(case)
    again = replace(case.case, session=edited(case.session, first.edits), claims=first.claims)
    assert objections(again.session, again.wires, ANTHROPIC, first.claims) == []
    second = plan(again)
    assert isinstance(second, Refusal)
    assert not second.understood


@examples(150)
@given(CHANCE, FORMS)
def test_no_word_and_no_output_is_lost(rng: random.Random, forms: tuple[Form, ...]) -> None:
    generated = sessions(rng)
    case = stuck(as_session(generated.planted), generated.thinking, forms=forms)
    if case is None:
        return
    made = planned(case)
    after = edited(case.session, made.edits)
    assert kept(case.session) <= kept(after)
    assert [m.id for m in case.session.messages] == [
        m.id for m in after.messages if m.id in {n.id for n in case.session.messages}
    ]
    for edit in made.edits:
        old = case.session.part(edit.part_id or "")
        if edit.after is None:
            assert old is not None
            words = str((old.data or {}).get("text") or "").strip()
            assert old.type in ("reasoning", "step-start") or (old.type == "text" and not words), old.data


def kept(session: Session) -> Counter[tuple[str, ...]]:
    """All that was said, asked of tools and answered by them, part by part; not blank texts, not thinking."""
    found: Counter[tuple[str, ...]] = Counter()
    for message in session.messages:
        for part in message.parts:
            data = part.data or {}
            state: Json = data["state"] if isinstance(data.get("state"), dict) else {}
            if part.type == "text" and str(data["text"]).strip():
                found[message.role, part.id, str(data["text"])] += 1
            elif part.type in ("file", "subtask", "compaction"):
                found[message.role, part.id, repr(data)] += 1
            elif part.type == "tool":
                output = str(state.get("output") or "").strip()
                said = (str(state.get("attachments")), str(state.get("input")))
                ended = str(state.get("error")) if state.get("status") == "error" and not _ours(data) else ""
                found[(part.id, str(data["callID"]), str(data["tool"]), *said)] += 1
                found[(part.id, "ended", ended)] += bool(ended)
                found[(part.id, "output", output)] += bool(output)
    return +found


def _ours(data: Json) -> bool:
    return "recoveryd" in (data.get("metadata") or {})


@examples(150)
@given(CHANCE, FORMS)
def test_edits_keep_the_schema_and_say_that_they_are_ours(rng: random.Random, forms: tuple[Form, ...]) -> None:
    generated = sessions(rng)
    case = stuck(as_session(generated.planted), generated.thinking, forms=forms)
    if case is None:
        return
    made = planned(case)
    after = edited(case.session, made.edits)
    ids = [part.id for message in after.messages for part in message.parts]
    assert len(ids) == len(set(ids))
    assert [m.id for m in after.messages] == sorted(m.id for m in after.messages)
    for edit in made.edits:
        if edit.after is not None:
            _is_sound(edit, case.session, after)


def _is_sound(edit: Edit, before: Session, after: Session) -> None:
    data = edit.after
    assert data is not None
    assert data["sessionID"] == before.id
    if edit.part_id is None:
        assert data["id"] == edit.message_id and edit.message_id.startswith("msg")
        assert data["role"] == "user" and data["agent"] and data["model"] and data["time"]["created"] >= 0
        return
    assert (data["id"], data["messageID"]) == edit.record[::-1]
    assert edit.part_id.startswith("prt") and edit.part_id.replace("_", "").replace("-", "").isalnum()
    assert data["metadata"]["recoveryd"] == {"recovery": "rtest"}
    required: dict[str, tuple[str, ...]] = {
        "pending": ("input", "raw"),
        "running": ("input", "time"),
        "completed": ("input", "output", "title", "metadata", "time"),
        "error": ("input", "error", "time"),
    }
    if data["type"] == "tool":
        state = data["state"]
        assert all(key in state for key in required[state["status"]])
        assert isinstance(state["input"], dict)
        assert {"start", "end"} <= state["time"].keys()
    if data["type"] == "text" and before.part(edit.part_id) is None:
        role = next(m.role for m in after.messages if m.id == edit.message_id)
        assert data.get("synthetic", False) is (role == "assistant")


def _cost(session: Session, edits: Sequence[Edit]) -> int:
    """Two for each stored record that is changed or goes, one for each deed that only adds."""
    total = 0
    known = stored(session)
    for edit in edits:
        total += 2 if edit.record in known else 0 if edit.companion else 1
    return total


def _cheaper(case: PlanInput, claims: Claims, than: int) -> tuple[Edit, ...] | None:
    """Any set of the same proposals that costs less, satisfies all rules and loses nothing; every violation is branched
    on.
    """
    before = case.wires[0].build(case.session)
    for most in range(1, than):
        seen: set[frozenset[tuple[Any, ...]]] = set()
        waiting: list[tuple[Edit, ...]] = [()]
        while waiting:
            edits = waiting.pop()
            session = edited(case.session, edits)
            request = case.wires[0].build(session)
            open_ = check(request, claims) or [
                Violation(Kind.THINKING_SIGNATURE_INVALID, 0, block, "") for block in unbound(before, request)
            ]
            if not open_ and not lost(case.session, before, request, edits):
                return edits
            bench = RepairInput(request, open_, case.provider, case.editor(session), case.settings, claims)
            for proposal in (p for violation in open_ for p in REPAIRS[violation.kind](bench, violation) if p):
                following = merged(edits, proposal, case.session)
                key = frozenset((edit.record, repr(edit.after)) for edit in following)
                if key not in seen and _cost(case.session, following) <= most:
                    seen.add(key)
                    waiting.append(following)
    return None


@examples(500)
@given(CHANCE)
def test_no_set_of_the_same_proposals_is_cheaper(rng: random.Random) -> None:
    generated = soup(rng, 3, 4) if rng.random() < 0.5 else generate(rng, rng.randint(1, 2), turns=1)
    case = stuck(as_session(generated.planted), generated.thinking)
    if case is None:
        return
    made = planned(case)
    cost = _cost(case.session, made.edits)
    if cost <= 6:
        assert _cheaper(case.case, made.claims, cost) is None


def _case(session: Session, kind: Kind, **said: Any) -> PlanInput:
    failure = as_failure(session, {"name": "APIError", "data": {"message": "no"}})
    return PlanInput(session, failure, Refused(kind, **said), Settings(), wires(OLD), ANTHROPIC, EDITOR)


def _session(*content: Any, **fields: Any) -> Session:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user("go")
    made.assistant(*content, **fields)
    made.user("next")
    made.assistant("fine")
    return as_session(made.planted())


def test_thinking_behind_other_content_goes_alone_where_the_provider_wants_it_first() -> None:
    """With its turn closed where that is open and begins with none then; thinking that stands first stays."""
    words = (
        "messages.3.content.0: If an assistant message contains any thinking blocks, the first block must be "
        "`thinking` or `redacted_thinking`. Found `text`."
    )
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user("go")
    made.assistant(reasoning("first"), text("a"))
    made.user("next")
    made.assistant(text("b"), reasoning("late"), tool())
    session = as_session(made.planted())
    evidence = refused({"name": "APIError", "data": {"message": words, "statusCode": 400}})
    assert evidence is not None and evidence.kind is Kind.THINKING_BLOCK_MODIFIED
    after = plan(replace(_case(session, evidence.kind), evidence=evidence))
    assert isinstance(after, Plan), after
    sent = wire_of(edited(session, after.edits)).blocks()
    assert [block.body["thinking"] for block in sent if block.is_thinking] == ["first"]
    assert sorted(set(actions(after))) == ["close_turn", "set_aside_thinking"]


def actions(made: Plan | Refusal) -> list[str]:
    assert isinstance(made, Plan), made
    return [edit.action for edit in made.edits]


def test_a_blank_text_behind_a_call_goes_and_takes_no_split_with_it() -> None:
    assert actions(plan(_case(_session(tool(), text("\n")), Kind.EMPTY_CONTENT))) == ["set_aside_blank"]


def test_a_named_call_that_never_ended_is_cancelled() -> None:
    session = _session(text("on it"), tool(status="running", call_id="toolu_01"))
    made = plan(_case(session, Kind.TOOL_RESULT_MISSING, ids=("toolu_01",)))
    assert actions(made) == ["cancel_tool"]
    assert isinstance(plan(_case(session, Kind.TOOL_RESULT_MISSING, ids=("toolu_02",))), Refusal)


def test_the_block_that_the_error_names_goes_with_all_thinking_behind_it() -> None:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    for number in range(3):
        made.user("go")
        made.assistant(reasoning(f"thought {number}"), text("so"))
    session = as_session(made.planted())
    second = plan(_case(session, Kind.THINKING_SIGNATURE_INVALID, position=(3, 0)))
    assert actions(second) == ["set_aside_thinking"] * 2
    unnamed = plan(_case(session, Kind.THINKING_SIGNATURE_INVALID))
    assert actions(unnamed) == ["set_aside_thinking"] * 3
    none_kept = replace(
        _case(session, Kind.THINKING_SIGNATURE_INVALID, position=(5, 0)), settings=Settings(keep_thinking=False)
    )
    assert actions(plan(none_kept)) == ["set_aside_thinking"] * 3


def test_the_block_is_looked_up_in_what_was_sent_not_in_what_is_stored() -> None:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user("go")
    made.assistant(reasoning("first"), text("so"))
    made.failed("again")
    made.user("stopped")
    made.assistant(error=aborted())
    made.user("once more")
    made.assistant(reasoning("second"), text("so"))
    made_plan = plan(_case(as_session(made.planted()), Kind.THINKING_SIGNATURE_INVALID, position=(3, 0)))
    assert actions(made_plan) == ["set_aside_thinking"]


def test_an_edit_takes_the_thinking_behind_it_along_and_not_that_before_it() -> None:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    for word in ("one", " ", "three"):
        made.user("go")
        made.assistant(reasoning(f"thought of {word}"), text(word))
    made_plan = plan(_case(as_session(made.planted()), Kind.EMPTY_CONTENT))
    assert isinstance(made_plan, Plan)
    gone = [
        as_session(made.planted()).part(e.part_id or "") for e in made_plan.edits if e.action == "set_aside_thinking"
    ]
    assert [(part.data or {})["text"] for part in gone if part] == ["thought of three"]


@pytest.mark.parametrize("kind", [Kind.REASONING_MISSING, Kind.ASSISTANT_PREFILL])
def test_what_no_edit_can_heal_is_refused_in_words(kind: Kind) -> None:
    made = plan(_case(_session(text(" ")), kind))
    assert isinstance(made, Refusal)
    assert made.understood
    assert made.reason


def test_a_kind_that_the_rules_do_not_find_is_not_understood() -> None:
    """Broken it is, but not in the way that the error says: who knows what is meant."""
    made = plan(_case(_session(tool(), text("behind")), Kind.ROLE_ORDER))
    assert made == Refusal("the rules find nothing in the stored session that explains this error", understood=False)


def test_many_faults_in_a_long_session_are_one_plan() -> None:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    for number in range(300):
        made.user(f"question {number}")
        made.assistant("\n" if number % 3 == 0 else text("fine"))
    made_plan = plan(_case(as_session(made.planted()), Kind.EMPTY_CONTENT))
    assert actions(made_plan) == ["placeholder"] * 100


def test_the_words_are_the_users_own() -> None:
    case = replace(_case(_session(text(" ")), Kind.EMPTY_CONTENT), settings=Settings(placeholder="(nothing)"))
    made = plan(case)
    assert isinstance(made, Plan)
    assert [(edit.after or {})["text"] for edit in made.edits] == ["(nothing)"]


def _with_image(*more: Any) -> Session:
    made = SessionBuilder(1_790_000_000_000, seed=1)
    made.user("look", file("data:image/jpeg;base64,/9j/4AAQSkZJRgABAQEAYABgAAD/2wBDAAgGBg==", "image/jpeg"))
    made.assistant(tool(), text("behind"))
    made.user("next")
    made.assistant(*more, "fine")
    return as_session(made.planted())


def _allowed(session: Session, *off: Kind) -> Plan | Refusal:
    return plan(replace(_case(session, Kind.TOOL_RESULT_MISSING), kinds=frozenset(Kind) - {*off}))


def test_every_edit_of_a_plan_is_of_a_kind_that_may_be_repaired() -> None:
    session = _with_image()
    assert "take_out_media" in actions(_allowed(session))
    refused = _allowed(session, Kind.MEDIA_REJECTED)
    assert isinstance(refused, Refusal)
    assert "media_rejected is not among the kinds that your configuration names" in refused.reason
    assert "no image that the provider can read (messages.0)" in refused.reason


def test_thinking_that_an_edit_would_cost_stays_where_its_kind_is_off() -> None:
    session = _with_image(reasoning("kept thought"))
    assert "set_aside_thinking" in actions(_allowed(session))
    refused = _allowed(session, Kind.THINKING_SIGNATURE_INVALID)
    assert isinstance(refused, Refusal)
    assert "thinking_signature_invalid is not among the kinds" in refused.reason
    assert "(messages.3)" in refused.reason, "where that thinking stands in what was refused"


def test_what_one_repair_settles_on_the_way_needs_no_kind_of_its_own() -> None:
    """Whether thinking is on is not stored, so a session whose turn is open is found wrong in both ways."""
    session = _session(tool(), text("behind"), reasoning("late"), completed=False)
    kinds = {Kind.THINKING_BLOCK_ORDER, Kind.TOOL_RESULT_MISSING, Kind.THINKING_FINAL_BLOCK}
    made = plan(replace(_case(session, Kind.TOOL_RESULT_MISSING), kinds=frozenset(kinds)))
    assert isinstance(made, Plan), made


def test_a_changed_block_is_a_rejected_one() -> None:
    session = _session(reasoning("first"), text("answer"))
    case = _case(session, Kind.THINKING_BLOCK_MODIFIED)
    assert actions(plan(replace(case, kinds=frozenset({Kind.THINKING_BLOCK_MODIFIED})))) == ["set_aside_thinking"]


def test_an_edit_that_answers_nothing_is_not_made_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each set of edits is longer than the one before, and all are kept."""
    tried = 0

    def more_words(given: RepairInput, violation: Violation) -> Sequence[tuple[Edit, ...]]:
        nonlocal tried
        tried += 1
        assert violation.block is not None
        return (given.editor.words_behind(violation.block.message_id, violation.block.part_id, "more"),)

    monkeypatch.setitem(REPAIRS, Kind.MEDIA_REJECTED, more_words)
    made = _allowed(_with_image())
    assert isinstance(made, Refusal)
    assert 0 < tried < 9
