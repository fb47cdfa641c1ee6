"""A pause and the ignore list: files that a running daemon obeys at once."""

from __future__ import annotations

import shutil
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import recoveryd.daemon.daemon
import recoveryd.heal.lifecycle
from recoveryd.clients import Config
from recoveryd.core.errors import RecoverydError
from recoveryd.core.model import Outcome
from recoveryd.diagnose import Context, left_alone
from recoveryd.disk import private_files
from recoveryd.ledger import Ledger, LedgerFile
from recoveryd.settings import overrides
from recoveryd.settings.overrides import Pause, ignore, ignored, pause, paused, unignore, unpause
from recoveryd.tell.callbacks import Callbacks
from tests.support.running import Running, is_healed, running, until
from tests.support.trees import Bench, Tree


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return private_files.make_folder(tmp_path / "state")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recoveryd.heal.lifecycle, "CONFIRM_S", 0.15)
    monkeypatch.setattr(recoveryd.daemon.daemon, "SWEEP_S", 0.1)


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
    pause(state, 200)
    assert paused(state, 200) == Pause(200), "that one was over"


def test_a_pause_that_goes_on_began_when_it_began(state: Path) -> None:
    pause(state, 100, 50)
    pause(state, 149)
    pause(state, 160, 10)
    assert paused(state, 169) == Pause(100, 170)


ODD_TIMES = (
    b'{"since": "x", "until": 1}',
    b'{"since": 1, "until": 1e400}',
    b'{"since": 1, "until": 1' + b"0" * 400 + b"}",
)


def test_none_of_several_that_are_ignored_at_once_is_lost(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = private_files.write

    def slowly(path: Path, content: bytes) -> None:
        time.sleep(0.02)
        written(path, content)

    monkeypatch.setattr(private_files, "write", slowly)
    names = [f"ses_{number}" for number in range(5)]
    with ThreadPoolExecutor() as threads:
        assert all(threads.map(partial(ignore, state), names))
    assert sorted(ignored(state)) == names
    with ThreadPoolExecutor() as threads:
        assert all(threads.map(partial(unignore, state), names))
    assert ignored(state) == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", *ODD_TIMES])
def test_a_pause_that_can_not_be_read_is_one(state: Path, content: bytes) -> None:
    (state / "pause.json").write_bytes(content)
    assert paused(state, 100) == Pause(None), "since when, nothing tells"


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
    assert unignore(state, "ses_2") and not unignore(state, "ses_2")
    assert ignored(state) == ("/a b",)


@pytest.mark.parametrize("content", [b"[", b"{}", b'"ses_1"', b"null"])
def test_an_ignore_list_that_can_not_be_read_stops_everything_in_words(state: Path, content: bytes) -> None:
    (state / "ignore.json").write_bytes(content)
    for call in (lambda: ignored(state), lambda: ignore(state, "ses_2"), lambda: unignore(state, "ses_1")):
        with pytest.raises(RecoverydError, match=r"ignore\.json can't be read"):
            call()
    assert (state / "ignore.json").read_bytes() == content


def test_a_state_folder_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecoverydError, match="can't be written"):
        pause(tmp_path / "not", 1)


@pytest.mark.live
def test_a_running_daemon_waits_while_it_is_paused_and_heals_after(tmp_path: Path, state: Path) -> None:
    tree = Tree(tmp_path)
    pause(state, time.time())
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.thread.is_alive())
        session = tree.stuck()
        before = tree.files()
        daemon.sweeps()
        assert tree.files() == before and daemon.history() == [] and daemon.events == []
        unpause(state)
        until(lambda: is_healed(tree, session))


@pytest.mark.live
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
        daemon.sweeps()
        assert not is_healed(tree, session)
        assert [entry.session for entry in daemon.history()] == [other]
        unignore(state, what)
        until(lambda: is_healed(tree, session))


@pytest.mark.live
def test_what_is_ignored_while_hooks_run_is_left_in_silence(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent system says so when it hears that the session is to be touched."""
    monkeypatch.setattr(Running, "_abort", lambda self, session: ignore(self.state, session))
    tree = Tree(tmp_path)
    session = tree.stuck()
    before = tree.files()
    with running(tmp_path, tree.store) as daemon:
        until(lambda: ignored(state) == (session,))
        time.sleep(0.5)
        assert tree.files() == before and daemon.history() == [] and daemon.events == []
        unignore(state, session)
        until(lambda: is_healed(tree, session))


def test_what_is_ignored_while_hooks_run_is_left_alone_by_everybody(tmp_path: Path, state: Path) -> None:
    bench = Bench(tmp_path, Callbacks(on_abort=lambda session: ignore(state, session)))
    tree = Tree(tmp_path)
    session = tree.stuck()
    before = tree.files()
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.REFUSED and "leave this session or folder alone" in event.detail
    assert tree.files() == before and bench.ledger.history(9) == []
    bench.ledger.close()


@pytest.mark.live
def test_a_broken_list_is_never_taken_for_an_empty_one(tmp_path: Path, state: Path) -> None:
    tree = Tree(tmp_path)
    (state / "ignore.json").write_bytes(b"{")
    session = tree.stuck()
    with running(tmp_path, tree.store) as daemon:
        daemon.sweeps()
        assert not is_healed(tree, session) and daemon.history() == []
        overrides._write(state / "ignore.json", [])
        until(lambda: is_healed(tree, session))


def alone(tree: Tree, state: Path, session: str, *names: str) -> bool:
    """Whether a session is left alone where the configuration names these."""
    with Ledger(LedgerFile.empty(state / "ledger.db")) as ledger:
        return left_alone(Context(ledger, Config(ignore=names), state), tree.store, session)


class TestLeftAlone:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Tree:
        return Tree(tmp_path)

    def alone(self, tree: Tree, session: str, *names: str) -> bool:
        """As the configuration names them, and as the command does: no difference."""
        state = private_files.make_folder(tree.root.parent / "state")
        configured = alone(tree, state, session, *names)
        for name in names:
            ignore(state, name)
        assert alone(tree, state, session) is configured
        return configured

    @pytest.mark.parametrize(
        ("directory", "name", "expected"),
        [
            ("/home/me/secret", "/home/me/secret", True),
            ("/home/me/secret/deep", "/home/me/secret", True),
            ("/home/me/secret/../other", "/home/me/other/", True),
            ("/home/me/secretary", "/home/me/secret", False),
            ("/home/me/secret", "/home/me/secret/deep", False),
            ("home", "/", False),
            ("", "/home/me/secret", True),  # it may be there
            ("/a\0b/c", "/a\0b", True),
        ],
    )
    def test_a_folder_and_all_in_it(self, tree: Tree, directory: str, name: str, expected: bool) -> None:
        assert self.alone(tree, tree.stuck(directory=directory), "ses_other", name) is expected

    @pytest.mark.parametrize("gone", ["the session", "the one above it"])
    def test_a_session_whose_record_is_gone_may_be_of_what_is_named(self, tree: Tree, gone: str) -> None:
        """In its folder, or the subagent of the session."""
        session, above = tree.stuck(directory="/tmp/worktree"), tree.stuck(directory="/home/me/secret")
        tree.began(above, session)
        lost = session if gone == "the session" else above
        next((tree.root / "session").rglob(f"{lost}.json")).unlink()
        assert alone(tree, tree.root, session, "/home/me/secret")
        assert alone(tree, tree.root, session, "ses_any")
        assert not alone(tree, tree.root, session)

    def test_a_session_by_its_id(self, tree: Tree) -> None:
        session = tree.stuck()
        assert self.alone(tree, session, session)
        assert not alone(tree, tree.root, session, "ses_other")

    @pytest.mark.parametrize("linked", ["the session", "the order"])
    def test_a_folder_by_whatever_path_it_is_reached(self, tree: Tree, tmp_path: Path, linked: str) -> None:
        real, link = tmp_path / "data" / "secret", tmp_path / "link"
        real.mkdir(parents=True)
        link.symlink_to(real)
        recorded, named = (link / "src", real) if linked == "the session" else (real / "src", link)
        assert self.alone(tree, tree.stuck(directory=str(recorded)), str(named))

    @pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
    @pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
    def test_a_worktree_of_git_that_lies_elsewhere(self, tree: Tree, tmp_path: Path, relative: bool) -> None:
        main, worktree, other = (tmp_path / name for name in ("main", "elsewhere/worktree", "other"))
        me = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        for what in (
            ("init", "-q", str(main)),
            ("init", "-q", str(other)),
            ("-C", str(main), *me, "commit", "-q", "--allow-empty", "-m", "begun"),
            ("-C", str(main), "worktree", "add", "-q", str(worktree)),
        ):
            subprocess.run(["git", *what], check=True)
        if relative:  # as git writes it since 2.48, where it is told to
            (worktree / ".git").write_text("gitdir: ../../main/.git/worktrees/worktree\n")
        (worktree / "src").mkdir()
        session = tree.stuck(directory=str(worktree / "src"))
        state = private_files.make_folder(tmp_path / "state")
        for named, expected in ((main, True), (main / "src", True), (tmp_path / "elsewhere", True)):
            assert alone(tree, state, session, str(named)) is expected
        for named in (main / "docs", other):
            assert not alone(tree, state, session, str(named))
        assert not alone(tree, state, tree.stuck(directory=str(other)), str(main))

    @pytest.mark.parametrize("by", ["id", "folder"])
    def test_what_a_session_that_is_left_alone_began_is_left_alone_too(self, tree: Tree, by: str) -> None:
        root = tree.stuck(directory="/home/me/secret")
        child, grandchild, other = (tree.stuck(directory="/tmp/worktree") for _ in range(3))
        tree.began(root, child)
        tree.began(child, grandchild)
        named = root if by == "id" else "/home/me/secret"
        assert self.alone(tree, grandchild, named)
        assert not alone(tree, tree.root, other, named)

    def test_sessions_that_began_each_other_end_the_question(self, tree: Tree) -> None:
        one, two = tree.stuck(), tree.stuck()
        tree.began(one, two)
        tree.began(two, one)
        assert not self.alone(tree, one, "ses_other")


def test_what_is_left_alone_is_put_on_no_record(tmp_path: Path) -> None:
    """A refusal on record would keep the daemon from it once it is not left alone any more."""
    tree = Tree(tmp_path)
    session = tree.stuck()
    bench = Bench(tmp_path, ignore=(session,))
    event = bench.attempt(tree, session)
    assert (event.outcome, event.detail.split(" (")[0]) == (
        Outcome.REFUSED,
        "You said to leave this session or folder alone",
    )
    assert bench.ledger.history(5) == []
    assert bench.ledger.handled(tree.store.id, session, event.message) is None
