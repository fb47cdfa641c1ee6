"""Private folders and files: who can read them, and that a file is there whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from threading import Thread

import pytest

from recoveryd.core.errors import RecoverydError
from recoveryd.disk import private_files
from recoveryd.ledger import Ledger
from recoveryd.settings import overrides


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_state_folder_is_private_and_made_private(home: Path) -> None:
    folder = private_files.make_folder(home / "a" / "recoveryd")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    (folder / "file").touch()
    assert private_files.make_folder(folder) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "file").exists()


def test_a_folder_that_can_not_be_made_is_said_in_words(home: Path) -> None:
    (home / "file").touch()
    for folder in (home / "file", home / "file" / "recoveryd"):
        with pytest.raises(RecoverydError, match="can't be made: ") as caught:
            private_files.make_folder(folder)
        assert "XDG_STATE_HOME" in caught.value.hint


def test_a_folder_of_another_user_is_refused_for_root_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(RecoverydError, match="another user"):
        private_files.make_folder(home)


class TestAlone:
    def test_one_at_a_time_and_nothing_stays(self, home: Path) -> None:
        inside, most = 0, 0

        def work() -> None:
            nonlocal inside, most
            for _ in range(50):
                with private_files.alone(home):
                    inside += 1
                    most = max(most, inside)
                    time.sleep(0)
                    inside -= 1

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (most, list(home.iterdir())) == (1, [])

    def test_an_error_inside_leaves_nothing_behind(self, home: Path) -> None:
        with pytest.raises(ZeroDivisionError), private_files.alone(home):
            _ = 1 // 0
        assert list(home.iterdir()) == []

    def test_nfs_locks_no_folder_and_no_file_that_is_open_for_reading(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As flock(2) says of NFS."""
        real = fcntl.flock

        def flock(fd: int, what: int) -> None:
            if what & fcntl.LOCK_EX and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            real(fd, what)

        monkeypatch.setattr(fcntl, "flock", flock)
        with Ledger(home / "ledger.db") as ledger:
            assert ledger.history(9) == []
        overrides.ignore(home, "/secret")
        assert overrides.ignored(home) == ("/secret",)


class TestWrite:
    def test_a_new_file_is_private_and_stands_alone(self, tmp_path: Path) -> None:
        private_files.write(tmp_path / "note", b"words")
        assert (tmp_path / "note").read_bytes() == b"words"
        assert mode(tmp_path / "note") == 0o600
        assert [path.name for path in tmp_path.iterdir()] == ["note"]

    def test_an_old_one_is_replaced_with_the_mode_that_is_asked_for(self, tmp_path: Path) -> None:
        file = tmp_path / "note"
        file.write_text("a longer text than the new one")
        for wanted in (0o600, 0o644):
            private_files.write(file, b"new", mode=wanted)
            assert (file.read_bytes(), mode(file)) == (b"new", wanted)

    def test_a_symlink_is_replaced_and_what_it_names_stays(self, tmp_path: Path) -> None:
        (tmp_path / "other").write_text("theirs")
        (tmp_path / "note").symlink_to("other")
        private_files.write(tmp_path / "note", b"ours")
        assert not (tmp_path / "note").is_symlink()
        assert (tmp_path / "other").read_text() == "theirs"

    @pytest.mark.parametrize("call", ["write", "fsync", "replace"])
    def test_what_can_not_be_completed_leaves_the_old_one_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        (tmp_path / "note").write_bytes(b"old")
        monkeypatch.setattr(Path if call == "replace" else os, call, full)
        with pytest.raises(OSError, match="No space"):
            private_files.write(tmp_path / "note", b"new")
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("note", b"old")]

    def test_a_write_that_takes_less_than_all_goes_on(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usual = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: usual(fd, data[:3]))
        private_files.write(tmp_path / "note", b"0123456789")
        assert (tmp_path / "note").read_bytes() == b"0123456789"

    def test_the_longest_name_there_is_can_be_written(self, tmp_path: Path) -> None:
        private_files.write(tmp_path / ("ü" * 127), b"x")
        assert len(list(tmp_path.iterdir())) == 1

    @pytest.mark.parametrize(("code", "raises"), [(errno.EINVAL, False), (errno.EIO, True)])
    def test_the_folder_is_synced_where_that_is_known(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, raises: bool
    ) -> None:
        synced: list[int] = []

        def sync(fd: int) -> None:
            kind = os.fstat(fd).st_mode
            synced.append(kind)
            if stat.S_ISDIR(kind):
                raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", sync)
        if raises:
            with pytest.raises(OSError, match=os.strerror(code)):
                private_files.write(tmp_path / "note", b"x")
        else:
            private_files.write(tmp_path / "note", b"x")
        assert [stat.S_ISDIR(kind) for kind in synced] == [False, True]
        private_files.write(tmp_path / "other", b"x", lasting=False)
        assert len(synced) == 2


class TestBeside:
    def test_what_is_there_is_not_replaced_where_it_is_to_be_new(self, tmp_path: Path) -> None:
        (tmp_path / "db").write_text("theirs")
        with pytest.raises(FileExistsError), private_files.beside(tmp_path / "db", new=True) as (_, aside):
            aside.write_text("ours")
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("db", "theirs")]

    def test_nobody_sees_it_before_it_is_complete(self, tmp_path: Path) -> None:
        with private_files.beside(tmp_path / "db", mode=0o644, new=True) as (_, aside):
            assert not (tmp_path / "db").exists()
            assert aside.name.startswith(".")
            assert mode(aside) == 0o600
        assert [(path.name, mode(path)) for path in tmp_path.iterdir()] == [("db", 0o644)]

    def test_an_error_of_the_block_takes_it_away(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="no"), private_files.beside(tmp_path / "db"):
            raise ValueError("no")
        assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_had_begun_is_removed_once_nobody_writes_it_any_more(home: Path) -> None:
    with private_files.beside(home / "file") as (_, begun):
        left = home / ".recoveryd-0123456789"
        left.write_bytes(b"half")
        private_files.remove_left_over(home)
        assert left.exists() and begun.exists()
        os.utime(left, (0, 0))
        private_files.remove_left_over(home)
        assert begun.exists() and not left.exists()


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_so_is_what_sqlite_had_put_beside_it(home: Path, suffix: str) -> None:
    """A first start that was killed left them for good."""
    left, own = home / f".recoveryd-0123456789{suffix}", home / f"ledger.db{suffix}"
    for path in (left, own):
        path.write_bytes(b"half")
        os.utime(path, (0, 0))
    private_files.remove_left_over(home)
    assert own.exists() and not left.exists()


def test_nothing_but_such_a_file_goes(home: Path) -> None:
    """A folder of such a name kept the ledger from being opened."""
    folder, named, link = (home / f".recoveryd-{name}" for name in ("0123456789", "notes", "9876543210"))
    folder.mkdir()
    (folder / "mine").write_bytes(b"mine")
    named.write_bytes(b"mine")
    link.symlink_to(named)
    for path in (folder, named, link):
        os.utime(path, (0, 0), follow_symlinks=False)
    private_files.remove_left_over(home)
    assert (folder / "mine").read_bytes() == named.read_bytes() == link.read_bytes() == b"mine"
