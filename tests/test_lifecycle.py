"""The one way of a repair: made, read back when the client had its time, told once; in the foreground and by jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from pathlib import Path

import pytest

from recoveryd.core.errors import BusyError
from recoveryd.core.model import Event, Outcome
from recoveryd.heal import lifecycle as module
from recoveryd.heal.lifecycle import Lifecycle
from recoveryd.tell.event_words import headline
from tests.support.cases import case, case_of, notice
from tests.support.judge import refusal
from tests.support.trees import EMPTY, Bench, Tree, blank_answer, write_over


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def begun(tree: Tree, lifecycle: Lifecycle, session: str) -> Event:
    return lifecycle.begin(case(tree.store, tree.failure(session))).event


def test_several_are_repaired_first_and_then_read_back(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each a second after its repair, which for all of them together is little more than one second."""
    monkeypatch.setattr(module, "CONFIRM_S", 0.4)
    sessions = [tree.stuck(blank_answer, EMPTY) for _ in range(4)]
    ended: list[Event] = []
    lifecycle = Lifecycle(bench.recovery, lambda case: ended.append(case.event))
    for session in sessions:
        assert begun(tree, lifecycle, session).outcome is Outcome.HEALED
    assert ended == [], "nothing is told before it is certain"
    write_over(tree.part(sessions[1], "text", 1), text=" ")
    began = time.monotonic()
    lifecycle.finish()
    assert 0.1 < time.monotonic() - began < 4 * 0.4
    assert [(event.session, event.outcome) for event in ended] == [(session, Outcome.HEALED) for session in sessions]
    assert all(refusal(tree.store.load(session), thinking=False) is None for session in sessions)
    assert lifecycle.waiting() == []


def test_what_is_no_heal_is_told_at_once(tree: Tree, bench: Bench) -> None:
    ended: list[Event] = []
    lifecycle = Lifecycle(bench.recovery, lambda case: ended.append(case.event))
    event = begun(tree, lifecycle, tree.stuck(words=EMPTY))
    assert event.outcome is Outcome.NOT_UNDERSTOOD
    assert ended == [event] and lifecycle.waiting() == []


@pytest.mark.parametrize("overwritten", [False, True])
@pytest.mark.parametrize("answered", [False, True])
def test_what_nobody_read_back_is_taken_up_once_by_another_process(
    tree: Tree, bench: Bench, tmp_path: Path, lines: list[str], overwritten: bool, answered: bool
) -> None:
    """It is made again where the session still needs it, and told in any case: its own process could not."""
    session = tree.stuck(blank_answer, EMPTY)
    event = bench.attempt(tree, session)
    if overwritten:
        write_over(tree.part(session, "text", 1), text=" ")
    if answered:
        tree.answered(session)
    before = tree.files()
    later, ended = Bench(tmp_path), list[Event]()
    lifecycle = Lifecycle(later.recovery, lambda case: ended.append(case.event))
    for _ in range(2):
        lifecycle.take_up(tree.store)
        lifecycle.finish()
    assert [(told.id, told.outcome) for told in ended] == [(event.id, Outcome.HEALED)]
    assert (tree.files() != before) == (overwritten and not answered)
    assert any("it is made again if it has to be" in line for line in lines) == (overwritten or answered)
    assert any("went on since, or its turn was taken back" in line for line in lines) == answered
    assert answered or refusal(tree.store.load(session), thinking=False) is None
    assert later.ledger.unconfirmed() == []
    later.ledger.close()


def test_what_its_own_process_reads_back_meanwhile_is_told_by_that_one_alone(
    tree: Tree, bench: Bench, tmp_path: Path
) -> None:
    failure = tree.failure(session := tree.stuck(blank_answer, EMPTY))
    event = bench.attempt(tree, session)
    later, ended = Bench(tmp_path), list[Event]()
    lifecycle = Lifecycle(later.recovery, lambda case: ended.append(case.event))
    lifecycle.take_up(tree.store)
    assert bench.recovery.confirm(case_of(tree.store, failure, event)).event.outcome is Outcome.HEALED
    lifecycle.finish()
    assert ended == [] and lifecycle.waiting() == []
    later.ledger.close()


def test_what_was_taken_up_and_put_off_in_the_middle_is_told_in_the_end(
    tree: Tree, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause that comes while it is made again leaves it pending in the ledger: then it is nobody's heal yet."""
    session = tree.stuck(blank_answer, EMPTY)
    event = bench.attempt(tree, session)
    write_over(tree.part(session, "text", 1), text=" ")
    later, ended = Bench(tmp_path), list[Event]()
    lifecycle = Lifecycle(later.recovery, lambda case: ended.append(case.event))
    lifecycle.take_up(tree.store)
    held = iter([None, "it is paused"])
    monkeypatch.setattr(later.recovery, "_held", lambda *_: next(held, None))
    lifecycle.confirm(event.id)
    assert ended == [] and [entry.id for entry in later.ledger.pending()] == [event.id]
    lifecycle.take_up(tree.store)
    lifecycle.finish()
    assert [(told.id, told.outcome) for told in ended] == [(event.id, Outcome.HEALED)]
    assert refusal(tree.store.load(session), thinking=False) is None
    later.ledger.close()


@pytest.mark.parametrize("last", [False, True])
def test_what_cannot_be_read_back_now_is_tried_again_until_the_last_time(
    tree: Tree, bench: Bench, monkeypatch: pytest.MonkeyPatch, last: bool
) -> None:
    jobs: list[tuple[float, Hashable, Callable[[], object]]] = []
    ended: list[Event] = []
    lifecycle = Lifecycle(bench.recovery, lambda case: ended.append(case.event), lambda *job: jobs.append(job))
    session = tree.stuck(blank_answer, EMPTY)
    event = begun(tree, lifecycle, session)
    write_over(tree.part(session, "text", 1), text=" ")

    def busy(*_: object) -> None:
        raise BusyError("It is being repaired by another process.")

    with monkeypatch.context() as patch:
        patch.setattr("recoveryd.heal.recovery.recovery_lock", busy)
        lifecycle.confirm(event.id, last=last)
    if last:
        assert [told.outcome for told in ended] == [Outcome.PENDING]
        assert "not read back yet. It is being repaired by another" in ended[0].detail, "nobody looked what is stored"
        return
    assert ended == [] and lifecycle.waiting() == [event.id]
    [(first, key, _), (again, same, job)] = jobs
    assert key == same and first == module.CONFIRM_S < again
    job()
    assert [told.outcome for told in ended] == [Outcome.HEALED]
    assert refusal(tree.store.load(session), thinking=False) is None


def test_what_is_told_late_says_that_the_session_was_refused_since(tree: Tree, bench: Bench) -> None:
    """It stands as it was made, and the provider said something new of it meanwhile: no word of a heal alone."""
    session = tree.stuck()
    failure, event = tree.failure(session), bench.attempt(tree, session)
    assert not bench.recovery.confirm(case_of(tree.store, failure, event)).event.refused_since
    tree.refused(session, "messages.3: a rule that is new")
    late = bench.recovery.confirm(case_of(tree.store, failure, event)).event
    assert (late.outcome, late.refused_since) == (Outcome.HEALED, True)
    assert headline(late).endswith("; a later prompt was refused for a reason that is not known")
    shown = notice(late)
    assert "refused again" in shown.title and f"recoveryd explain --session {session}" in shown.body
