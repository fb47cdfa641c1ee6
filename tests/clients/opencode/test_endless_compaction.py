"""Compactions without end, found in what they leave in the store; and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from recoveryd.core.model import Kind
from tests.support.build import SessionBuilder, tool
from tests.support.long_sessions import goes_round
from tests.support.trees import Tree

Turns = Callable[[SessionBuilder], object]


def _rounds(tree: Tree, turns: Turns) -> tuple[str, int] | None:
    """The prompt since which the client goes round, and how often it compacted since."""
    session = SessionBuilder(seed=5)
    session.user("hello")
    session.assistant(tool(), "hello")
    session.user("go on")
    turns(session)
    found = tree.store.look(tree.keep(session)).endless
    if found is None:
        return None
    assert found.kind is Kind.ENDLESS_COMPACTION
    [prompt] = [m for m in session.messages if m["id"] == found.failure.message]
    assert (prompt["role"], prompt["time"]["created"]) == ("user", found.failure.time)
    return session.parts[prompt["id"]][0]["text"], found.evidence["compactions"]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


ROUND: dict[str, Turns] = {
    "waits for an answer": lambda s: goes_round(s, 4),
    "too long by its settings": lambda s: goes_round(s, 4, by_settings=True),
    "answers": lambda s: (goes_round(s, 4), s.assistant(completed=False)),
    "was refused": lambda s: (goes_round(s, 4), s.assistant(finish=None)),
    "was stopped": lambda s: (goes_round(s, 4), s.assistant(error={"name": "MessageAbortedError", "data": {}})),
    "sums up": lambda s: (
        goes_round(s, 4),
        s.assistant(finish=None),
        s.user({"type": "compaction", "auto": True}),
        s.assistant(summary=True, completed=False),
    ),
}


@pytest.mark.parametrize("now", ROUND)
def test_it_is_found_at_any_moment_of_a_round(tree: Tree, now: str) -> None:
    assert _rounds(tree, ROUND[now]) == ("go on", 4 + (now == "sums up"))


def test_work_before_it_changes_nothing(tree: Tree) -> None:
    assert _rounds(tree, lambda s: (s.assistant(tool(), "done"), s.assistant(tool()), goes_round(s, 4))) == ("go on", 4)


def test_it_begins_anew_with_a_prompt(tree: Tree) -> None:
    assert _rounds(tree, lambda s: (goes_round(s, 9), s.user("and now?"), goes_round(s, 3))) == ("and now?", 3)


def _by_hand(s: SessionBuilder) -> None:
    goes_round(s, 5)
    for parts in s.parts.values():
        for part in parts:
            part.pop("auto", None)


GETS_ON: dict[str, Turns] = {
    "two may do": lambda s: goes_round(s, 2),
    "it was answered": lambda s: (goes_round(s, 5), s.assistant("done")),
    "it works between": lambda s: [(goes_round(s, 1), s.assistant(tool())) for _ in range(5)],
    "by hand": _by_hand,
    "its user asks": lambda s: [(goes_round(s, 2), s.user("more")) for _ in range(4)],
    "a prompt alone": lambda s: (goes_round(s, 5), s.user("more")),
}


@pytest.mark.parametrize("why", GETS_ON)
def test_what_gets_on_does_not_go_round(tree: Tree, why: str) -> None:
    assert _rounds(tree, GETS_ON[why]) is None


def test_one_whose_summary_failed_stopped_by_itself(tree: Tree) -> None:
    def turns(s: SessionBuilder) -> None:
        goes_round(s, 5)
        s.assistant(finish=None)
        marker = s.user({"type": "compaction", "auto": True})
        s.assistant(error={"name": "APIError", "data": {}}, summary=True, parentID=marker["id"])

    assert _rounds(tree, turns) is None
