"""A daemon whose disk, watches, paths or stores fail it: it says so, goes on, and heals once that has passed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.crash_matrix.places import EMPTY, FAULTS
from tests.e2e.daemon import Daemon
from tests.live.quick import quick
from tests.live.stuck import Stuck, outcomes, stopped, tree, wait_healed
from tests.support.build import Planted, SessionBuilder
from tests.support.database import NEW, SCHEMAS
from tests.support.parts import api_error, text, tool
from tests.support.plant import write_sqlite

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
Mount = Callable[[Path], None]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Mount]:
    """Makes a folder a file system of 2 MB, where that is allowed; taken away again in any case."""
    mounted: list[Path] = []

    def mount(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        asked = ["mount", "-t", "tmpfs", "-o", "size=2m", "recoveryd-test", str(folder)]
        done = subprocess.run(asked, capture_output=True, text=True, check=False) if shutil.which("mount") else None
        if done is None or done.returncode:
            pytest.skip(f"no file system may be mounted here; see the test of the limit ({done and done.stderr})")
        mounted.append(folder)

    try:
        yield mount
    finally:
        for folder in mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Leaves not a byte free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        for size in (1 << 16, 1 << 12, 1 << 9):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return filler


def large(storage: Path) -> Stuck:
    """A session with a fault in a record of 300 kB: no room that is left over by chance is enough for it."""
    return Stuck(storage, [tool("bad name!", output="x" * 300_000), text("behind")])


@pytest.mark.parametrize("place", ["data", "daemon/state"])
def test_a_full_disk(tmp_path: Path, small: Mount, place: str) -> None:
    """Of the store, or of the ledger: told once, the session is not touched, and healed when there is room."""
    small(tmp_path / place)
    with quick(tmp_path / "daemon", tmp_path / "data") as daemon:
        stuck = large(daemon.storage)
        stopped(daemon, lambda: (stuck.fail(), fill(tmp_path / place)))
        before = stuck.files
        daemon.wait(lambda: "disk is full" in daemon.log, "it was not told")
        time.sleep(2.5)
        assert stuck.files == before
        told = [line.split(" ", 1)[1] for line in daemon.log.splitlines() if "disk is full" in line]
        assert len(told) == 1, told
        (tmp_path / place / "filler").unlink()
        wait_healed(daemon, stuck)
        assert outcomes(daemon, stuck.id) == ["healed"]
        assert [path for path in tree(daemon.storage) if "/." in path] == []


def test_commands_on_a_full_disk_without_a_daemon(tmp_path: Path, small: Mount) -> None:
    """SQLite calls it an error of the disk: there is no room for what it maps beside the ledger."""
    small(tmp_path / "daemon/state")
    with quick(tmp_path / "daemon", tmp_path / "data") as daemon:
        stuck = Stuck(daemon.storage)
        stuck.fail()
        wait_healed(daemon, stuck)
        daemon.end()
        filler = fill(tmp_path / "daemon/state")
        for command in (["scan"], ["history"]):
            done = daemon.run(*command)
            assert (
                done.returncode,
                done.stderr.count("its disk is full, or your quota of it.\nMake room on its disk."),
            ) == (1, 1), done
        for command in (["status"], ["doctor"]):
            told = daemon.run(*command).stdout
            assert "it can't be used: the disk is full" in told and "keep a copy" not in told, told
        filler.unlink()
        assert outcomes(daemon, stuck.id) == ["healed"]


def test_a_limit_of_what_may_be_written(tmp_path: Path) -> None:
    """No file may grow by a byte, as with a full disk or a quota, which not every machine lets us make."""
    with quick(tmp_path / "daemon", tmp_path / "data") as daemon:
        stuck = Stuck(daemon.storage)
        _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)

        def limit() -> None:
            stuck.fail()
            resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (0, hard))

        stopped(daemon, limit)
        before = stuck.files
        time.sleep(3)  # nothing can be logged either
        assert stuck.files == before
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_healed(daemon, stuck)
        assert outcomes(daemon, stuck.id) == ["healed"]


def test_a_store_at_an_odd_path(tmp_path: Path) -> None:
    """Spaces, newlines, quotes and bytes that are no UTF-8: healed, listed and undone."""
    data = tmp_path / os.fsdecode(b"my data\n'\"%?#\xff\xe9")
    with quick(tmp_path / "daemon", data) as daemon:
        stuck = Stuck(daemon.storage)
        stuck.fail()
        before = stuck.files
        wait_healed(daemon, stuck)
        assert outcomes(daemon, stuck.id) == ["healed"]
        done = daemon.run("undo", daemon.history(stuck.id)[0]["id"])
        assert done.returncode == 0, done.stderr
        assert stuck.files == before
        assert daemon.run("scan").returncode == 1
        assert "Traceback" not in daemon.log


def test_a_database_at_an_odd_path(tmp_path: Path) -> None:
    """The same for the other store, which is named in a URI."""
    data = tmp_path / os.fsdecode(b"my data\n'\"%?#\xff\xe9")
    path = database(data)
    with quick(tmp_path / "daemon", data) as daemon:
        planted = refused(path)
        daemon.wait(lambda: outcomes(daemon, planted.id) == ["healed"], "it was not healed")
        done = daemon.run("undo", daemon.history(planted.id)[0]["id"])
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in daemon.log


def database(data: Path) -> Path:
    """An empty one, as the client makes it."""
    path = data / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMAS[NEW])
    return path


def refused(path: Path) -> Planted:
    """A session of the database whose last turn was refused a moment ago."""
    builder = SessionBuilder(int(time.time() * 1000) - 60_000)
    FAULTS["one"](builder)
    builder.failed("continue", api_error(EMPTY, 400))
    write_sqlite(builder.planted(), path)
    return builder.planted()


def test_a_second_daemon_on_a_database(tmp_path: Path) -> None:
    """75 and who has it; the first one goes on."""
    path = database(tmp_path / "data")
    with quick(tmp_path / "daemon", tmp_path / "data") as daemon:
        second = Daemon(tmp_path / "second", tmp_path / "data", env={"HOME": daemon.env["HOME"]}).run("run")
        assert (second.returncode, "already watching" in second.stderr) == (75, True)
        planted = refused(path)
        daemon.wait(lambda: outcomes(daemon, planted.id) == ["healed"], "it was not healed")


def test_a_store_that_is_moved_away_and_linked_to(tmp_path: Path) -> None:
    """While it runs: watched, locked and healed at its new place, and what was repaired before can be undone."""
    with quick(tmp_path / "daemon", tmp_path / "data") as daemon:
        first = Stuck(daemon.storage)
        first.fail()
        before = first.files
        wait_healed(daemon, first)
        entry = daemon.history(first.id)[0]["id"]
        moved = tmp_path / "other disk" / "storage"
        moved.parent.mkdir()
        daemon.storage.rename(moved)
        daemon.storage.symlink_to(moved)
        second = Stuck(daemon.storage)
        second.fail()
        wait_healed(daemon, second)
        home = {"HOME": daemon.env["HOME"]}
        assert Daemon(tmp_path / "second", tmp_path / "data", env=home).run("run").returncode == 75
        done = daemon.run("undo", entry)
        assert done.returncode == 0, done.stderr
        assert first.files == before
        assert [path for path in tree(moved) if "/." in path] == []
        assert "Traceback" not in daemon.log


def test_an_event_queue_that_overflows(tmp_path: Path) -> None:
    """More writes than the kernel keeps while the daemon stands still, the failure last: found by the next sweep."""
    with quick(tmp_path / "daemon", tmp_path / "data") as daemon:
        noise = [Stuck(daemon.storage) for _ in range(2)]
        files = [daemon.storage / "message" / s.id / f"{s.planted.messages[0]['id']}.json" for s in noise]
        stuck = Stuck(daemon.storage)

        def overflow() -> None:
            content = [file.read_bytes() for file in files]
            for number in range(max(20_000, int(QUEUE.read_text()) + 1000)):
                files[number % 2].write_bytes(content[number % 2])  # two that are alike would be one event
            stuck.fail()

        stopped(daemon, overflow)
        wait_healed(daemon, stuck)
        later = Stuck(daemon.storage)
        later.fail()
        wait_healed(daemon, later)
        assert {entry["session"] for entry in daemon.history()} == {stuck.id, later.id}


_NAMESPACE = ("unshare", "-Ur", "sh", "-c", 'echo 20 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh")


def test_watches_that_run_out(tmp_path: Path) -> None:
    """A limit of 20 in a namespace of its own: log, `status` and `doctor` tell what to raise; the sweep heals all the
    same.
    """
    asked = [*_NAMESPACE, "true"]
    if shutil.which("unshare") is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("no user namespace may be made here; tests/watch has the same through a seam")
    for name in ("session", "message", "part"):
        (tmp_path / "data" / "opencode" / "storage" / name).mkdir(parents=True)
    sessions = [Stuck(tmp_path / "data" / "opencode" / "storage") for _ in range(40)]
    with quick(tmp_path / "daemon", tmp_path / "data", before=_NAMESPACE) as daemon:
        daemon.wait(lambda: "raise fs.inotify.max_user_watches" in daemon.log, "it was not told")
        for stuck in sessions:
            stuck.fail()
        wait_healed(daemon, *sessions)
        told = [line.split(" ", 1)[1] for line in daemon.log.splitlines() if "inotify" in line]
        assert len(told) == len(set(told)), "said once each"
        assert "Traceback" not in daemon.log
        [store] = json.loads(daemon.run("status", "--json").stdout)["stores"]
        assert store["watched"] == daemon.pid and "raise fs.inotify.max_user_watches" in store["late"]
        assert "looked at once a minute only" in daemon.run("status").stdout
    alone = [*_NAMESPACE, sys.executable, "-m", "recoveryd", "doctor", "--json"]
    done = subprocess.run(alone, env=daemon.env, cwd=tmp_path, capture_output=True, text=True, check=False)
    [watches] = [check for check in json.loads(done.stdout)["checks"] if check["code"] == "watches"]
    assert watches["level"] == "fail" and "fs.inotify.max_user_watches=" in watches["next"], "it tries, where none runs"
