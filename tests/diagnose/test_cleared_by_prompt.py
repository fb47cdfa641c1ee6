"""A refusal that the next prompt clears: the session is told, and does not count as stuck."""

from __future__ import annotations

import json

import pytest

from recoveryd.core.model import Kind, Outcome
from recoveryd.diagnose import assess
from tests.conftest import Run
from tests.support.build import MODEL, SessionBuilder
from tests.support.cases import case
from tests.support.parts import text
from tests.support.trees import Bench, Tree

WORDS = {
    Kind.ASSISTANT_PREFILL: "This model does not support assistant message prefill. The conversation must end with a "
    "user message.",
    Kind.TRAILING_WHITESPACE: "messages: final assistant content cannot end with trailing whitespace",
}


def fine(session: SessionBuilder) -> None:
    session.user("list the files")
    session.assistant(text("a and b"))


@pytest.mark.parametrize("kind", WORDS)
def test_it_is_told_and_not_stuck(tree: Tree, bench: Bench, run: Run, kind: Kind) -> None:
    session = tree.stuck(fine, WORDS[kind], model=MODEL)
    before, failure = tree.files(), tree.failure(session)
    found = assess(bench.recovery.context, tree.store, session)
    assert found is not None and (found.diagnosis.kind, found.stuck) == (kind, False)
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    data = json.loads(out)
    assert (code, data["stuck"], [one["reason"] for one in data["elsewhere"]]) == (0, [], [kind])
    assert "1 ended in a refusal that its next prompt clears" in " ".join(run("scan")[1].split())
    assert "a new prompt clears it" in " ".join(run("explain", "--session", session)[1].split())
    told = bench.recovery.attempt(case(tree.store, failure, kind))
    assert told.outcome is Outcome.REFUSED, "the daemon says so once, and does not wait for anything else"
    assert "a new prompt clears it" in told.event.detail
    assert tree.files() == before
