"""A pause and the ignore list: files that a running daemon obeys at once."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

import recoveryd.daemon
import recoveryd.healer
from recoveryd import orders, paths
from recoveryd.errors import RecoverydError
from recoveryd.orders import Pause, heed, ignore, ignored, pause, paused, unpause
from tests.test_daemon import is_healed, running, until
from tests.trees import Tree


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return paths.make_private(tmp_path / "state")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recoveryd.healer, "CONFIRM_S", 0.15)
    monkeypatch.setattr(recoveryd.daemon, "SWEEP_S", 0.3)


def test_a_pause_lasts_until_it_is_ended(state: Path) -> None:
    assert paused(state, 0) is None
    assert not unpause(state)
    pause(state, 100)
    assert paused(state, 1e9) == Pause(100)
    assert unpause(state)
    assert paused(state, 101) is None


def test_a_pause_for_a_time_ends_by_itself(state: Path) -> None:
    pause(state, 100, 50)
    assert paused(state, 149) == Pause(100, 150)
    assert paused(state, 150) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"since": "x", "until": 1}', b"\xff"])
def test_a_pause_that_can_not_be_read_is_one(state: Path, content: bytes) -> None:
    (state / "pause.json").write_bytes(content)
    assert paused(state, 100) is not None


def test_the_files_are_private_and_whole(state: Path) -> None:
    pause(state, 1)
    ignore(state, "ses_1")
    assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in state.iterdir()} == {
        "pause.json": 0o600,
        "ignore.json": 0o600,
    }


def test_the_ignore_list_keeps_its_order(state: Path) -> None:
    assert ignored(state) == ()
    assert ignore(state, "ses_2") and ignore(state, "/a b") and not ignore(state, "ses_2")
    assert ignored(state) == ("ses_2", "/a b")
    assert heed(state, "ses_2") and not heed(state, "ses_2")
    assert ignored(state) == ("/a b",)


@pytest.mark.parametrize("content", [b"[", b"{}", b'"ses_1"', b"null"])
def test_an_ignore_list_that_can_not_be_read_stops_everything_in_words(state: Path, content: bytes) -> None:
    (state / "ignore.json").write_bytes(content)
    for call in (lambda: ignored(state), lambda: ignore(state, "ses_2"), lambda: heed(state, "ses_1")):
        with pytest.raises(RecoverydError, match=r"ignore\.json can't be read"):
            call()
    assert (state / "ignore.json").read_bytes() == content


def test_a_state_folder_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecoverydError, match="can't be written"):
        pause(tmp_path / "not", 1)


def test_a_running_daemon_waits_while_it_is_paused_and_heals_after(tmp_path: Path, state: Path) -> None:
    tree = Tree(tmp_path)
    pause(state, time.time())
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.thread.is_alive())
        session = tree.stuck()
        before = tree.files()
        time.sleep(1.0)  # several sweeps
        assert tree.files() == before and daemon.history() == [] and daemon.events == []
        unpause(state)
        until(lambda: is_healed(tree, session))


@pytest.mark.parametrize("by_folder", [False, True])
def test_an_ignored_session_is_left_in_silence_until_it_no_longer_is(
    tmp_path: Path, state: Path, by_folder: bool
) -> None:
    tree = Tree(tmp_path)
    session = tree.stuck(directory="/projects/secret/app")
    other = tree.stuck(directory="/projects/secretary")
    what = "/projects/secret" if by_folder else session
    ignore(state, what)
    with running(tmp_path, tree.store) as daemon:
        until(lambda: is_healed(tree, other))
        time.sleep(0.7)
        assert not is_healed(tree, session)
        assert [entry.session for entry in daemon.history()] == [other]
        heed(state, what)
        until(lambda: is_healed(tree, session))


def test_a_broken_list_is_never_taken_for_an_empty_one(tmp_path: Path, state: Path) -> None:
    tree = Tree(tmp_path)
    (state / "ignore.json").write_bytes(b"{")
    session = tree.stuck()
    with running(tmp_path, tree.store) as daemon:
        time.sleep(0.8)
        assert not is_healed(tree, session) and daemon.history() == []
        orders._write(state / "ignore.json", [])
        until(lambda: is_healed(tree, session))
