"""The watcher, on real folders with the real watchdog."""

from __future__ import annotations

import errno
import os
import queue
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from recoveryd.core.model import Change
from recoveryd.disk import file_transaction
from recoveryd.watch import busy_files, folders
from recoveryd.watch import watcher as watch
from recoveryd.watch.watcher import Watcher
from tests.support.database import Base

SOON = 5.0  # seconds; what is waited for comes within milliseconds
Touch = tuple[str, str | None]


class Touches:
    """What a watcher told, in order."""

    def __init__(self) -> None:
        self.queue: queue.Queue[Touch] = queue.Queue()

    def __call__(self, store: str, session: str | None) -> None:
        self.queue.put((store, session))

    def until(self, wanted: Touch) -> list[Touch]:
        """All touches up to the one that is waited for."""
        seen: list[Touch] = []
        deadline = time.monotonic() + SOON
        while not seen or seen[-1] != wanted:
            try:
                seen.append(self.queue.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"no touch {wanted}, only {seen}") from None
        return seen

    def rest(self, wait: float = 0.15) -> list[Touch]:
        """What else comes within `wait` seconds."""
        time.sleep(wait)
        return [self.queue.get_nowait() for _ in range(self.queue.qsize())]


@contextmanager
def watching(*stores: Store) -> Iterator[tuple[Watcher, Touches]]:
    touches = Touches()
    with Watcher(stores, touches) as watcher:
        yield watcher, touches


@pytest.fixture
def store(tmp_path: Path) -> OpencodeFiles:
    (tmp_path / "storage" / "message" / "ses_1").mkdir(parents=True)
    return OpencodeFiles(tmp_path / "storage")


def write(store: OpencodeFiles, *names: str) -> None:
    path = store.watch_path.joinpath(*names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")


def test_start_asks_for_a_look_at_everything_and_then_tells_each_session(store: OpencodeFiles) -> None:
    with watching(store) as (watcher, touches):
        assert touches.until((store.id, None)) == [(store.id, None)]
        write(store, "ses_1", "msg_1.json")
        touches.until((store.id, "ses_1"))
        assert watcher.problems() == {}


def test_a_new_session_is_told_even_when_its_first_file_is_written_at_once(store: OpencodeFiles) -> None:
    with watching(store) as (_, touches):
        for number in range(50):
            write(store, f"ses_new{number}", "msg_1.json")
        told = set(touches.until((store.id, "ses_new49")))
        told.update(touches.rest())
        assert {(store.id, f"ses_new{number}") for number in range(50)} <= told


def test_both_folder_depths_are_told_by_the_session(store: OpencodeFiles) -> None:
    with watching(store) as (_, touches):
        write(store, "global", "ses_deep", "msg_1.json")
        touches.until((store.id, "ses_deep"))


def test_a_file_moved_into_place_is_told(store: OpencodeFiles) -> None:
    with watching(store) as (_, touches):
        touches.until((store.id, None))
        folder = store.watch_path / "ses_1"
        (folder / ".tmp").write_text("{}")
        (folder / ".tmp").rename(folder / "msg_1.json")
        touches.until((store.id, "ses_1"))


def test_parts_reads_deletions_and_other_names_are_not_told(store: OpencodeFiles) -> None:
    write(store, "ses_1", "msg_1.json")
    with watching(store) as (_, touches):
        touches.until((store.id, None))
        (store.root / "part" / "msg_1").mkdir(parents=True)
        (store.root / "part" / "msg_1" / "prt_1.json").write_text("{}")
        (store.watch_path / "ses_1" / "msg_1.json").read_bytes()
        (store.watch_path / "ses_1" / ".hidden.json").write_text("{}")
        (store.watch_path / "ses_1" / "msg_1.json.bak").write_text("{}")
        (store.watch_path / "ses_1" / "msg_1.json").unlink()
        assert touches.rest() == []


def test_our_own_writes_are_not_told(store: OpencodeFiles) -> None:
    write(store, "ses_1", "msg_1.json")
    with watching(store) as (_, touches):
        touches.until((store.id, None))
        file_transaction.write_files(store.root, [Change("message/ses_1/msg_1.json", b"{}", b'{"a":1}')])
        file_transaction.write_files(store.root, [Change("message/ses_1/msg_2.json", None, b"{}")])
        assert touches.rest() == []


def test_a_store_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    store = OpencodeFiles(tmp_path / "a" / "b" / "storage")
    with watching(store) as (watcher, touches):
        assert touches.rest() == []
        write(store, "ses_1", "msg_1.json")
        touches.until((store.id, None))
        write(store, "ses_1", "msg_2.json")
        touches.until((store.id, "ses_1"))
        assert watcher.problems() == {}


@pytest.mark.parametrize("by", ["deleted", "moved"])
def test_a_replaced_root_is_watched_again(store: OpencodeFiles, by: str) -> None:
    with watching(store) as (_, touches):
        touches.until((store.id, None))
        for turn in range(3):
            if by == "deleted":
                shutil.rmtree(store.watch_path)
            else:
                store.watch_path.rename(store.root / f"old{turn}")
            store.watch_path.mkdir()
            touches.until((store.id, None))
            touches.rest(0.05)
            write(store, f"ses_{turn}", "msg_1.json")
            touches.until((store.id, f"ses_{turn}"))


def test_the_slow_check_finds_a_folder_far_above_that_was_replaced(tmp_path: Path) -> None:
    store = OpencodeFiles(tmp_path / "a" / "b" / "storage")
    write(store, "ses_1", "msg_1.json")
    with watching(store) as (watcher, touches):
        touches.until((store.id, None))
        (tmp_path / "a").rename(tmp_path / "gone")
        write(store, "ses_2", "msg_1.json")
        watcher.check()
        touches.until((store.id, None))
        write(store, "ses_2", "msg_2.json")
        touches.until((store.id, "ses_2"))


def test_a_check_changes_nothing_while_all_is_well(store: OpencodeFiles) -> None:
    with watching(store) as (watcher, touches):
        touches.until((store.id, None))
        for _ in range(3):
            watcher.check()
        assert touches.rest(0.05) == []


def test_a_dead_observer_is_replaced(store: OpencodeFiles) -> None:
    with watching(store) as (watcher, touches):
        touches.until((store.id, None))
        watcher._observer.stop()
        watcher._observer.join()
        watcher.check()
        touches.until((store.id, None))
        write(store, "ses_1", "msg_1.json")
        touches.until((store.id, "ses_1"))


def test_two_stores_are_watched_side_by_side_and_one_that_leaves_does_not_stop_the_other(tmp_path: Path) -> None:
    stores = [OpencodeFiles(tmp_path / name / "storage") for name in ("one", "two")]
    with watching(*stores) as (_, touches):
        for store in stores:
            write(store, "ses_1", "msg_1.json")
            touches.until((store.id, None))
        shutil.rmtree(tmp_path / "one")
        write(stores[1], "ses_2", "msg_1.json")
        touches.until((stores[1].id, "ses_2"))
        write(stores[0], "ses_3", "msg_1.json")
        touches.until((stores[0].id, None))


def test_a_path_that_the_system_does_not_look_at_stops_no_other_store(tmp_path: Path, store: OpencodeFiles) -> None:
    """A name that is too long stands for a mount that is dead, and for a folder that may not be entered."""
    odd = OpencodeFiles(tmp_path / ("x" * 300) / "storage")
    with watching(odd, store) as (watcher, touches):
        write(store, "ses_1", "msg_1.json")
        touches.until((store.id, "ses_1"))
        assert watcher.problems() == {}


def test_a_check_that_fails_is_a_problem_and_the_next_one_tries_again(
    store: OpencodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching(store) as (watcher, _):
        with monkeypatch.context() as patch:
            patch.setattr(watcher, "_wanted", lambda: 1 / 0)
            watcher.check()
            assert any("ZeroDivisionError" in problem for problem in watcher.problems())
        watcher.check()
        assert watcher.problems() == {}


def test_a_symlinked_root_is_watched_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real" / "message").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = OpencodeFiles(tmp_path / "link")
    with watching(store) as (_, touches):
        write(store, "ses_1", "msg_1.json")
        touches.until((store.id, "ses_1"))


def test_an_exception_in_the_callback_stops_nothing_and_is_reported(store: OpencodeFiles) -> None:
    told = queue.Queue[str | None]()

    def on_touch(_: str, session: str | None) -> None:
        if session == "ses_bad":
            raise RuntimeError("oops")
        told.put(session)

    watcher = Watcher([store], on_touch)
    watcher.start()
    write(store, "ses_bad", "msg_1.json")
    write(store, "ses_1", "msg_1.json")
    while told.get(timeout=SOON) != "ses_1":
        pass
    assert any("RuntimeError: oops" in problem for problem in watcher.problems())
    watcher.stop()


def test_a_watch_limit_is_reported_with_the_setting_to_raise(
    store: OpencodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching(store) as (watcher, _):
        monkeypatch.setattr(folders, "count_watches", lambda: 1)
        assert [problem for problem in watcher.problems() if "limit" in problem] == [], "it is not reached here"
        monkeypatch.setattr(folders, "why_refused", lambda _: OSError(errno.ENOSPC, "the limit"))
        [(problem, of)] = watcher.problems().items()
        assert "3 folders, 1 watched" in problem and "fs.inotify.max_user_watches" in problem and of == [store.id]


def test_a_folder_that_is_watched_a_moment_after_it_was_made_is_no_problem(
    store: OpencodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching(store) as (watcher, _):
        right = folders.count_watches()
        counts = iter([1, right])
        monkeypatch.setattr(folders, "count_watches", lambda: next(counts))
        assert watcher.problems() == {}


def test_a_root_that_can_not_be_watched_is_reported_and_not_tried_again_at_once(
    store: OpencodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    class Refusing(type(watch.Observer())):  # type: ignore[misc]
        def schedule(self, *args: object, **options: object) -> None:
            tries.append(args)
            raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(watch, "Observer", Refusing)
    with watching(store) as (watcher, touches):
        watcher.check()
        watcher.check()
        assert len(tries) == 2  # the root, and the folder above it
        told = [of for problem, of in watcher.problems().items() if "inotify watch limit reached" in problem]
        assert sorted(told) == [[], [store.id]], "the folder above says only whether it comes and goes"
        assert touches.rest(0) == []


def test_no_observer_at_all_is_reported_and_tried_again(store: OpencodeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(watch, "Observer", refused)
        watcher = Watcher([store], touches := Touches())
        watcher.start()
        [(problem, of)] = watcher.problems().items()
        assert "fs.inotify.max_user_instances" in problem and of == [store.id]
    watcher.check()
    touches.until((store.id, None))
    assert watcher.problems() == {}
    watcher.stop()


def test_writes_to_a_database_are_told_while_the_client_has_it_open(tmp_path: Path) -> None:
    base = Base(tmp_path / "data" / "opencode.db")
    store = OpencodeSqlite(base.path)
    (tmp_path / "data" / "log").mkdir()
    with base.client() as client, watching(store) as (watcher, touches):
        client.execute("PRAGMA wal_autocheckpoint = 0")
        touches.until((store.id, None))
        for title in "abc":
            client.execute("UPDATE project SET name = ?", (title,))
            touches.until((store.id, None))
            touches.rest()
        (tmp_path / "data" / "log" / "opencode.db").write_text("x")
        (tmp_path / "data" / "auth.json").write_text("x")
        (tmp_path / "data" / "opencode.db-shm.x").write_text("x")
        assert touches.rest() == []
        assert watcher.problems() == {}


@pytest.mark.skipif(
    os.geteuid() == 0 and version("watchdog").startswith("6."),
    reason="for root, SQLite sets the owner of the WAL when it opens it, which watchdog 6 takes for a write",
)
def test_reading_a_database_does_not_wake_its_watcher(tmp_path: Path) -> None:
    base = Base(tmp_path / "data" / "opencode.db")
    base.small()
    store = OpencodeSqlite(base.path)
    with watching(store) as (_, touches):
        touches.until((store.id, None))
        store.load("ses_1")
        list(store.fresh({}, 0))
        with base.client() as client:
            client.execute("UPDATE project SET name = 'x'")
            touches.until((store.id, None))
            touches.rest(0.7)  # watchdog 6.0 holds everything back for half a second
            store.load("ses_1")
            list(store.fresh({}, 0))
            assert touches.rest(0.7) == []


def test_a_database_that_is_replaced_is_told(tmp_path: Path) -> None:
    base = Base(tmp_path / "data" / "opencode.db")
    store = OpencodeSqlite(base.path)
    elsewhere = Base(tmp_path / "new.db").path
    with watching(store) as (_, touches):
        touches.until((store.id, None))
        elsewhere.replace(base.path)
        touches.until((store.id, None))
        base.path.rename(tmp_path / "data" / "old.db")
        touches.rest()
        (tmp_path / "data" / "old.db").rename(base.path)
        touches.until((store.id, None))


def test_databases_and_a_tree_share_the_watch_of_their_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    tree = OpencodeFiles(data / "storage")
    one, two = (OpencodeSqlite(data / name) for name in ("opencode.db", "opencode-beta.db"))
    with watching(tree, one, two) as (watcher, touches):
        assert touches.rest(0.05) == []
        bases = [Base(data / name) for name in ("opencode.db", "opencode-beta.db")]
        told = set(touches.until((two.id, None)) + touches.rest())
        assert told == {(one.id, None), (two.id, None)}
        for turn in range(2):  # the folder above the tree is the one of the databases
            write(tree, "ses_1", "msg_1.json")
            touches.until((tree.id, None))
            touches.rest()
            write(tree, "ses_2", "msg_1.json")
            touches.until((tree.id, "ses_2"))
            touches.rest()
            bases[1].run("UPDATE project SET name = 'x'")
            assert set(touches.until((two.id, None)) + touches.rest()) == {(two.id, None)}
            bases[0].run("UPDATE project SET name = 'x'")
            touches.until((one.id, None))
            shutil.rmtree(tree.root)
            touches.rest()
            assert watcher.problems() == {}, turn


def test_while_a_client_streams_hardly_anything_is_told_and_afterwards_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy_files, "CALM_S", 0.3)
    base = Base(tmp_path / "data" / "opencode.db")
    store = OpencodeSqlite(base.path)
    with base.client() as client, watching(store) as (watcher, touches):
        touches.until((store.id, None))
        for turn in range(2):
            client.execute("UPDATE project SET name = ?", (f"first {turn}",))
            touches.until((store.id, None))
            touches.rest()
            for number in range(200):
                client.execute("UPDATE project SET name = ?", (f"{turn} {number}",))
                time.sleep(0.002)
            told = touches.rest()
            assert 1 <= len(told) <= 30
            deadline = time.monotonic() + SOON
            while watcher._bursts:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(0.3)
            touches.rest()
            switches = _wakeups()
            time.sleep(0.3)
            assert _wakeups() - switches <= 4


def test_what_is_written_at_the_end_of_a_burst_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_files, "CALM_S", 0.2)
    base = Base(tmp_path / "data" / "opencode.db")
    store = OpencodeSqlite(base.path)
    with base.client() as client, watching(store) as (_, touches):
        touches.until((store.id, None))
        for number in range(0, 60, 4):  # pauses of all lengths around the one that ends a burst
            client.execute("UPDATE project SET name = ?", (f"{number}",))
            touches.until((store.id, None))
            time.sleep(0.005 * number)
            touches.rest(0)


def test_at_the_end_of_a_burst_a_store_is_told_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite writes to its log before that is visible to others: then no event comes, and no file changes."""
    base = Base(tmp_path / "data" / "opencode.db")
    store = OpencodeSqlite(base.path)
    burst = busy_files.Burst([store])
    assert burst.changed() == [] and not burst.over
    monkeypatch.setattr(busy_files, "CALM_S", -1.0)
    assert burst.changed() == [store.id] and burst.over


def test_stopping_ends_every_thread_and_idle_threads_sleep(store: OpencodeFiles) -> None:
    before = set(threading.enumerate())
    with watching(store) as (_, touches):
        touches.until((store.id, None))
        switches = _wakeups()
        time.sleep(0.5)
        # This thread itself wakes once or twice.
        assert _wakeups() - switches <= 4
    # watchdog 7.0 keeps one reader for the whole process.
    assert not [t for t in threading.enumerate() if t not in before and type(t).__name__ != "InotifyFD"]


def test_stop_without_start_is_harmless(store: OpencodeFiles) -> None:
    Watcher([store], lambda *_: None).stop()


def _wakeups() -> int:
    total = 0
    tasks = Path("/proc/self/task")
    for task in tasks.iterdir() if tasks.exists() else ():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total
