"""When a healed session is told to go on by itself, and each reason not to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from recoveryd.clients.client import Prompt
from recoveryd.clients.opencode.prompting import last_prompt, prompt_body, resumed_by, stopped
from recoveryd.core.failure_kinds import KINDS
from recoveryd.core.model import Failure, Kind, Message, Outcome, Part, Session
from recoveryd.heal.resume_policy import A_DAY, Leave, Resume, Situation, decide_resume
from recoveryd.ledger.seen_and_resumed import Resumed

NOW = 1_795_000_000.0
MODEL = {"providerID": "anthropic", "modelID": "claude"}
ANSWERED = int((NOW - 90) * 1000)


def at(seconds: float) -> int:
    """Milliseconds, so many seconds before now."""
    return int((NOW - seconds) * 1000)


def prompt(ago: float, text: str = "go", metadata: Any = None, **fields: Any) -> Message:
    name = f"msg_{at(ago)}u"
    part = Part(f"prt_{at(ago)}", name, {"type": "text", "text": text, **({"metadata": metadata} if metadata else {})})
    return Message(name, {"role": "user", "time": {"created": at(ago)}, **fields}, (part,))


def answer(ago: float, error: str = "", **fields: Any) -> Message:
    data = {"role": "assistant", "time": {"created": at(ago), "completed": at(ago) + 20}, **fields}
    return Message(f"msg_{at(ago)}a", {**data, **({"error": {"name": error}} if error else {"finish": "stop"})})


ASKED = prompt(10, agent="build", model=MODEL, variant="high")
FAILED = answer(3, "APIError")
OURS = {"recoveryd": {"recovery": "r0", "resume": True}}


def case(*newer: Message, **fields: Any) -> Situation:
    """A session that was healed three seconds after it was refused, with nothing in its way."""
    session = Session("store", "ses_1", (prompt(99, agent="plan"), answer(90), ASKED, FAILED, *newer))
    failure = Failure("store", "ses_1", FAILED.id, FAILED.created)
    given = Situation(
        "r1", Outcome.HEALED, Kind.TOOL_RESULT_MISSING, failure, session, (), ANSWERED, NOW, NOW - 1000, 3, Prompt()
    )
    given = replace(given, **fields)
    newest = given.session.newest
    return replace(given, prompt=last_prompt(given.session), stopped=newest is not None and stopped(newest))


def resumed(count: int, ago: float = 30, **fields: Any) -> tuple[Resumed, ...]:
    return tuple(
        Resumed(f"old{n}", NOW - ago - n, **{"thinking_off": False, "answered": ANSWERED, **fields})
        for n in range(count)
    )


def test_a_healed_session_goes_on_as_its_user_last_asked() -> None:
    assert decide_resume(case()) == Resume(Prompt("build", MODEL, "high"))


def test_what_the_prompt_holds() -> None:
    assert prompt_body(Prompt("build", MODEL, "high"), "continue", "r1") == {
        "parts": [{"type": "text", "text": "continue", "metadata": {"recoveryd": {"recovery": "r1", "resume": True}}}],
        "agent": "build",
        "model": MODEL,
        "variant": "high",
    }
    assert set(prompt_body(Prompt(), "continue", "r1")) == {"parts"}, "a null is refused by 1.1"


def test_the_newer_client_keeps_the_variant_in_the_model() -> None:
    asked = prompt(10, agent="build", model={**MODEL, "variant": "max"})
    session = replace(case().session, messages=(asked, FAILED))
    assert decide_resume(case(session=session)) == Resume(Prompt("build", MODEL, "max"))


@pytest.mark.parametrize(
    "fields", [{}, {"agent": 1, "model": []}, {"agent": "", "model": {"providerID": "x"}, "variant": None}]
)
def test_what_the_last_prompt_does_not_say_is_left_to_the_client(fields: dict[str, Any]) -> None:
    session = replace(case().session, messages=(prompt(10, **fields), FAILED))
    assert decide_resume(case(session=session)) == Resume(Prompt())


def test_a_prompt_of_our_own_is_not_what_the_user_asked() -> None:
    own = prompt(5, "continue", OURS, agent="build", model=MODEL)
    session = replace(case().session, messages=(ASKED, answer(8, "APIError"), own, FAILED))
    assert decide_resume(case(session=session)) == Resume(Prompt("build", MODEL, "high"))
    assert (resumed_by(own), resumed_by(ASKED), resumed_by(FAILED)) == ("r0", None, None)
    assert resumed_by(prompt(5, "x", {"recoveryd": {"recovery": "r0"}})) is None, "a placeholder, in the user's own"


def reason(given: Situation) -> str:
    decided = decide_resume(given)
    assert isinstance(decided, Leave)
    return decided.reason


NEVER: dict[str, tuple[Callable[[], Situation], str]] = {
    "a subagent": (lambda: case(session=replace(case().session, parent="ses_0")), "it is the session of a subagent"),
    "undone by the user": (
        lambda: case(session=replace(case().session, revert={"messageID": ASKED.id})),
        "a prompt would delete what its user has undone",
    ),
    "a newer prompt": (lambda: case(prompt(1)), "there is a newer prompt"),
    "a newer prompt, answered": (lambda: case(prompt(2), answer(1)), "it went on"),
    "stopped by the user": (lambda: case(prompt(2), answer(1, "MessageAbortedError")), "its user stopped it"),
    "stopped at the end": (lambda: case(answer(1, "MessageAbortedError")), "its user stopped it"),
    "a failure that is gone": (
        lambda: case(session=replace(case().session, messages=(ASKED,))),
        "the failed message is gone",
    ),
    "an empty session": (lambda: case(session=replace(case().session, messages=())), "the failed message is gone"),
    "at start": (lambda: case(started=NOW - 1), "it was refused before recoveryd was started"),
    "too late": (lambda: case(now=NOW + 58), "it was refused more than 60 seconds ago"),
    "before it happened": (lambda: case(now=NOW - 64), "it was refused more than 60 seconds ago"),
    "once a recovery": (
        lambda: case(resumes=(Resumed("r1", NOW - 95, thinking_off=False),)),
        "this recovery has resumed it before",
    ),
    "at the cap": (lambda: case(resumes=resumed(3)), "it was resumed 3 times without an answer"),
    "at a lower cap": (lambda: case(resumes=resumed(1), max_retries=1), "it was resumed once without an answer"),
    "all day": (lambda: case(resumes=resumed(A_DAY, 3600, answered=1)), "it was resumed 10 times in a day"),
    "refused": (lambda: case(outcome=Outcome.REFUSED), "it was not repaired"),
    "a conflict": (lambda: case(outcome=Outcome.CONFLICT), "it was not repaired"),
    "a fault": (lambda: case(outcome=Outcome.FAILED), "it was not repaired"),
    "undone": (lambda: case(outcome=Outcome.UNDONE), "it was not repaired"),
    "not understood": (
        lambda: case(outcome=Outcome.NOT_UNDERSTOOD, kind=Kind.THINKING_BLOCK_ORDER),
        "it was not repaired",
    ),
    "too long": (lambda: case(outcome=Outcome.REFUSED, kind=Kind.CONTEXT_OVERFLOW), "it was not repaired"),
}


@pytest.mark.parametrize("name", NEVER)
def test_never(name: str) -> None:
    make, why = NEVER[name]
    assert reason(make()) == why


def test_the_last_moments_in_which_it_still_is() -> None:
    assert isinstance(decide_resume(case(started=FAILED.completed / 1000)), Resume)
    assert isinstance(decide_resume(case(now=FAILED.completed / 1000 + 60)), Resume)
    assert isinstance(decide_resume(case(resumes=resumed(2))), Resume)
    assert isinstance(decide_resume(case(resumes=resumed(A_DAY - 1, 3600, answered=1))), Resume)
    assert isinstance(decide_resume(case(resumes=resumed(A_DAY, 86_400, answered=1))), Resume), "yesterday"


def test_what_was_answered_since_does_not_count_against_the_cap() -> None:
    assert isinstance(decide_resume(case(resumes=resumed(3, answered=ANSWERED - 1000))), Resume)


def test_a_turn_that_the_client_tried_for_a_minute_failed_at_its_end() -> None:
    failed = Message(FAILED.id, {**FAILED.data, "time": {"created": at(70), "completed": at(3)}})
    assert isinstance(decide_resume(case(session=replace(case().session, messages=(prompt(99), failed)))), Resume)


@pytest.mark.parametrize("kind", [Kind.ASSISTANT_PREFILL, Kind.TRAILING_WHITESPACE])
def test_what_a_prompt_clears_needs_no_edit(kind: Kind) -> None:
    assert decide_resume(case(outcome=Outcome.REFUSED, kind=kind)) == Resume(Prompt("build", MODEL, "high"))
    assert reason(case(outcome=Outcome.REFUSED, kind=kind, resumes=resumed(3))).startswith("it was resumed 3 times")


@pytest.mark.parametrize("kind", [kind for kind in Kind if KINDS[kind].thinking])
def test_after_a_second_refusal_of_thinking_it_is_turned_off_once(kind: Kind) -> None:
    assert decide_resume(case(kind=kind)) == Resume(Prompt("build", MODEL, "high"))
    assert decide_resume(case(kind=kind, resumes=resumed(1))) == Resume(Prompt("build", MODEL, None), thinking_off=True)
    tried = (*resumed(1), *resumed(1, 20, thinking_off=True))
    assert decide_resume(case(kind=kind, resumes=tried)) == Resume(Prompt("build", MODEL, "high"))


def test_thinking_is_turned_off_even_where_there_is_nothing_left_to_repair() -> None:
    kind, outcome = Kind.THINKING_SIGNATURE_INVALID, Outcome.NOT_UNDERSTOOD
    assert decide_resume(case(kind=kind, outcome=outcome, resumes=resumed(1))) == Resume(
        Prompt("build", MODEL, None), thinking_off=True
    )
    tried = resumed(1, thinking_off=True)
    assert reason(case(kind=kind, outcome=outcome, resumes=tried)) == "it was not repaired"


def test_thinking_stays_on_for_what_is_not_about_it() -> None:
    assert decide_resume(case(kind=Kind.EMPTY_CONTENT, resumes=resumed(1))) == Resume(Prompt("build", MODEL, "high"))


def test_where_there_was_no_thinking_none_is_turned_off() -> None:
    session = replace(case().session, messages=(prompt(10, agent="build", model=MODEL), FAILED))
    given = case(kind=Kind.THINKING_BLOCK_ORDER, resumes=resumed(1), session=session)
    assert decide_resume(given) == Resume(Prompt("build", MODEL, None))
    assert reason(replace(given, outcome=Outcome.NOT_UNDERSTOOD)) == "it was not repaired"


def test_order_is_by_time_for_ids_start_again() -> None:
    newer = Message("msg_000000000001", {"role": "user", "time": {"created": at(1)}})
    assert reason(case(newer)) == "there is a newer prompt"
    session = replace(case().session, messages=(newer, *case().session.messages))
    assert reason(case(session=session)) == "there is a newer prompt"


@pytest.mark.parametrize("name", NEVER)
def test_what_a_person_asks_for_is_done_unless_something_is_in_the_way(name: str) -> None:
    make, why = NEVER[name]
    decided = decide_resume(replace(make(), asked=True))
    if any(word in why for word in ("newer prompt", "went on", "user stopped", "is gone", "would delete")):
        assert decided == Leave(why)
    else:
        assert isinstance(decided, Resume)


def test_a_turn_that_was_cut_off_is_an_abort_and_goes_on_only_when_a_person_says_so() -> None:
    ended = case(kind=Kind.INTERRUPTED_TURN)
    assert decide_resume(ended) == Leave("it was cut off, not refused")
    assert decide_resume(replace(ended, asked=True)) == Resume(Prompt("build", MODEL, "high"))
