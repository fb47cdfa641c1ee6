"""A daemon whose program is upgraded or removed while it runs: what it had not loaded yet is another version's."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import recoveryd.heal.resumer
from recoveryd.cli.run import run
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core.errors import ReplacedError
from recoveryd.core.model import Outcome
from recoveryd.daemon import own_process
from recoveryd.daemon.daemon import Daemon
from recoveryd.daemon.own_process import OwnCode
from tests.conftest import Run
from tests.support.fake_client import Fake, listening
from tests.support.running import WAIT, Running, is_healed, running, until
from tests.support.trees import Tree


@pytest.fixture
def module(tmp_path: Path) -> Path:
    made = tmp_path / "own_process.py"
    made.write_text("the first version")
    return made


def test_it_is_whole_once_nobody_writes_to_it_any_more(module: Path) -> None:
    now = 0.0
    code = OwnCode(module, lambda: now)
    assert not code.replaced()
    module.unlink()
    assert code.replaced()
    now = 60.0
    assert not code.settled(), "it was removed"
    module.write_text("the second version, half")
    now = 70.0
    assert not code.settled(), "just written"
    module.write_text("the second version, all of it")
    now = 76.0
    assert not code.settled(), "and written to since"
    now = 82.0
    assert code.settled()
    assert code.replaced()


def test_what_stays_away_is_not_waited_for_for_ever(module: Path) -> None:
    """A Python of another version has its modules elsewhere. Until then `status` says that it runs."""
    now = 0.0
    code = OwnCode(module, lambda: now)
    module.unlink()
    assert not code.settled()
    now = own_process.GONE_S - 1.0
    assert not code.settled(), "an installer may fetch what it needs"
    now = own_process.GONE_S
    assert code.settled() and code.replaced()


def test_a_module_that_can_not_be_asked_for_at_the_start_is_passed_over(module: Path) -> None:
    module.unlink()
    module.symlink_to(module.name)  # ELOOP
    assert not OwnCode(module).replaced()


def test_a_module_that_can_not_be_asked_for_is_not_replaced(module: Path) -> None:
    code = OwnCode(module)
    module.unlink()
    module.symlink_to(module.name)  # ELOOP
    assert not code.replaced()


def test_nothing_is_repaired_by_code_of_two_versions(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends once the new code is whole, without a look at the session that was refused meanwhile."""
    monkeypatch.setattr("recoveryd.daemon.daemon.SETTLED_S", 0.02)
    monkeypatch.setattr(own_process, "SETTLED_S", 0.1)
    tree = Tree(tmp_path)
    upgraded = Running(tmp_path, tree.store)
    upgraded.daemon._code = OwnCode(module)
    upgraded.thread.start()
    upgraded.idle()
    module.unlink()
    session = tree.stuck()
    before = tree.files()
    until(lambda: upgraded.daemon._replaced)
    assert upgraded.thread.is_alive(), "the new code is not there yet"
    module.write_text("the second version")
    upgraded.thread.join(WAIT)
    assert isinstance(upgraded.error, ReplacedError)
    assert (tree.files(), upgraded.events, upgraded.history()) == (before, [], [])
    with running(tmp_path, tree.store) as new:
        until(lambda: new.events)
    assert is_healed(tree, session)
    assert [event.outcome for event in new.events] == [Outcome.HEALED]


def test_one_that_was_removed_for_good_still_ends_when_it_is_told_to(module: Path, tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    with running(tmp_path, tree.store) as removed:
        removed.idle()
        removed.daemon._code = OwnCode(module)
        module.unlink()
        tree.stuck()
        until(lambda: removed.daemon._replaced)


def test_status_and_doctor_say_that_nothing_is_repaired_until_it_goes_on_as_the_new_one(
    module: Path, tmp_path: Path, run: Run, tree: Tree
) -> None:
    with running(tmp_path / "daemon", tree.store) as removed:
        removed.idle()
        removed.daemon._code = OwnCode(module)
        assert json.loads(run("status", "--json")[1])["repairs"] is True
        module.unlink()
        tree.stuck()
        until(lambda: removed.daemon._replaced)
        until(lambda: json.loads(run("status", "--json")[1])["unrepaired"].startswith("its program was upgraded or"))
        said = " ".join(run("status")[1].split())
        assert "nothing is repaired: its program was upgraded" in said and "would be done" not in said
        checks = {check["code"]: check for check in json.loads(run("doctor", "--json")[1])["checks"]}
        assert (checks["repairs"]["level"], "dry-run" in checks["repairs"]["next"]) == ("warn", False)


@pytest.mark.parametrize(("started", "prompts"), [(0.0, 1), (None, 0)], ids=["an upgrade", "a start"])
def test_what_was_refused_while_the_new_code_was_waited_for_goes_on_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: float | None, prompts: int
) -> None:
    monkeypatch.setattr(recoveryd.heal.resumer, "ARRIVES_S", 0.0)
    tree = Tree(tmp_path)
    session = tree.stuck()
    failure = tree.failure(session)
    with listening(Fake(directory="/planted")) as fake:
        fake.session, fake.message, fake.made = session, failure.message, failure.time
        new = Running(tmp_path, tree.store, auto_resume=True, opencode=OpencodeSettings(server_url=fake.url))
        new.daemon._started = started
        new.thread.start()
        until(lambda: new.events)
        new.stop()
    assert len([path for path in fake.paths() if path.endswith("/prompt_async")]) == prompts
    assert [event.outcome for event in new.events] == [Outcome.HEALED]


@pytest.fixture
def hangups() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangups")
def test_the_process_goes_on_as_the_program_that_is_installed_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def upgraded(self: Daemon, *, signals: bool = False) -> None:
        assert (self._started, "_RECOVERYD_SINCE" in os.environ) == (1000.5, False), "no hook is to have it"
        raise ReplacedError("It was upgraded while it ran.")

    called: list[list[str]] = []
    monkeypatch.setenv("_RECOVERYD_SINCE", "1000.5")
    monkeypatch.setattr(Daemon, "run", upgraded)
    monkeypatch.setattr(os, "execv", lambda program, words: called.append([program, *words]))
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "recoveryd", "run"])
    asked = argparse.Namespace(launchd=False, dry_run=False, quiet=False, verbose=False, log_level=None, config=None)
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    assert run(asked) == 75, "tried again by the service manager, if even that fails"
    assert called == [[sys.executable, sys.executable, "-m", "recoveryd", "run"]]
    assert os.environ["_RECOVERYD_SINCE"] == "1000.5", "the next one goes on for the first, too"
    assert "what is installed now, if anything is" in capsys.readouterr().err, "it may have been removed for good"


ANEW = """
import os, signal, subprocess, sys
from recoveryd.cli.run import _anew
from recoveryd.daemon.own_process import handle_signals

if "ANEW" not in os.environ:
    os.environ["ANEW"] = "1"
    handle_signals(lambda: None, lambda: None, lambda: None)
    sys.exit(_anew())
os.kill(os.getpid(), signal.SIGHUP)
handle_signals(lambda: None, lambda: print("reloads", flush=True), lambda: None)
os.kill(os.getpid(), signal.SIGHUP)
print("a child ends by", -subprocess.run(["sh", "-c", "kill -HUP $$"]).returncode)
"""


@pytest.mark.live
def test_a_request_to_reload_does_not_end_it_while_it_starts_anew() -> None:
    """`systemctl reload` right behind an upgrade. What it starts itself, hooks, are ended by SIGHUP as ever."""
    done = subprocess.run([sys.executable, "-c", ANEW], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["reloads", f"a child ends by {signal.SIGHUP:d}"])
