"""The locks: one daemon a store, one recovery at a time, and who has it in words."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from recoveryd.core.errors import BusyError, NotFoundError, RecoverydError, StoreError
from recoveryd.disk import locks
from recoveryd.disk.lock_notes import LockOwner
from recoveryd.disk.locks import StoreLock, is_left_over, lockers, recovery_lock, watcher, watchers

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


@contextmanager
def another_process(target: object, *args: object) -> Iterator[int]:
    """A process that has a lock until the block ends; gives its pid."""
    taken, done = FORK.Event(), FORK.Event()
    child = FORK.Process(target=target, args=(*args, taken, done))  # type: ignore[arg-type]
    child.start()
    try:
        assert taken.wait(10)
        assert child.pid is not None
        yield child.pid
    finally:
        done.set()
        child.join(10)
        assert child.exitcode == 0


def _watch(store: Path, state: Path, taken: Event, done: Event) -> None:
    with StoreLock(store, state, "opencode"):
        taken.set()
        done.wait(10)


def _recover(state: Path, doing: str, taken: Event, done: Event) -> None:
    with recovery_lock(state, state, "opencode", doing=doing):
        taken.set()
        done.wait(10)


class TestStoreLock:
    def test_a_second_one_is_told_who_has_it(self, store: Path, state: Path) -> None:
        with another_process(_watch, store, state) as pid:
            with pytest.raises(BusyError) as caught:
                StoreLock(store, state, "opencode").acquire()
            pattern = rf"recoveryd is already watching opencode \(pid {pid}, since \d\d:\d\d\)\."
            assert re.fullmatch(pattern, caught.value.message)
            assert caught.value.exit_code == 75
            assert "scan --repair" in caught.value.hint
            holder = watcher(state, store)
            assert holder is not None
            assert holder.pid == pid
            assert abs(holder.since - time.time()) < 10
        assert watcher(state, store) is None
        with StoreLock(store, state, "opencode") as lock:
            assert lock.holds()

    def test_every_path_to_a_store_is_the_same_lock(self, store: Path, state: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(store)
        with another_process(_watch, store, state) as pid:
            with pytest.raises(BusyError, match=f"pid {pid}"):
                StoreLock(tmp_path / "link", state, "opencode").acquire()
            assert [holder.pid for holder in watchers(state)] == [pid]
        assert watchers(state) == []

    def test_who_can_read_the_store_can_not_hold_it(self, store: Path, state: Path) -> None:
        """All of it: what is locked is in a folder of the user alone."""
        fds = [os.open(path, os.O_RDONLY) for path in (store, store.parent)]
        for fd in fds:
            fcntl.flock(fd, fcntl.LOCK_EX)
        with StoreLock(store, state, "opencode") as lock:
            assert lock.holds()
            assert stat.S_IMODE(state.stat().st_mode) == 0o700
        for fd in fds:
            os.close(fd)

    def test_it_holds_within_one_process_too_and_leaves_no_descriptor(self, store: Path, state: Path) -> None:
        with StoreLock(store, state, "opencode"):
            before = len(list(Path("/proc/self/fd").iterdir()))
            for _ in range(3):
                with pytest.raises(BusyError, match=str(os.getpid())):
                    StoreLock(store, state, "opencode").acquire()
            assert len(list(Path("/proc/self/fd").iterdir())) == before

    def test_a_note_of_a_dead_process_says_nothing(self, store: Path, state: Path) -> None:
        child = FORK.Process(target=time.sleep, args=(0,))
        child.start()
        child.join(10)
        with StoreLock(store, state, "opencode"):
            for note in (b"", b"{", b"[]", b'{"pid": "x"}', _note(child.pid or 0), _note(0), _note(-1), _note(2**70)):
                note_of(state).write_bytes(note)
                assert watcher(state, store) is None
                with pytest.raises(BusyError, match="does not say which process"):
                    StoreLock(store, state, "opencode").acquire()
            file = note_of(state)
        file.write_bytes(_note(child.pid or 0))
        with StoreLock(store, state, "opencode"):
            holder = watcher(state, store)
            assert holder is not None
            assert holder.pid == os.getpid()

    def test_the_store_stays_untouched_and_the_note_private(self, store: Path, state: Path) -> None:
        with StoreLock(store, state, "opencode") as lock:
            assert list(store.iterdir()) == []
            assert re.fullmatch(r"[0-9a-f]{16}\.run\.json", note_of(state).name)
            assert stat.S_IMODE(note_of(state).stat().st_mode) == 0o600
            assert json.loads(note_of(state).read_bytes())["pid"] == os.getpid()
        assert list(state.iterdir()) == []
        lock.release()

    def test_a_file_that_is_removed_before_it_is_locked_is_no_lock(
        self, store: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the opening and the locking the one that has it gives it back."""
        first, second, usual = StoreLock(store, state, "opencode"), StoreLock(store, state, "opencode"), locks._try_lock

        def late(fd: int, path: Path) -> bool:
            first.release()
            return usual(fd, path)

        first.acquire()
        monkeypatch.setattr(locks, "_try_lock", late)
        with second:
            assert second.holds()
            with pytest.raises(BusyError, match=str(os.getpid())):
                StoreLock(store, state, "opencode").acquire()

    def test_the_lock_of_somebody_else_is_not_removed(self, store: Path, state: Path) -> None:
        """The file was taken away under a daemon, and another one has the lock."""
        first = StoreLock(store, state, "opencode")
        first.acquire()
        note_of(state).unlink()
        with StoreLock(store, state, "opencode") as second:
            first.release()
            assert second.holds()
        assert list(state.iterdir()) == []

    def test_two_that_race_never_both_hold_it(self, store: Path, state: Path) -> None:
        inside = state.with_name("inside")
        children = [FORK.Process(target=_race, args=(store, state, inside)) for _ in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join(20)
        assert [child.exitcode for child in children] == [0, 0, 0]
        assert list(state.iterdir()) == []

    def test_a_lock_file_that_never_stays_is_said(
        self, store: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def gone(fd: int, path: Path) -> bool:
            path.unlink()
            return True

        monkeypatch.setattr(locks, "_try_lock", gone)
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(StoreError, match="removes it again and again"):
            StoreLock(store, state, "opencode").acquire()
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    def test_a_store_that_was_replaced_is_no_longer_held(self, store: Path, state: Path) -> None:
        lock = StoreLock(store, state, "opencode")
        assert not lock.holds()
        with lock:
            store.rename(store.with_name("old"))
            assert not lock.holds()
            store.mkdir()
            assert not lock.holds()

    def test_the_note_says_how_it_runs_and_which_stores_of_the_folder_it_watches(
        self, store: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SYSTEMD_EXEC_PID", str(os.getpid()))
        with StoreLock(store, state, "a.db") as lock:
            lock.watch("b.db")
            lock.watch("a.db")
            holder = watcher(state, store)
            assert holder is not None
            assert (holder.doing, holder.stores) == ("service", ("a.db", "b.db"))
        monkeypatch.setenv("SYSTEMD_EXEC_PID", "1")  # that of the terminal's own unit
        with StoreLock(store, state, "a.db"):
            holder = watcher(state, store)
            assert holder is not None
            assert holder.doing in ("terminal", "program")

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
    def test_a_note_whose_process_id_is_used_again_is_not_believed(self, store: Path, state: Path) -> None:
        with StoreLock(store, state, "opencode"):
            file, note = note_of(state), note_of(state).read_bytes()
            assert lockers(state, store) == {os.getpid()}
            assert not is_left_over(state, store)
        assert lockers(state, store) == set()
        assert not is_left_over(state, store)
        file.write_bytes(note)
        assert watcher(state, store) is None
        assert is_left_over(state, store)

    def test_no_folder_is_not_found(self, store: Path, state: Path) -> None:
        with pytest.raises(NotFoundError, match="no folder"):
            StoreLock(store / "not", state, "opencode").acquire()
        (store / "file").touch()
        with pytest.raises(NotFoundError, match="no folder"):
            StoreLock(store / "file", state, "opencode").acquire()

    def test_a_note_that_can_not_be_written_costs_nothing(
        self, store: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        with StoreLock(store, state, "opencode") as lock:
            assert lock.holds()

    def test_a_lock_that_was_taken_away_is_no_longer_held(self, store: Path, state: Path) -> None:
        with StoreLock(store, state, "opencode") as lock:
            note_of(state).unlink()
            assert not lock.holds()


class TestRecoveryLock:
    def test_it_waits_for_the_other(self, state: Path) -> None:
        order = []

        def second() -> None:
            with recovery_lock(state, state, "opencode", timeout=5):
                order.append("second")

        thread = threading.Thread(target=second)
        with recovery_lock(state, state, "opencode"):
            thread.start()
            time.sleep(0.05)
            order.append("first")
        thread.join(5)
        assert order == ["first", "second"]

    def test_it_says_who_has_it_after_the_time_is_up(self, state: Path) -> None:
        with another_process(_recover, state, "undo") as pid:
            start = time.monotonic()
            with (
                pytest.raises(BusyError, match=rf"opencode is being repaired by undo \(pid {pid}, since "),
                recovery_lock(state, state, "opencode", timeout=0.1),
            ):
                pytest.fail("taken twice")
            assert 0.1 <= time.monotonic() - start < 9
            with recovery_lock(state.parent, state, "another store", timeout=0):
                pass

    def test_it_is_freed_by_an_error_inside(self, state: Path) -> None:
        with pytest.raises(ValueError, match="inside"), recovery_lock(state, state, "opencode"):
            raise ValueError("inside")
        with recovery_lock(state, state, "opencode", timeout=0):
            (file,) = state.iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert not file.exists()

    def test_a_state_folder_that_is_not_there_is_said_in_words(self, state: Path) -> None:
        (state / "file").touch()
        place = state / "file" / "not"
        with pytest.raises(RecoverydError, match="can't be made"), recovery_lock(state, place, "opencode"):
            pytest.fail("no folder, no lock")

    def test_of_a_store_that_is_gone_it_is_held_too(self, state: Path) -> None:
        with (
            recovery_lock(state / "gone", state, "opencode"),
            pytest.raises(BusyError),
            recovery_lock(state / "gone", state, "opencode", timeout=0),
        ):
            pytest.fail("taken twice")

    def test_every_path_to_a_folder_is_the_same_lock(self, store: Path, state: Path) -> None:
        link = state.parent / "link"
        link.symlink_to(store)
        with (
            recovery_lock(store, state, "opencode"),
            pytest.raises(BusyError),
            recovery_lock(link, state, "opencode", timeout=0),
        ):
            pytest.fail("taken twice")

    def test_only_one_is_inside_at_a_time(self, state: Path) -> None:
        counter = state / "counter"
        counter.write_text("0")
        children = [FORK.Process(target=_count, args=(state, counter)) for _ in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join(15)
        assert counter.read_text() == "40"
        assert [path.name for path in state.iterdir()] == ["counter"]


def test_since_names_the_day_when_it_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "localtime", lambda at=86_400 * 3.0: time.gmtime(at))
    assert str(LockOwner(1, 86_400 * 3.0 + 60)) == "pid 1, since 00:01"
    assert str(LockOwner(1, 60.0)) == "pid 1, since 1970-01-01 00:01"


def note_of(place: Path) -> Path:
    """The file of the one lock there."""
    [file] = place.glob("*.run.json")
    return file


def _note(pid: int) -> bytes:
    return json.dumps({"pid": pid, "since": 1.0, "version": "1", "doing": ""}).encode()


def _race(store: Path, state: Path, inside: Path) -> None:
    """Take the lock and give it back 150 times; fails if another process is inside meanwhile."""
    taken = 0
    while taken < 150:
        with suppress(BusyError), StoreLock(store, state, "opencode"):
            inside.touch(exist_ok=False)
            inside.unlink()
            taken += 1


def _count(state: Path, counter: Path) -> None:
    for _ in range(10):
        with recovery_lock(state, state, "opencode", timeout=10):
            number = int(counter.read_text())
            time.sleep(0.001)
            counter.write_text(str(number + 1))
