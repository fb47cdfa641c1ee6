"""Where recoveryd keeps its own files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from recoveryd.core.errors import RecoverydError
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


def test_the_state_folder_is_private_and_made_private(home: Path) -> None:
    folder = paths.make_private(home / "a" / "recoveryd")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    (folder / "file").touch()
    assert paths.make_private(folder) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "file").exists()


def test_a_folder_that_can_not_be_made_is_said_in_words(home: Path) -> None:
    (home / "file").touch()
    for folder in (home / "file", home / "file" / "recoveryd"):
        with pytest.raises(RecoverydError, match="can't be made: ") as caught:
            paths.make_private(folder)
        assert "XDG_STATE_HOME" in caught.value.hint


def test_a_folder_of_another_user_is_refused_for_root_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(RecoverydError, match="another user"):
        paths.make_private(home)


def test_locks_are_in_one_place_whatever_state_folder_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = home / ".local" / "state" / "recoveryd"
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "s"))
    assert lock_dir(paths.state_dir()) == usual
    assert not (home / ".local").exists()
    monkeypatch.setattr(os, "access", lambda *_: False)  # a home that can't be written to
    assert lock_dir(paths.state_dir()) == home / "s" / "recoveryd"
