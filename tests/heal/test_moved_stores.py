"""Stores that come late, that another daemon watches, and that were moved."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import recoveryd.daemon.daemon as module
from recoveryd.clients import Config
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.core.diagnosis import Diagnosis
from recoveryd.core.model import Kind, Outcome, Refused
from recoveryd.daemon.daemon import Daemon
from recoveryd.diagnose import standing_repair, undone_repair
from recoveryd.disk import StoreLock, lockers
from recoveryd.heal import lifecycle
from recoveryd.heal.moved_stores import find_store, follow_moved
from recoveryd.heal.undo import undo
from recoveryd.ledger.known_stores import KnownStores
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import Notify, paths
from recoveryd.tell.callbacks import Callbacks
from tests.support.build import SessionBuilder, api_error
from tests.support.cases import case
from tests.support.database import OLD, Base
from tests.support.plant import write_sqlite
from tests.support.running import Running, is_healed, running, until
from tests.support.trees import MISSING, Bench, Tree, behind_a_call


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SWEEP_S", 0.1)


@contextmanager
def finding(home: Path) -> Iterator[Running]:
    """A daemon that finds its stores itself, in `home`."""
    made = Running(home)
    made.daemon = Daemon(
        Config(notify=Notify(desktop=False)),
        callbacks=Callbacks(on_complete=made.events.append),
        state_dir=made.state,
        env={"XDG_DATA_HOME": str(home), "HOME": str(home)},
    )
    made.thread.start()
    try:
        until(lambda: made.daemon._swept)
        yield made
    finally:
        made.stop()


def stuck_in(database: Path) -> None:
    session = SessionBuilder(int(time.time() * 1000) - 20_000, title="S")
    behind_a_call(session)
    session.failed("continue", api_error(MISSING, 400))
    Base(database, OLD, clock=time.time)
    write_sqlite(session.planted(), database)


@pytest.mark.live
def test_of_two_that_wait_for_a_store_one_gets_it(tmp_path: Path) -> None:
    """Both are told of what is written there."""
    store = OpencodeFiles(tmp_path / "opencode" / "storage")
    with running(tmp_path / "one", store) as one, running(tmp_path / "two", OpencodeFiles(store.root)) as two:
        until(lambda: one.daemon._swept and two.daemon._swept)
        tree = Tree(tmp_path)
        until(lambda: one.daemon._locks.mine(store) or two.daemon._locks.mine(store))
        session = tree.stuck()
        until(lambda: one.events or two.events)
        one.sweeps(2)
        two.sweeps(2)
        assert is_healed(tree, session)
    assert [event.outcome for event in [*one.events, *two.events]] == [Outcome.HEALED]


@pytest.mark.live
def test_a_store_is_taken_over_when_the_one_that_watches_it_ends(tmp_path: Path) -> None:
    theirs, ours = Tree(tmp_path / "theirs"), Tree(tmp_path / "ours")
    with running(tmp_path / "one", theirs.store) as one:
        until(lambda: one.daemon._swept)
        second = Running(tmp_path / "two", theirs.store, ours.store)
        second.thread.start()
        until(lambda: len(second.daemon._swept) == 2)
    try:
        session = theirs.stuck()
        until(lambda: second.events)
    finally:
        second.stop()
    assert [event.session for event in second.events] == [session] and is_healed(theirs, session)


@pytest.mark.live
def test_the_database_of_another_channel_is_found_when_it_comes(tmp_path: Path) -> None:
    (tmp_path / "opencode").mkdir()
    with finding(tmp_path) as daemon:
        stuck_in(tmp_path / "opencode" / "opencode-local.db")
        until(lambda: daemon.events)
        (tmp_path / "disk").mkdir()
        stuck_in(tmp_path / "disk" / "other.db")
        (tmp_path / "opencode" / "opencode.db").symlink_to(tmp_path / "disk" / "other.db")
        until(lambda: len(daemon.events) == 2)
    assert [Path(event.store).name for event in daemon.events] == ["opencode-local.db", "other.db"]


@pytest.mark.live
def test_a_link_that_is_pointed_elsewhere_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "CONFIRM_S", 1.0)  # the folder is looked at a moment after the link was changed
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "opencode").symlink_to(tmp_path / "a")
    stuck_in(tmp_path / "a" / "opencode.db")
    with finding(tmp_path) as daemon:
        until(lambda: daemon.events)
        (tmp_path / "opencode").unlink()
        (tmp_path / "opencode").symlink_to(tmp_path / "b")
        stuck_in(tmp_path / "b" / "opencode.db")
        until(lambda: len(daemon.events) == 2)
        assert list(daemon.daemon._locks._held) == [tmp_path / "b"]


@pytest.mark.live
def test_a_folder_that_was_moved_away_is_given_back(tmp_path: Path) -> None:
    (tmp_path / "opencode").mkdir()
    stuck_in(tmp_path / "opencode" / "opencode.db")
    with finding(tmp_path) as daemon:
        until(lambda: daemon.events)
        place = paths.lock_dir(daemon.state)
        (tmp_path / "opencode").rename(tmp_path / "disk")
        until(lambda: not lockers(place, tmp_path / "disk"))  # the note goes before it
        with StoreLock(tmp_path / "disk", place, "theirs"):
            (tmp_path / "opencode").symlink_to(tmp_path / "disk")
            daemon.sweeps(2)
            assert not daemon.daemon._locks._held, "it is another's now"


@pytest.mark.live
@pytest.mark.parametrize("linked", [True, False])
def test_what_the_user_undid_stays_undone_where_a_store_was_moved_to(tmp_path: Path, linked: bool) -> None:
    tree = Tree(tmp_path)
    session = tree.stuck()
    with running(tmp_path, tree.store) as daemon:
        until(lambda: daemon.events)
    with Ledger(daemon.state / "ledger.db") as ledger:
        undo(tree.store, ledger, ledger.get(daemon.events[0].id))
    shutil.move(tmp_path / "opencode", tmp_path / "disk")
    if linked:
        (tmp_path / "opencode").symlink_to(tmp_path / "disk")
    moved = OpencodeFiles(tmp_path / "disk" / "storage")
    with running(tmp_path, moved) as daemon:
        daemon.sweeps(2)
    assert daemon.events == []
    [entry] = daemon.history()
    assert (entry.store, entry.session, entry.outcome) == (moved.id, session, Outcome.UNDONE)


def test_the_cap_and_undo_follow_a_store_and_a_copy_has_no_past(tmp_path: Path) -> None:
    tree, bench = Tree(tmp_path), Bench(tmp_path)
    session = tree.stuck()
    name = bench.attempt(tree, session).id
    shutil.copytree(tmp_path / "opencode", tmp_path / "copy")
    copy = OpencodeFiles(tmp_path / "copy" / "storage")
    follow_moved(tree.store, bench.ledger)
    follow_moved(copy, bench.ledger)
    assert KnownStores(bench.ledger.file).ids() == [tree.store.id]
    shutil.rmtree(tmp_path / "copy")
    shutil.move(tmp_path / "opencode", tmp_path / "disk")
    other = Tree(tmp_path / "other")
    other.stuck()
    follow_moved(other.store, bench.ledger)  # has no such session
    moved = OpencodeFiles(tmp_path / "disk" / "storage")
    for _ in range(2):
        follow_moved(moved, bench.ledger)
    assert KnownStores(bench.ledger.file).ids() == [moved.id]
    assert len(bench.ledger.tries(moved.id, session, moved.look(session).last_answer)) == 1
    assert undo(moved, bench.ledger, bench.ledger.get(name))


def test_a_copy_is_not_the_store_whose_disk_is_not_mounted(tmp_path: Path) -> None:
    """It knows what became of its failures, and that the user took a repair back; nothing else is its own."""
    tree, bench = Tree(tmp_path), Bench(tmp_path)
    follow_moved(tree.store, bench.ledger)
    session = tree.stuck()
    shutil.copytree(tmp_path / "opencode", tmp_path / "earlier")
    event = bench.attempt(tree, session)
    shutil.copytree(tmp_path / "opencode", tmp_path / "copy")
    shutil.move(tmp_path / "opencode", tmp_path / "unmounted")
    copy, earlier = (OpencodeFiles(tmp_path / name / "storage") for name in ("copy", "earlier"))
    follow_moved(copy, bench.ledger)
    failure = copy.look(session).failure
    assert failure is not None
    assert event.kind is not None
    found = Diagnosis(failure, Refused(event.kind))
    assert find_store([copy], bench.ledger, tree.store.id) is None, "undo must not write to it"
    assert [entry.store for entry in bench.ledger.history(9)] == [tree.store.id]
    assert bench.ledger.handled(copy.id, session, event.message) is not None
    assert standing_repair(copy, bench.ledger, found) is not None, "what is stored in it was repaired"
    shutil.move(tmp_path / "unmounted", tmp_path / "opencode")
    undo(tree.store, bench.ledger, bench.ledger.get(event.id))
    assert standing_repair(tree.store, bench.ledger, found) is None
    assert standing_repair(copy, bench.ledger, found) is not None, "nobody took it back there"
    assert standing_repair(earlier, bench.ledger, found) is None, "nor made it there"
    for store in (copy, earlier):
        back = undone_repair(store, bench.ledger, failure)
        assert back is not None and back.recovery == event.id, "and nobody makes it against the user's wish"


def test_a_moved_store_is_found_without_a_word_in_the_ledger(tmp_path: Path) -> None:
    tree, bench = Tree(tmp_path), Bench(tmp_path)
    follow_moved(tree.store, bench.ledger)
    bench.attempt(tree, tree.stuck())
    shutil.move(tmp_path / "opencode", tmp_path / "disk")
    moved = OpencodeFiles(tmp_path / "disk" / "storage")
    assert find_store([moved], bench.ledger, tree.store.id) is moved
    assert KnownStores(bench.ledger.file).ids() == [tree.store.id]


def test_what_another_process_did_meanwhile_is_seen_under_the_lock(tmp_path: Path) -> None:
    tree, bench = Tree(tmp_path), Bench(tmp_path)
    session = tree.stuck()
    before, failure = tree.files(), tree.failure(session)
    event = bench.recovery.attempt(case(tree.store, failure, Kind.TOOL_RESULT_MISSING), lambda: False).event
    assert (event.outcome, tree.files(), bench.ledger.history(9)) == (Outcome.PENDING, before, [])
