"""What a session was stuck on when it was looked at may be over when it is to be written: then nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import Config
from recoveryd.core.model import Kind, Outcome
from recoveryd.diagnose import Context, assess, diagnose, undone_repair
from recoveryd.diagnose.triage import Next, Triage
from recoveryd.heal.undo import undo
from recoveryd.tell.callbacks import Callbacks
from tests.support.cases import case
from tests.support.parts import api_error, tool
from tests.support.trees import EMPTY, MISSING, Bench, Tree, blank_answer

GEMINI = {"providerID": "google", "modelID": "gemini-2.5-pro"}
ANSWERED = pytest.mark.parametrize("model", [GEMINI, {}], ids=["another provider", "the same"])


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@ANSWERED
def test_a_prompt_that_was_answered_since_the_look(tree: Tree, bench: Bench, model: dict[str, Any]) -> None:
    session = tree.stuck()
    failure = tree.failure(session)
    tree.answered(session, **model)
    before = tree.files()
    event = bench.recovery.attempt(case(tree.store, failure, Kind.TOOL_RESULT_MISSING)).event
    assert (event.outcome, tree.files(), bench.ledger.history(9)) == (Outcome.PENDING, before, [])
    assert "not stuck on this any more" in event.detail


@ANSWERED
def test_a_prompt_that_was_answered_while_the_parent_system_was_told(
    tree: Tree, tmp_path: Path, model: dict[str, Any]
) -> None:
    bench = Bench(tmp_path, Callbacks(on_abort=lambda session: tree.answered(session, **model)))
    session = tree.stuck()
    before = tree.files()
    event = bench.attempt(tree, session)
    assert (event.outcome, bench.ledger.history(9)) == (Outcome.PENDING, [])
    assert {name: tree.files()[name] for name in before} == before


def test_what_the_user_undid_since_the_look_is_not_made_again(tree: Tree, bench: Bench) -> None:
    session = tree.stuck()
    failure = tree.failure(session)
    event = bench.attempt(tree, session)
    undo(tree.store, bench.ledger, bench.ledger.get(event.id))
    before = tree.files()
    again = bench.recovery.attempt(
        case(tree.store, failure, Kind.TOOL_RESULT_MISSING),
        lambda: undone_repair(tree.store, bench.ledger, failure) is None,
    ).event
    assert (again.outcome, tree.files()) == (Outcome.PENDING, before)


def test_what_another_process_repaired_since_the_look_is_its_heal(tree: Tree, bench: Bench) -> None:
    """Of a part that can't be sent nothing is left to be found then."""
    session = tree.stuck()
    tree.part(session, "text", 1).write_bytes(b"{")
    failure = tree.failure(session)
    first = bench.recovery.attempt(case(tree.store, failure, Kind.UNSENDABLE_PART)).event
    assert first.outcome is Outcome.HEALED
    before = tree.files()
    second = bench.recovery.attempt(case(tree.store, failure, Kind.TOOL_RESULT_MISSING)).event
    assert (second.id, second.outcome, tree.files()) == (first.id, Outcome.HEALED, before)


class TestBehindARepairThatStands:
    """A part that breaks while a healed session waits for its prompt: a failure of its own, of the same message."""

    def test_it_is_found_and_mended_once(self, tree: Tree, bench: Bench) -> None:
        session = tree.stuck(blank_answer, EMPTY)
        first = bench.attempt(tree, session)
        assert first.outcome is Outcome.HEALED
        assert self._judged(tree, bench, session) == (Next.NOTHING, Kind.EMPTY_CONTENT)
        broken = tree.part(session, "text", 0)
        broken.write_bytes(b"{")
        assert self._judged(tree, bench, session) == (Next.RECOVER, Kind.UNSENDABLE_PART)
        failure = tree.failure(session)
        second = bench.recovery.attempt(case(tree.store, failure, Kind.UNSENDABLE_PART)).event
        assert second.outcome is Outcome.HEALED and second.id != first.id and second.message == first.message
        assert self._judged(tree, bench, session)[0] is Next.NOTHING

    def test_what_a_repair_wrote_and_somebody_broke_again_is_not_new(self, tree: Tree, bench: Bench) -> None:
        session = tree.stuck(blank_answer, EMPTY)
        event = bench.attempt(tree, session)
        written = next(c.key for c in event.changes if c.after is not None and c.key.startswith("part/"))
        (tree.root / written).write_bytes(b"{")
        assert self._judged(tree, bench, session)[0] is Next.NOTHING

    def _judged(self, tree: Tree, bench: Bench, session: str) -> tuple[Next, Kind | None]:
        """What the daemon does, and what a person is told."""
        later = tree.failure(session).time / 1000 + 60
        context = Context(bench.ledger, Config(), bench.state, clock=lambda: later)
        verdict, found = Triage(context, print).judge(tree.store, session), diagnose(context, tree.store, session)
        return verdict.next, found.kind if found is not None else None


class TestAPromptThatWasOnItsWay:
    """Stored before a repair was written, and its answer behind it: the client had read the session by then."""

    @pytest.mark.parametrize(("ago", "took"), [(300, 0), (3_000, 4_000)])
    def test_its_refusal_tells_nothing_of_what_is_stored(self, tree: Tree, bench: Bench, ago: int, took: int) -> None:
        """Also where its answer was begun before, and stored behind it."""
        session = tree.stuck()
        event = bench.attempt(tree, session)
        at = int(bench.ledger.get(event.id).time * 1000)
        assert self._judged(tree, bench, session, at - ago, took=took) == (Next.NOTHING, event.id)
        assert self._judged(tree, bench, session, at + 5_000) == (Next.RECOVER, None), "it has read the repair"

    def test_so_does_one_of_another_kind(self, tree: Tree, bench: Bench) -> None:
        session = tree.stuck()
        event = bench.attempt(tree, session)
        at = int(bench.ledger.get(event.id).time * 1000)
        assert self._judged(tree, bench, session, at - 300, words=EMPTY) == (Next.NOTHING, event.id)

    def test_a_further_step_has_read_all(self, tree: Tree, bench: Bench) -> None:
        session = tree.stuck()
        event = bench.attempt(tree, session)
        at = int(bench.ledger.get(event.id).time * 1000)
        assert self._judged(tree, bench, session, at - 300, steps=1) == (Next.RECOVER, None)

    def _judged(
        self, tree: Tree, bench: Bench, session: str, asked: int, *, steps: int = 0, took: int = 0, words: str = MISSING
    ) -> tuple[Next, str | None]:
        """What the daemon does about a prompt of that time that is refused, and the repair that a person is told of."""
        made = tree.made(session)
        made._ms = asked
        made.user("continue")
        for _ in range(steps):
            made.assistant(tool(call_id="toolu_02"))
        failed = made.assistant(error=api_error(words, 400))
        failed["time"]["completed"] = failed["time"]["created"] + took
        tree.keep(made)
        later = tree.failure(session).time / 1000 + 60
        context = Context(bench.ledger, Config(), bench.state, clock=lambda: later)
        found = assess(context, tree.store, session)
        repaired = found.repaired if found is not None else None
        return Triage(context, print).judge(tree.store, session).next, repaired.id if repaired is not None else None
