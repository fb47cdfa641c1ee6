"""What a person is told: sentences that read well, for one thing and for several."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given

from recoveryd.core.edits import deed_names
from recoveryd.core.failure_kinds import is_repairable
from recoveryd.core.model import Edit, Event, Kind, Outcome
from recoveryd.repair.plan import Plan, plan
from recoveryd.tell.actions import ACTIONS, deeds_sentence
from recoveryd.tell.event_words import notice_buttons, show_notice
from recoveryd.tell.failure_words import cause, remedy
from recoveryd.tell.toast import merged_toast
from tests.support.cases import notice
from tests.support.examples import examples
from tests.support.generate import CHANCE, generate
from tests.support.judge import stuck
from tests.support.values import as_session

TEXT = {"type": "text", "text": "x"}
STEP = {"type": "step-start"}


def event(outcome: Outcome = Outcome.HEALED, title: str = "My session", **said: object) -> Event:
    made = Event("rabc", "st", "ses_1", title, "msg_1", Kind.EMPTY_CONTENT, outcome, "Took out 1 blank text")
    return Event(**{**{name: getattr(made, name) for name in Event.__slots__}, **said})


def test_of_reasoning_that_goes_as_a_whole_it_is_not_said_that_the_provider_can_read_none() -> None:
    """It names no item: that of the account that is asked goes with that of another."""
    for many in (1, 3):
        assert "may be unable to read" in deeds_sentence(["set_aside_reasoning"] * many, Kind.REASONING_ITEM)


@pytest.mark.parametrize("action", ACTIONS)
def test_one_and_several_read_as_a_person_would_say_it(action: str) -> None:
    for kind in (None, *Kind):
        one, three = deeds_sentence([action], kind), deeds_sentence([action] * 3, kind)
        for said in (one, three):
            assert said[0].isupper()
            assert not re.search(r"[{}]|  |[.,]$", said)
        assert "3" in three and "3" not in one
        assert not re.search(r"\b1 \w+s\b(?! of)", one.replace("1 gap with", "1 gap"))
        assert not re.search(r"\b(is|its|has) .*\bparts\b", three)


def test_several_deeds_are_one_sentence() -> None:
    did = ["close_turn", "set_aside_thinking", "set_aside_thinking", "close_turn"]
    said = deeds_sentence(did, Kind.THINKING_SIGNATURE_INVALID)
    assert said == "Took out 2 thinking blocks the provider no longer accepts, closed 2 open turns"
    assert deeds_sentence(["placeholder"], Kind.EMPTY_CONTENT) == "Filled 1 gap with a placeholder"
    assert deeds_sentence([], None) == deeds_sentence([], None, done=False) == ""


def test_what_is_yet_to_be_done_is_not_told_as_done() -> None:
    would = deeds_sentence(["set_aside_thinking", "close_turn"], Kind.THINKING_SIGNATURE_INVALID, done=False)
    assert would == "Would take out 1 thinking block the provider no longer accepts, close the open turn"
    assert all(
        deed.do == deed.did or deed.did not in deeds_sentence([name], None, done=False)
        for name, deed in ACTIONS.items()
    )


def test_what_nobody_objected_to_is_not_called_unaccepted() -> None:
    assert deeds_sentence(["set_aside_thinking"], Kind.EMPTY_CONTENT) == "Took out 1 thinking block"


def test_two_parts_of_one_deed_count_once() -> None:
    closed = [Edit("m", "p1", STEP, "close_turn", companion=True), Edit("m", "p2", TEXT, "close_turn")]
    asked = [Edit("n", None, {"role": "user"}, "placeholder", companion=True), Edit("n", "p3", TEXT, "placeholder")]
    assert deed_names(closed) == ("close_turn",)
    assert deed_names([*closed, *asked]) == ("close_turn", "placeholder")
    assert deed_names([Edit("m", "p1", STEP, "split_step")]) == ("split_step",)


@examples(30)
@given(CHANCE)
def test_every_plan_can_be_told(rng: random.Random) -> None:
    generated = generate(rng, rng.randint(1, 4))
    case = stuck(as_session(generated.planted), generated.thinking)
    made = plan(case.case) if case else None
    if isinstance(made, Plan):
        actions = deed_names(made.edits)
        assert set(actions) <= ACTIONS.keys()
        assert deeds_sentence(actions, made.kinds[0])


def test_every_kind_has_a_cause_and_a_remedy() -> None:
    for kind in Kind:
        assert re.fullmatch(r"(an?|the|thinking|half|reasoning) [^.]*[^.,]", cause(kind)) or cause(kind)[0].islower()
        assert remedy(kind).endswith(".") and not remedy(kind).endswith("..")
        assert remedy(kind).startswith("Nothing is edited") is not is_repairable(kind)
    assert cause(None) and remedy(None)


def test_a_notice_names_a_command_once() -> None:
    go_on = "To go on: `codex resume ses_1`"
    late = event(detail="Took out 1; Codex has it open: close it, then `codex resume ses_1`")
    assert notice(late, go_on=go_on).body.splitlines()[1:] == [f"Undo: recoveryd undo {late.id}"]
    asked = event(not_resumed="Codex takes no prompts from outside")
    assert notice(asked, go_on=go_on).body.count("codex resume ses_1") == 1
    cut = event(detail=f"Took out 1 {'of these ' * 60}; close it, then `codex resume ses_1`")
    assert notice(cut, go_on=go_on).body.count("codex resume ses_1") == 1
    assert f"\n{go_on}.\n" in notice(event(), go_on=go_on).body


def test_a_notice_names_the_session_the_place_and_how_to_go_on_and_back() -> None:
    go_on = "Say “continue” to go on, once it is loaded again"
    toast = notice(event(actions=("set_aside_blank",), places=("turn 2, text",)), go_on=go_on)
    assert (toast.title, toast.news) == ("OpenCode session healed: My session", "healed")
    assert (toast.session, toast.name) == ("ses_1", "My session")
    done, how, back = toast.body.splitlines()
    assert done == "Turn 2, text: took out 1 blank text."
    assert how == f"{go_on}."
    assert back == "Undo: recoveryd undo rabc"
    assert "thinking" not in toast.body
    assert notice(event()).body.startswith("Took out 1 blank text.\n")


@pytest.mark.parametrize("title", ["", " \n", "\u200b\u3164"])
def test_a_session_without_a_title_is_named_by_its_id(title: str) -> None:
    assert notice(event(title=title)).title == "OpenCode session healed: ses_1"
    assert notice(event(title=title)).name == "ses_1"


def test_subagents_are_told_as_such_also_in_a_notice_of_many() -> None:
    asked = [notice(event(session=f"ses_{n}", title="Root"), who="Claude Code", of_subagent=True) for n in range(2)]
    assert {toast.title for toast in asked} == {"Claude Code subagent healed: Root"}
    merged = merged_toast([*asked, notice(event(session="ses_3", title="Other"))])
    assert merged.body.splitlines()[:3] == [*["• Root (Claude Code subagent)"] * 2, "• Other (OpenCode)"]
    fork = notice(event(session="ses_4"), who="OpenCode Nightly", of_subagent=True)
    assert "(OpenCode Nightly subagent)" in merged_toast([*asked, fork]).body
    ahead = [notice(event(session=f"ses_{n}", ahead=True)) for n in range(3)]
    assert merged_toast(ahead).body.endswith("Go on as usual.")


def test_a_degraded_mode_is_said() -> None:
    assert "without that thinking" in notice(event(actions=("set_aside_thinking",))).body


@pytest.mark.parametrize(
    ("outcome", "then"),
    [
        (Outcome.REFUSED, ""),
        (Outcome.NOT_UNDERSTOOD, "\nWhat it is: recoveryd explain --session ses_1"),
        (Outcome.CONFLICT, "\nTo try again: recoveryd scan --repair --session ses_1"),
        (Outcome.FAILED, "\nTo try again: recoveryd scan --repair --session ses_1"),
    ],
)
def test_a_session_that_stays_stuck_is_never_called_healed(outcome: Outcome, then: str) -> None:
    toast = notice(event(outcome, detail="The disk is full."))
    assert (toast.title, toast.news) == ("OpenCode session stuck: My session", "stuck")
    assert toast.body == "An empty message or text. The disk is full." + then
    assert "healed" not in toast.title + toast.body


def test_a_session_that_its_next_prompt_clears_is_not_called_stuck() -> None:
    toast = notice(event(Outcome.REFUSED, kind=Kind.ASSISTANT_PREFILL))
    assert (toast.title, toast.news) == ("OpenCode session unanswered: My session", "unanswered")


def test_the_last_notice_says_why_and_until_when() -> None:
    reason = "The session was repaired 3 times and is refused again. It is left alone until a prompt is answered."
    toast = notice(event(Outcome.GAVE_UP, detail=reason))
    assert (toast.title, toast.news) == ("OpenCode session given up: My session", "given up")
    assert toast.body.splitlines() == [
        reason,
        "What it is: recoveryd explain --session ses_1",
    ]


def test_only_a_healed_session_has_buttons_and_each_says_its_name_and_the_event() -> None:
    pressed: list[tuple[str, Event]] = []

    def yes() -> bool:
        return True

    for can_continue, titles in ((None, ["Undo", "Show"]), (yes, ["Continue", "Undo", "Show"])):
        made = notice_buttons(event(), lambda name, told: pressed.append((name, told)), can_continue=can_continue)
        assert [button.title for button in made] == titles
        assert notice(event(), made).buttons == made
    for button in made:
        button.pressed()
    assert pressed == [("Continue", event()), ("Undo", event()), ("Show", event())]
    for outcome in set(Outcome) - {Outcome.HEALED}:
        assert notice_buttons(event(outcome), lambda *_: None) == ()


def test_details_are_the_deeds_and_no_content() -> None:
    did = ("set_aside_thinking", "set_aside_thinking", "close_turn")
    where = ("turn 2, thinking", "turn 2, thinking", "end of turn 9")
    toast = show_notice(event(kind=Kind.THINKING_SIGNATURE_INVALID, actions=did, places=where))
    assert toast.news == "", "an answer to the user: shown at once, by itself"
    assert toast.title == "What was done: My session"
    assert toast.body.splitlines() == [
        "• turn 2, thinking: took out 2 thinking blocks the provider no longer accepts",
        "• end of turn 9: closed the open turn",
        "All of it: recoveryd show rabc",
    ]


def test_details_of_much_are_cut_and_of_nothing_known_are_the_sentence() -> None:
    places = tuple(f"turn {n}, text" for n in range(9))
    lines = show_notice(event(actions=("set_aside_blank",) * 9, places=places)).body.splitlines()
    assert (len(lines), lines[-2:]) == (7, ["and 4 more", "All of it: recoveryd show rabc"])
    assert show_notice(event()).body == "Took out 1 blank text.\nAll of it: recoveryd show rabc"


def test_a_session_that_was_told_to_go_on_asks_nothing_of_its_user() -> None:
    toast = notice(event(resumed=True))
    assert toast.title == "OpenCode session healed: My session"
    assert toast.body.splitlines() == ["Took out 1 blank text.", "It was told to go on.", "Undo: recoveryd undo rabc"]
    toast = notice(event(Outcome.REFUSED, kind=Kind.ASSISTANT_PREFILL, resumed=True))
    assert (toast.title, toast.news) == ("OpenCode session resumed: My session", "resumed")
    said = "It was refused for a request that ends with the assistant's words."
    assert toast.body.splitlines() == [said, "It was told to go on."]


def test_a_session_that_could_not_be_resumed_says_why() -> None:
    problem = "It could not be resumed: the client did not answer. Say “continue” to go on."
    for outcome in (Outcome.HEALED, Outcome.REFUSED):
        assert problem in notice(event(outcome, not_resumed="the client did not answer")).body
