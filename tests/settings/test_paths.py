"""Where recoveryd keeps its own files."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from recoveryd.settings import paths
from recoveryd.settings.paths import lock_dir


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return tmp_path


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="other platforms have other defaults")
def test_the_defaults_are_below_the_home_folder(home: Path) -> None:
    assert paths.config_file() == home / ".config/recoveryd/config.toml"
    assert paths.state_dir() == home / ".local/state/recoveryd"


def test_the_xdg_variables_are_honoured_and_nothing_is_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "s"))
    assert paths.config_file() == home / "c/recoveryd/config.toml"
    state = paths.state_dir()
    assert state == home / "s/recoveryd"
    assert paths.ledger_file(state).parent == paths.log_file(state).parent == state
    assert list(home.iterdir()) == []


def test_locks_are_in_one_place_whatever_the_environment_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither another state folder nor another HOME makes it two daemons of one user."""
    usual = Path(pwd.getpwuid(os.geteuid()).pw_dir, ".local", "state", "recoveryd")
    monkeypatch.delenv("TEST_RECOVERYD_LOCKS")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "s"))
    assert lock_dir(paths.state_dir()) == usual
    monkeypatch.setenv("HOME", str(home / "another"))
    assert lock_dir(paths.state_dir()) == usual
    monkeypatch.setattr(os, "access", lambda *_: False)  # a home that can't be written to
    assert lock_dir(paths.state_dir()) == home / "s" / "recoveryd"


def test_a_user_that_the_system_does_not_know_has_the_home_of_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_RECOVERYD_LOCKS")
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 7)
    assert lock_dir(paths.state_dir()) == home / ".local" / "state" / "recoveryd"
    assert not (home / ".local").exists()
