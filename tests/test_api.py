"""What a program that has recoveryd inside can do with it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import recoveryd
from recoveryd import Callbacks, Config, Daemon, Event, Kind, Outcome, is_recoverable, recover
from recoveryd.core.errors import NotFoundError
from recoveryd.heal import lifecycle
from recoveryd.settings import Notify
from tests.support.judge import refusal
from tests.support.parts import api_error
from tests.support.trees import EMPTY, MISSING, Tree, blank_answer, write_over


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MISSING, True),
        (api_error(EMPTY), True),
        (RuntimeError(f"400: {EMPTY}"), True),
        ("prompt is too long: 210338 tokens > 200000 maximum", True),
        ('{"detail":"Bad Request"}', True),  # as Codex shows it, of an image
        ("Your credit balance is too low", False),
        ("", False),
    ],
)
def test_whether_an_error_is_recoverable(error: object, expected: bool) -> None:
    assert is_recoverable(error) is expected  # type: ignore[arg-type]


def test_a_session_is_repaired_on_demand(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck()
    said: list[object] = []
    callbacks = Callbacks(on_abort=said.append, on_complete=said.append)
    event = recover(session, callbacks=callbacks, state_dir=tmp_path / "state", stores=[tree.store])
    assert event is not None
    assert (event.outcome, event.kind) == (Outcome.HEALED, Kind.TOOL_RESULT_MISSING)
    assert said == [session, event]
    assert refusal(tree.store.load(session), thinking=False) is None
    assert recover(session, state_dir=tmp_path / "state", stores=[tree.store]) is None  # it waits for a prompt


def test_what_the_client_cleans_up_meanwhile_does_not_undo_it(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """About 50 ms after an error it writes from its memory; also a second later it may write once more."""
    monkeypatch.setattr(lifecycle, "CONFIRM_S", 1.0)  # as outside of tests
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    timers = [threading.Timer(after, write_over, (blank,), {"text": " "}) for after in (0.05, 0.6)]
    for timer in timers:
        timer.start()
    event = recover(session, state_dir=tmp_path / "state", stores=[tree.store])
    for timer in timers:
        timer.join()
    assert event is not None and event.outcome is Outcome.HEALED
    assert refusal(tree.store.load(session), thinking=False) is None


def test_a_dry_run_repairs_nothing(tree: Tree, tmp_path: Path) -> None:
    session = tree.stuck()
    before = tree.files()
    event = recover(session, Config(dry_run=True), state_dir=tmp_path / "state", stores=[tree.store])
    assert event is not None and (event.outcome, tree.files()) == (Outcome.PENDING, before)
    assert "dry run" in event.detail


def test_one_that_is_not_there(tree: Tree, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="ses_none"):
        recover("ses_none", state_dir=tmp_path / "state", stores=[tree.store])


@pytest.mark.live
def test_a_daemon_in_a_thread_with_callbacks(tree: Tree, tmp_path: Path) -> None:
    done: list[Event] = []
    healed = threading.Event()

    def on_complete(event: Event) -> None:
        done.append(event)
        healed.set()

    callbacks = Callbacks(on_complete=on_complete)
    config = Config(notify=Notify(desktop=False))
    daemon = Daemon(config, callbacks=callbacks, state_dir=tmp_path / "state", stores=[tree.store])
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        session = tree.stuck()
        assert healed.wait(10)
    finally:
        daemon.stop()
        thread.join(10)
    assert [event.session for event in done] == [session]


@pytest.mark.live
def test_hooks_run_around_a_recovery_of_the_daemon(tree: Tree, tmp_path: Path) -> None:
    out = tmp_path / "events"
    code = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"
    command = [sys.executable, "-c", code, str(out)]
    config = Config.model_validate(
        {"notify": {"desktop": False}, "hooks": {"on_abort": command, "on_complete": command}}
    )
    daemon = Daemon(config, state_dir=tmp_path / "state", stores=[tree.store])
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        session = tree.stuck()
        deadline = time.monotonic() + 10
        while not (out.exists() and out.read_text().count("\n") == 2):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        daemon.stop()
        thread.join(10)
    abort, complete = out.read_text().splitlines()
    assert abort == f'{{"event": "abort", "session": "{session}"}}'
    assert '"event": "complete"' in complete and '"outcome": "healed"' in complete


def test_everything_that_is_promised_is_there_and_costs_nothing_before() -> None:
    for name in recoveryd.__all__:
        assert getattr(recoveryd, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = recoveryd.nothing_like_it
    code = (
        "import sys, recoveryd; print(*[m for m in sys.modules if m.startswith(('recoveryd.', 'pydantic', 'loguru'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""
