"""A user who changes their mind: what an older configuration decided is looked at again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import recoveryd.heal.lifecycle
import recoveryd.heal.resumer
from recoveryd.clients import Config
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.store import Store
from recoveryd.core.model import Kind, Outcome
from recoveryd.diagnose.triage import Triage, Verdict
from recoveryd.settings import Notify
from tests.support.build import SessionBuilder, api_error
from tests.support.fake_client import Fake, listening
from tests.support.plant import write_tree
from tests.support.running import Running, is_healed, running, until
from tests.support.trees import MISSING, Tree, behind_a_call

pytestmark = pytest.mark.live

WITHOUT = tuple(kind for kind in Config().kinds if kind is not Kind.TOOL_RESULT_MISSING)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recoveryd.heal.lifecycle, "CONFIRM_S", 0.15)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_kind_that_is_turned_on_heals_what_was_refused_while_it_was_off(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck()
    with running(tmp_path, tree.store, kinds=WITHOUT) as daemon:
        until(lambda: daemon.events)
    assert [entry.outcome for entry in daemon.history()] == [Outcome.REFUSED]
    with running(tmp_path, tree.store):
        until(lambda: is_healed(tree, session))


def test_a_configuration_that_is_read_again_does_the_same_at_once(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck()
    with running(tmp_path, tree.store, kinds=WITHOUT) as daemon:
        until(lambda: daemon.events)
        daemon.daemon._load = lambda: Config(notify=Notify(desktop=False))
        daemon.daemon.reload()
        until(lambda: is_healed(tree, session))


def too_old(daemon: Running, tree: Tree) -> bool:
    return any(daemon.daemon._sweeper._marks.get(tree.store.id, ())) if hasattr(daemon.daemon, "_sweeper") else False


@pytest.mark.parametrize("wrong", ["hours", "clock"])
def test_what_was_too_old_by_another_measure_is_looked_at_again(
    tree: Tree, tmp_path: Path, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SessionBuilder(int(time.time() * 1000) - 30 * 3_600_000, title="30 hours ago")
    behind_a_call(made)
    made.failed("continue", api_error(MISSING, 400))
    write_tree(made.planted(), tree.root)
    judge = Triage.judge

    def ahead(self: Triage, store: Store, session: str) -> Verdict:
        self.context.clock = lambda: time.time() + 90 * 86_400
        return judge(self, store, session)

    with monkeypatch.context() as patch:
        if wrong == "clock":
            patch.setattr(Triage, "judge", ahead)
        with running(tmp_path, tree.store, lookback_hours=72.0 if wrong == "clock" else 24.0) as daemon:
            until(lambda: too_old(daemon, tree))
    with running(tmp_path, tree.store, lookback_hours=72.0):
        until(lambda: is_healed(tree, made.session["id"]))


@pytest.mark.parametrize(
    ("then", "prompts"),
    [
        ({"auto_resume": True, "max_retries": 2}, 1),
        ({"auto_resume": False}, 0),
        ({"auto_resume": True, "dry_run": True}, 0),
        ({"auto_resume": True, "enabled": False}, 0),
        (None, 0),
    ],
)
def test_a_repair_that_is_read_back_behind_a_reload_goes_on_as_the_new_configuration_says(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: dict[str, Any] | None, prompts: int
) -> None:
    """It was never told to go on. None: the daemon is stopped."""
    monkeypatch.setattr(recoveryd.heal.lifecycle, "CONFIRM_S", 1.0)
    monkeypatch.setattr(recoveryd.heal.resumer, "ARRIVES_S", 0.0)
    with listening(Fake(directory="/planted")) as fake:
        known = OpencodeSettings(server_url=fake.url)
        with running(tmp_path, tree.store, auto_resume=True, opencode=known) as daemon:
            daemon.daemon._load = lambda: Config(notify=Notify(desktop=False), opencode=known, **(then or {}))
            daemon.idle()
            daemon.daemon._healer._context.started = 0.0  # what is planted failed some seconds ago
            fake.session = session = tree.stuck()
            failure = tree.failure(session)
            fake.message, fake.made = failure.message, failure.time
            until(lambda: is_healed(tree, session))
            if then is None:
                daemon.daemon.stop()
            else:
                daemon.daemon.reload()
            until(lambda: daemon.events)
    prompted = [path for path in fake.paths() if path.endswith("/prompt_async")]
    assert len(prompted) == prompts
    assert [event.outcome for event in daemon.events] == [Outcome.HEALED]
