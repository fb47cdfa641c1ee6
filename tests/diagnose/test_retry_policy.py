"""The retry policy: once, ever; never in a loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.clients import Config
from recoveryd.clients.find import Clients
from recoveryd.core import Kind
from recoveryd.core.model import Message, Outcome, Part, PastRecovery, Session
from recoveryd.diagnose.retry_policy import Admit, GiveUp, Skip, decide_retry, vain_since_success
from recoveryd.ledger.ledger import Handled

CLIENT = next(iter(Clients(Config()).all()))


def ask(handled: Handled | None = None, **said: Any) -> Admit | Skip | GiveUp:
    usual = {"tries": (), "max_retries": 3, "session_state": "s1", "rules_version": 1}
    return decide_retry(handled, **{**usual, **said})


def made(*outcomes: Outcome) -> list[PastRecovery]:
    return [PastRecovery(f"r{n}", f"msg_{n}", outcome) for n, outcome in enumerate(outcomes)]


THRICE = made(*[Outcome.HEALED] * 3)
LAST = PastRecovery("r9", "msg_9", Outcome.GAVE_UP)


def test_a_new_failure_is_admitted() -> None:
    assert ask() == Admit()
    assert ask(tries=THRICE[:2]) == Admit()


@pytest.mark.parametrize("outcome", [Outcome.HEALED, Outcome.UNDOING, Outcome.UNDONE, Outcome.GAVE_UP, Outcome.PENDING])
def test_what_was_settled_for_good_is_never_tried_again(outcome: Outcome) -> None:
    assert isinstance(ask(Handled(outcome, "s0", 0)), Skip)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.NOT_UNDERSTOOD, Outcome.CONFLICT, Outcome.FAILED])
def test_a_refusal_is_tried_again_when_the_session_or_the_rules_changed(outcome: Outcome) -> None:
    assert isinstance(ask(Handled(outcome, "s1", 1)), Skip)
    assert ask(Handled(outcome, "s0", 1)) == Admit()
    assert ask(Handled(outcome, "s1", 0)) == Admit()


def test_at_the_cap_there_is_one_last_notice_and_then_quiet() -> None:
    assert ask(tries=THRICE) == GiveUp("The session was repaired 3 times and is refused again.")
    assert ask(tries=THRICE[:1], max_retries=1) == GiveUp("The session was repaired once and is refused again.")
    assert isinstance(ask(tries=[*THRICE, LAST]), Skip)
    assert ask(tries=[*THRICE, LAST], max_retries=4) == Admit(), "the cap was raised"
    assert ask(tries=[LAST]) == Admit()


def test_what_the_user_undid_is_not_made_again_at_the_next_prompt() -> None:
    undone = made(Outcome.HEALED, Outcome.UNDONE)
    assert isinstance(ask(tries=undone, undone=undone[1]), Skip)
    assert isinstance(ask(tries=[*THRICE, *undone], undone=undone[1]), Skip), "and no last notice"


def test_a_failure_that_was_handled_gets_no_last_notice() -> None:
    assert isinstance(ask(Handled(Outcome.HEALED, "s1", 1), tries=THRICE), Skip)


@given(
    outcome=st.sampled_from(Outcome),
    attempts=st.integers(0, 10),
    cap=st.integers(1, 10),
    gave_up=st.booleans(),
    state=st.sampled_from(["s0", "s1"]),
)
def test_it_is_never_admitted_twice_alike_nor_beyond_the_cap(
    outcome: Outcome, attempts: int, cap: int, gave_up: bool, state: str
) -> None:
    tries = [*made(*[Outcome.HEALED] * attempts), *([LAST] if gave_up else [])]
    verdict = ask(Handled(outcome, state, 1), tries=tries, max_retries=cap)
    if state == "s1" or attempts >= cap:
        assert not isinstance(verdict, Admit)
    if gave_up:
        assert not isinstance(verdict, GiveUp)


class TestSinceSuccess:
    """A session of prompts (u: the user's, r: a resume of ours), steps (s), failures (f) and shell commands (!)."""

    def left(self, turns: str, *failed: int, kind: Kind = Kind.TOOL_RESULT_MISSING) -> list[int]:
        messages: list[Message] = []
        asked = ""
        for n, what in enumerate(turns):
            time = {"created": 1000 * (n + 1), "completed": 1000 * (n + 1)}
            if what in "ur":
                asked = f"msg_{n}"
                mark = {"metadata": {"recoveryd": {"recovery": "r1", "resume": True}}} if what == "r" else {}
                part = Part(f"prt_{n}", asked, {"type": "text", "text": "go", **mark})
                messages.append(Message(asked, {"role": "user", "time": time}, (part,)))
            else:
                error = {"error": {"name": "APIError"}} if what == "f" else {}
                data = {"role": "assistant", "parentID": asked, "time": time, **error}
                call = (Part(f"prt_{n}", f"msg_{n}", {"type": "tool"}),) if what == "!" else ()
                messages.append(Message(f"msg_{n}", data, call))
        tries = [PastRecovery(f"r{n}", f"msg_{n}", Outcome.HEALED, kind=kind.value) for n in failed]
        session = Session("st", "ses_1", tuple(messages))
        return [int(one.recovery[1:]) for one in vain_since_success(session, tries, CLIENT)]

    @pytest.mark.parametrize(
        ("turns", "failed", "expected"),
        [
            ("ufufuf", (1, 3), [1, 3]),
            ("ufussf", (1,), []),
            ("ufusfuf", (1, 4), [4]),
            ("usssfuf", (4,), [4]),  # the steps came before it failed
            ("ufrssf", (1,), [1]),  # nobody asked but us: this could go on for ever
            ("ufrsfrsf", (1, 4), [1, 4]),
            ("ufu!uf", (1,), [1]),  # no model was asked
            ("ufus", (9,), [9]),  # the message is gone
        ],
    )
    def test_a_try_behind_which_a_prompt_of_the_user_got_on_was_a_success(
        self, turns: str, failed: tuple[int, ...], expected: list[int]
    ) -> None:
        assert self.left(turns, *failed) == expected

    @pytest.mark.parametrize(
        ("turns", "failed", "expected"),
        [
            ("ufusfusf", (1, 4), [1, 4]),  # each step brings new reasoning, which is rejected with the next
            ("ufusfusfus", (1, 4, 7), []),  # the last prompt was answered
            ("ufususf", (1,), []),  # one prompt in between was
        ],
    )
    def test_reasoning_that_is_rejected_anew_each_time_comes_to_the_cap(
        self, turns: str, failed: tuple[int, ...], expected: list[int]
    ) -> None:
        assert self.left(turns, *failed, kind=Kind.REASONING_ITEM) == expected

    def test_what_was_repaired_where_nothing_had_failed_was_no_try(self) -> None:
        for kind in (Kind.CONTEXT_OVERFLOW, Kind.TOOL_RESULT_MISSING):
            assert self.left("usf", 1, 2, kind=kind) == [2]
        assert self.left("usf", 1, 2, kind=Kind.UNSENDABLE_PART) == [1, 2]
