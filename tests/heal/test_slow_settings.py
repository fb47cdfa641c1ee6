"""A client that listens and is too busy to tell its settings: a plan that hangs on them waits, and not for ever."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.core.model import Event, Outcome
from recoveryd.heal.propose import Proposer
from tests.conftest import Run
from tests.support.build import MODEL, SessionBuilder
from tests.support.long_sessions import LONG, spent
from tests.support.running import running, until
from tests.support.trees import Bench, Tree

SETTINGS = {
    "providers": [{"id": MODEL["providerID"], "models": {MODEL["modelID"]: {"limit": {"context": 150_000}}}}],
}


def _turns(name: str) -> Callable[[SessionBuilder], object]:
    def build(session: SessionBuilder) -> None:
        LONG[name].turns(session, random.Random(7))
        spent(session.planted())

    return build


class Slow:
    """The settings of a client that answers from the `answers`th time on."""

    def __init__(self, answers: int) -> None:
        self.left = answers

    def settings(self, *_: object) -> Mapping[str, Any] | None:
        self.left -= 1
        return None if self.left >= 0 else SETTINGS


def _attempts(
    tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, words: str, slow: int, name: str = "talk"
) -> list[Event]:
    monkeypatch.setattr(OpencodeServer, "settings", Slow(slow).settings)
    bench, session = Bench(tmp_path), tree.stuck(_turns(name), words, model=MODEL)
    found: list[Event] = []
    while not found or (found[-1].outcome is Outcome.PENDING and len(found) < 20):
        found.append(bench.attempt(tree, session))
        assert found[-1].outcome is not Outcome.PENDING or not bench.ledger.history(9), "it is on no record"
    return found


def test_they_are_asked_for_again(tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _attempts(tmp_path, tree, monkeypatch, "Prompt exceeds max length", 1)
    assert (first.outcome, first.again_s) == (Outcome.PENDING, 2.0)
    assert "did not tell its settings" in first.detail
    assert second.outcome is Outcome.HEALED
    assert "of 150k tokens" in second.detail


def test_not_for_ever(tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    *waits, last = _attempts(tmp_path, tree, monkeypatch, "Prompt exceeds max length", 999)
    assert [event.again_s for event in waits] == [2.0, 4.0, 8.0, 16.0, 32.0]
    assert last.outcome is Outcome.HEALED
    assert "tokens: " in last.detail
    assert " of " not in last.detail.split(" tokens: ")[0], "the limit is not known"


def test_a_refusal_that_tells_the_limit_waits_for_nobody(
    tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "prompt is too long: 217000 tokens > 200000 maximum"
    [event] = _attempts(tmp_path, tree, monkeypatch, words, 999)
    assert event.outcome is Outcome.HEALED


def test_where_the_client_may_clear_outputs_itself_its_settings_count(
    tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "prompt is too long: 217000 tokens > 200000 maximum"
    first, second = _attempts(tmp_path, tree, monkeypatch, words, 2, "long-turn")
    assert first.outcome is Outcome.PENDING
    assert second.outcome is Outcome.REFUSED
    assert "The client clears old tool outputs by itself" in second.detail


def test_a_daemon_looks_again_by_itself(tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpencodeServer, "settings", Slow(1).settings)
    monkeypatch.setattr(Proposer, "_wait", lambda *_: 0.1)
    with running(tmp_path, tree.store) as daemon:
        tree.stuck(_turns("talk"), "Prompt exceeds max length", model=MODEL)
        until(lambda: daemon.events)
    assert [event.outcome for event in daemon.events] == [Outcome.HEALED]
    assert "of 150k tokens" in daemon.events[0].detail


@pytest.mark.parametrize("slow", [1, 999])
def test_a_dry_run_asks_again_before_it_says_what_it_would_do(
    tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, lines: list[str], slow: int
) -> None:
    monkeypatch.setattr(OpencodeServer, "settings", Slow(slow).settings)
    wait = Proposer._wait
    monkeypatch.setattr(Proposer, "_wait", lambda *asked: min(wait(*asked), 0.05))
    with running(tmp_path, tree.store, dry_run=True):
        session = tree.stuck(_turns("talk"), "Prompt exceeds max length", model=MODEL)
        before = tree.files()
        until(lambda: any("nothing is written" in line for line in lines))
    asked = [line for line in lines if "did not tell its settings, on which this hangs; it is asked again" in line]
    assert 1 <= len(asked) <= 5
    assert not any("would be left alone" in line for line in lines)
    assert tree.files() == before
    assert any(session in line and "would be sent then" in line for line in lines)


def test_a_command_says_that_it_is_to_be_asked_again(run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpencodeServer, "settings", Slow(999).settings)
    session = tree.stuck(_turns("talk"), "Prompt exceeds max length", model=MODEL)
    for how in ((), ("--dry-run",), ("--repair", "--yes")):
        code, out, _ = run("scan", "--session", session, *how)
        assert (code, "settings, on which this hangs" in " ".join(out.split())) == (1, True)
        assert "not repaired" not in out
    code, _, err = run("compact", session, "--yes")
    assert (code, "Try again in a moment" in " ".join(err.split())) == (4, True)
