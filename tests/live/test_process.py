"""A real `recoveryd run` on a tree that is written as the client writes it: locks, signals, stores that come and go."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from tests.e2e.daemon import CONFIG, Daemon
from tests.e2e.heals import Files
from tests.live.stuck import EMPTY, HOUR_MS, Stuck, names, outcomes, stopped, tree, wait_healed
from tests.support.parts import api_error, text

# Longer than the daemon waits before it looks, and than it takes to read back.
QUIET = 1.5


def test_a_second_daemon_is_refused_and_told_who_has_the_store(daemon: Daemon, tmp_path: Path) -> None:
    """75, with the process id where the state folder is shared; the first goes on."""
    daemon.start()
    second = daemon.run("run")
    assert second.returncode == 75
    assert "already watching" in second.stderr
    assert f"pid {daemon.pid}" in second.stderr
    home = {"HOME": daemon.env["HOME"]}  # the lock is the user's, whatever the state folder
    stranger = Daemon(tmp_path / "stranger", daemon.storage.parent.parent, env=home).run("run")
    assert stranger.returncode == 75
    assert str(daemon.storage) in stranger.stderr
    stuck = Stuck(daemon.storage)
    stuck.fail()
    wait_healed(daemon, stuck)


def test_the_lock_goes_with_the_process(daemon: Daemon) -> None:
    """After a kill there is nothing to clean up by hand."""
    daemon.start()
    assert daemon.end(signal.SIGKILL) == -signal.SIGKILL
    daemon.start()
    stuck = Stuck(daemon.storage)
    stuck.fail()
    wait_healed(daemon, stuck)


def test_undo_works_beside_the_daemon_and_stays(daemon: Daemon) -> None:
    """Taken back at once, before the daemon read back: it is not repaired again, neither now nor by the next run."""
    daemon.start()
    stuck = Stuck(daemon.storage)
    failed = stuck.fail()
    before = stuck.files
    wait_healed(daemon, stuck)
    assert stuck.files != before
    done = daemon.run("undo", "--json", daemon.history(stuck.id)[0]["id"])
    assert (done.returncode, json.loads(done.stdout)["undone"]) == (0, True), done.stderr
    assert stuck.files == before
    time.sleep(QUIET)
    failed.write_bytes(failed.read_bytes())
    daemon.end()
    daemon.start()
    time.sleep(QUIET)
    assert stuck.files == before
    assert outcomes(daemon, stuck.id) == ["undone"]
    again = daemon.run("undo", daemon.history(stuck.id)[0]["id"])
    assert (again.returncode, "undone before" in again.stderr) == (4, True)


def test_a_dry_run_writes_nothing_and_does_not_count(daemon: Daemon, data: Path) -> None:
    """It says what is wrong; the next real run heals."""
    stuck = Stuck(daemon.storage)
    stuck.fail()
    before = stuck.files
    with Daemon(daemon.root, data, env={"RECOVERYD_DRY_RUN": "true"}) as dry:
        dry.wait(lambda: f"{stuck.id}: tool_result_missing" in dry.log, "it was not said")
        time.sleep(0.3)
    assert (stuck.files, daemon.history()) == (before, [])
    daemon.start()
    wait_healed(daemon, stuck)


def test_an_old_failure_is_left_to_scan_repair(daemon: Daemon) -> None:
    """`run` says how many there are; `scan --repair` heals one beside it, and says so."""
    old = Stuck(daemon.storage, age_ms=31 * HOUR_MS)
    old.fail(age_ms=30 * HOUR_MS)
    before = old.files
    daemon.start()
    time.sleep(QUIET)
    assert (old.files, daemon.history()) == (before, [])
    assert "`recoveryd scan`" in daemon.log
    done = daemon.run("scan", "--repair", "--json")
    assert done.returncode == 0, done.stderr
    assert [(found["session"], found["healed"]) for found in json.loads(done.stdout)["stuck"]] == [(old.id, True)]
    assert outcomes(daemon, old.id) == ["healed"]
    assert old.files != before


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(daemon: Daemon, how: int) -> None:
    """0, also in the middle of many recoveries: each is whole or was not begun, and nothing is pending."""
    daemon.start()
    sessions = [Stuck(daemon.storage) for _ in range(10)]
    before: dict[str, Files] = {}
    stopped(daemon, lambda: before.update({stuck.id: stuck.files for stuck in sessions if stuck.fail()}))
    planted = names(daemon.storage)
    daemon.wait(lambda: not names(daemon.storage) <= planted, "none was healed")
    assert daemon.end(how) == 0
    history = {session: entries[0]["outcome"] for session, entries in daemon.by_session().items()}
    assert set(history.values()) == {"healed"}
    for stuck in sessions:
        assert (stuck.files == before[stuck.id]) == (stuck.id not in history)
    assert [path for path in tree(daemon.storage) if "/." in path] == []
    assert "Traceback" not in daemon.log


def test_a_store_that_appears_later_is_picked_up(daemon: Daemon) -> None:
    """It is said once what is waited for; the first session of the new store is healed."""
    shutil.rmtree(daemon.storage.parent.parent)
    daemon.start()
    assert daemon.log.count("not there yet") == 1
    stuck = Stuck(daemon.storage)
    stuck.fail()
    wait_healed(daemon, stuck)
    assert daemon.run("run").returncode == 75


def test_a_store_that_is_replaced_is_watched_again(daemon: Daemon) -> None:
    """The old tree is moved away whole, a new one takes its place: it is locked and healed like the first."""
    daemon.start()
    first = Stuck(daemon.storage)
    first.fail()
    wait_healed(daemon, first)
    old = daemon.storage.rename(daemon.storage.with_name("storage.old"))
    kept = tree(old)
    second = Stuck(daemon.storage)
    second.fail()
    wait_healed(daemon, second)
    assert daemon.run("run").returncode == 75
    assert tree(old) == kept


def test_a_tree_beside_a_database_is_dead(daemon: Daemon) -> None:
    """The client imported it and reads it no more: nothing of it is edited, and that is said once."""
    daemon.start()
    database = daemon.storage.parent / "opencode.db"
    with contextlib.closing(sqlite3.connect(database)) as db:
        ids = "id text primary key, time_created integer, time_updated integer, data text"
        db.execute("create table session (id text primary key, title text, directory text, time_updated integer)")
        db.execute(f"create table message ({ids}, session_id text)")
        db.execute(f"create table part ({ids}, session_id text, message_id text)")
    sessions = [Stuck(daemon.storage) for _ in range(3)]
    before = [stuck.files for stuck in sessions if stuck.fail()]
    daemon.wait(lambda: "is dead" in daemon.log, "it was not said")
    time.sleep(QUIET)
    assert [stuck.files for stuck in sessions] == before
    assert [line for line in daemon.log.splitlines() if "is dead" in line][1:] == []
    assert "opencode.db" in daemon.log
    assert "healed" not in daemon.log
    assert daemon.history() == []


def test_half_a_message_is_no_news(daemon: Daemon) -> None:
    """A message whose second half comes a tenth of a second later is waited for, not reported."""
    daemon.start()
    stuck = Stuck(daemon.storage)
    failed = stuck.fail(asked="first")
    content = failed.read_bytes()
    for _ in range(3):
        with failed.open("wb", buffering=0) as file:
            file.write(content[: len(content) // 2])
            time.sleep(0.1)
            file.write(content[len(content) // 2 :])
    wait_healed(daemon, stuck)
    assert [line for line in daemon.log.splitlines() if "INFO" not in line] == []
    assert outcomes(daemon, stuck.id) == ["healed"]


def test_a_failure_is_handled_once(daemon: Daemon) -> None:
    """Neither a second write of the same message nor a restart brings a second recovery."""
    daemon.start()
    stuck = Stuck(daemon.storage)
    failed = stuck.fail()
    wait_healed(daemon, stuck)
    after = stuck.files
    for _ in range(2):
        failed.write_bytes(failed.read_bytes())
        time.sleep(0.5)
        daemon.end()
        daemon.start()
    time.sleep(QUIET)
    assert (stuck.files, outcomes(daemon, stuck.id)) == (after, ["healed"])


def test_a_session_that_stays_refused_is_given_up(tmp_path: Path, data: Path) -> None:
    """Two recoveries as configured, then one last word and quiet, also after a restart; an answer counts anew."""
    with Daemon(tmp_path / "daemon", data, config=f"max_retries = 2\n{CONFIG}") as daemon:
        stuck = Stuck(daemon.storage, [text("fine")])
        for number in (1, 2, 3):
            stuck.fail(EMPTY, asked=" \n")
            daemon.wait_settled([stuck.id], number)
        assert outcomes(daemon, stuck.id) == ["gave_up", "healed", "healed"]
        stuck.fail(EMPTY, asked=" ")
        daemon.end()
        daemon.start()
        stuck.fail(EMPTY, asked=" ")
        before = stuck.files
        time.sleep(QUIET)
        assert (stuck.files, outcomes(daemon, stuck.id)) == (before, ["gave_up", "healed", "healed"])
        assert daemon.log.count("gave_up") == 1
        stuck.answer()
        stuck.fail(EMPTY, asked=" \t")
        daemon.wait_settled([stuck.id], 4)
        assert outcomes(daemon, stuck.id) == ["healed", "gave_up", "healed", "healed"]


@pytest.mark.parametrize(
    "error",
    [
        api_error("Overloaded", 529, True),
        api_error("This request would exceed your account's rate limit. Please try again later.", 429, True),
        {"name": "ProviderAuthError", "data": {"providerID": "anthropic", "message": "invalid x-api-key"}},
        {
            "name": "UnknownError",
            "data": {"message": "Error: Unable to connect. Is the computer able to access the url?"},
        },
    ],
    ids=["overloaded", "rate limit", "key", "network"],
)
def test_other_failures_are_left_alone(daemon: Daemon, error: dict[str, object]) -> None:
    """What the store is not to blame for causes no recovery, though the session has a fault as well."""
    daemon.start()
    stuck = Stuck(daemon.storage)
    stuck.fail(error=error)
    before = stuck.files
    time.sleep(QUIET)
    assert (stuck.files, daemon.history()) == (before, [])
