"""One case from the diagnosis to what the user is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recoveryd import heal
from recoveryd.core.errors import RefusedError
from recoveryd.core.model import Kind, Outcome, Refused
from recoveryd.diagnose import Case, diagnose
from recoveryd.diagnose.case import case_from_ledger
from tests.support.trees import Bench, Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_it_keeps_what_the_diagnosis_found(tree: Tree, bench: Bench) -> None:
    found = diagnose(bench.recovery.context, tree.store, tree.stuck())
    assert found is not None and found.refused is not None
    assert (found.refused.ids, found.refused.position, found.refused.by_error) == (("toolu_01",), (1, None), True)
    case = Case.begin(tree.store, found.failure, found.refused, "r1")
    assert (case.recovery, case.session, case.kind) == ("r1", found.failure.session, Kind.TOOL_RESULT_MISSING)
    done = case.became(Outcome.HEALED, "Done").updated(title="My session")
    assert done.became(Outcome.PENDING).event == replace(
        case.event, outcome=Outcome.PENDING, detail="Done", title="My session"
    )
    assert done.refused is found.refused


def test_an_error_is_classified_by_the_diagnosis_alone() -> None:
    modules = Path(next(iter(heal.__path__))).glob("*.py")
    assert [module.name for module in modules if "classify" in module.read_text(encoding="utf-8")] == []


def test_a_recovery_of_the_ledger_is_about_the_message_that_failed(tree: Tree, bench: Bench) -> None:
    """By its time, too: a client that listens is known by the message and when it was made."""
    session = tree.stuck()
    event = bench.attempt(tree, session)
    case = case_from_ledger(tree.store, bench.ledger.get(event.id))
    assert case.refused == Refused(Kind.TOOL_RESULT_MISSING)
    assert (case.failure.message, case.failure.time) == (event.message, tree.failure(session).time)
    assert (case.recovery, case.outcome, case.event.detail) == (event.id, Outcome.HEALED, event.detail)


def test_a_recovery_of_a_kind_that_is_not_known_is_refused_in_words(tree: Tree, bench: Bench) -> None:
    event = bench.attempt(tree, tree.stuck())
    unknown = replace(bench.ledger.get(event.id), kind=None)
    with pytest.raises(RefusedError, match="of a kind that this version of recoveryd does not know"):
        Case.of_entry(tree.store, unknown, 0)
