"""What `watch` shows anew of a session that nobody writes to: by what its user said of it, or by another session."""

from __future__ import annotations

import time

import pytest

from recoveryd.cli.live_sessions import LiveSessions, State
from recoveryd.clients import Config
from recoveryd.settings import paths
from tests.conftest import Run
from tests.support.build import SessionBuilder
from tests.support.plant import write_tree
from tests.support.trees import EMPTY, Tree, blank_answer

UNKNOWN = "The flux capacitor is not charged"


class Live:
    """The live sessions of a tree, by a clock that the test sets."""

    def __init__(self, tree: Tree) -> None:
        self.late = 0.0
        self._live = LiveSessions(Config(), lambda: [tree.store], clock=lambda: time.time() + self.late)

    def states(self) -> dict[str, State]:
        return {row.session: row.state for row in self._live.refresh()}


@pytest.fixture
def live(tree: Tree) -> Live:
    return Live(tree)


@pytest.mark.parametrize("by", ["session", "folder"])
def test_a_session_is_ignored_and_not_any_more_while_it_is_shown(live: Live, tree: Tree, run: Run, by: str) -> None:
    session, folder = tree.stuck(blank_answer, EMPTY), tree.store
    named = session if by == "session" else str(folder.about(session).directory)
    assert live.states() == {session: State.STUCK}
    assert run("ignore", named)[0] == 0
    assert live.states() == {session: State.IGNORED}
    assert run("ignore", "--remove", named)[0] == 0
    assert live.states() == {session: State.STUCK}


def test_what_is_ignored_is_read_again_once_it_can_be(live: Live, tree: Tree, run: Run) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    assert run("ignore", session)[0] == 0
    file = paths.state_dir() / "ignore.json"
    said = file.read_text()
    file.write_text("{")
    assert live.states() == {session: State.STUCK}
    file.write_text(said)
    assert live.states() == {session: State.IGNORED}


def test_only_what_is_ignored_now_has_all_looked_at_again(
    live: Live, tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    assert run("ignore", session)[0] == 0
    live.states()
    monkeypatch.setattr(type(tree.store), "look", lambda *_: pytest.fail("it was looked at"))
    live.late = 60
    assert live.states() == {session: State.IGNORED}


def test_only_a_refused_subagent_is_looked_at_again_and_again(
    live: Live, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(blank_answer, UNKNOWN)
    assert live.states() == {session: State.STUCK}
    monkeypatch.setattr(type(tree.store), "look", lambda *_: pytest.fail("it was looked at"))
    live.late = 60
    assert live.states() == {session: State.STUCK}


def test_a_refused_subagent_is_not_stuck_any_more_once_the_session_that_asked_it_went_on(
    live: Live, tree: Tree
) -> None:
    now = int(time.time() * 1000)
    made = SessionBuilder(now - 90_000)
    blank_answer(made)
    asked_by = tree.keep(made)
    subagent = tree.stuck(blank_answer, UNKNOWN)
    tree.began(asked_by, subagent)
    assert live.states()[subagent] is State.STUCK
    made.user("continue")
    made.assistant("fine")["time"] = {"created": now + 5_000, "completed": now + 6_000}
    write_tree(made.planted(), tree.root)  # only this one: `tree` would write to the other, too
    live.late = 10
    assert live.states()[subagent] is State.ERROR
