"""The guard: once, ever; never in a loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.guard import Admit, GiveUp, Skip, decide
from recoveryd.ledger import Handled
from recoveryd.model import Failure, Outcome

NOW = 2_000_000_000.0
HOUR = 3600.0


def ask(handled: Handled | None = None, *, age: float = 0, **said: Any) -> Admit | Skip | GiveUp:
    failure = Failure("st", "ses_1", "msg_1", int((NOW - age) * 1000), {})
    usual = {"attempts": 0, "gave_up": False, "max_retries": 3, "session_state": "s1", "rules_version": 1}
    return decide(failure, handled, **{**usual, "now": NOW, "lookback_hours": 24, **said})


def test_a_new_failure_is_admitted() -> None:
    assert ask() == Admit()
    assert ask(attempts=2) == Admit()
    assert ask(age=-5 * HOUR) == Admit(), "a clock that was put back is no reason to leave a session stuck"


@pytest.mark.parametrize("outcome", [Outcome.HEALED, Outcome.UNDOING, Outcome.UNDONE, Outcome.GAVE_UP, Outcome.PENDING])
def test_what_was_settled_for_good_is_never_tried_again(outcome: Outcome) -> None:
    assert isinstance(ask(Handled(outcome, "s0", 0)), Skip)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.NOT_UNDERSTOOD, Outcome.CONFLICT, Outcome.FAILED])
def test_a_refusal_is_tried_again_when_the_session_or_the_rules_changed(outcome: Outcome) -> None:
    assert isinstance(ask(Handled(outcome, "s1", 1)), Skip)
    assert ask(Handled(outcome, "s0", 1)) == Admit()
    assert ask(Handled(outcome, "s1", 0)) == Admit()


def test_an_old_failure_is_left_to_scan() -> None:
    assert ask(age=23.9 * HOUR) == Admit()
    assert ask(age=24.1 * HOUR) == Skip("it is older than 24 hours")
    assert ask(age=24.1 * HOUR, lookback_hours=48) == Admit()


def test_at_the_cap_there_is_one_last_notice_and_then_quiet() -> None:
    assert ask(attempts=3) == GiveUp("The session was repaired 3 times and is refused again.")
    assert ask(attempts=1, max_retries=1) == GiveUp("The session was repaired once and is refused again.")
    assert isinstance(ask(attempts=3, gave_up=True), Skip)
    assert ask(attempts=0, gave_up=True) == Admit(), "a prompt was answered since, or the cap was raised"


def test_a_failure_that_was_handled_or_is_old_gets_no_last_notice() -> None:
    assert isinstance(ask(Handled(Outcome.HEALED, "s1", 1), attempts=3), Skip)
    assert isinstance(ask(attempts=3, age=30 * HOUR), Skip)


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
    verdict = ask(Handled(outcome, state, 1), attempts=attempts, gave_up=gave_up, max_retries=cap)
    if state == "s1" or attempts >= cap:
        assert not isinstance(verdict, Admit)
    if gave_up:
        assert not isinstance(verdict, GiveUp)
