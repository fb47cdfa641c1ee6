"""The ledger's file: who may read it, what is said when it can't be used, and many processes on it at once."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recoveryd.core.errors import BusyError, LedgerError
from recoveryd.core.model import Change
from recoveryd.ledger.ledger import SCHEMA_VERSION, Ledger
from tests.ledger.test_ledger import begin, failure, heal


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "state" / "ledger.db") as made:
        yield made


def hold(path: Path) -> sqlite3.Connection:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ledger.db"
    with Ledger(path) as ledger:
        heal(ledger)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    Ledger(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def test_a_commit_is_synced(ledger: Ledger) -> None:
    settings = [ledger.file.db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 2]


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    other.close()
    before = path.read_bytes()
    with pytest.raises(
        LedgerError, match=rf"newer recoveryd \(schema {SCHEMA_VERSION + 1}; this one knows {SCHEMA_VERSION}\)"
    ):
        Ledger(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 1])
def test_a_database_of_another_program_is_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute(f"PRAGMA user_version = {version}")
    other.close()
    with pytest.raises(LedgerError, match="another program"):
        Ledger(path)


def test_what_is_no_database_is_named_and_left_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"not a database " * 100)
    with pytest.raises(LedgerError, match="is damaged") as caught:
        Ledger(path)
    assert "move the file" in caught.value.hint
    assert path.read_bytes() == b"not a database " * 100


def test_damage_inside_is_said_when_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        for n in range(50):
            heal(ledger, failure(f"msg_{n}"))
    raw = bytearray(path.read_bytes())
    raw[4096 * 2 :] = b"\xaa" * (len(raw) - 4096 * 2)
    path.write_bytes(raw)
    with pytest.raises(LedgerError, match="is damaged"), Ledger(path) as ledger:
        ledger.history(100)
        heal(ledger)


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    with Ledger(path) as ledger:
        assert heal(ledger)


def test_a_folder_in_its_place_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="can't be used: unable to open"):
        Ledger(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match=r"can't be opened: (File exists|Not a directory)"):
        Ledger(tmp_path / "file" / "ledger.db")


def test_a_full_disk_is_said_in_words_and_leaves_nothing_half_done(ledger: Ledger) -> None:
    name = heal(ledger)
    pages = ledger.file.db.execute("PRAGMA page_count").fetchone()[0]
    ledger.file.db.execute(f"PRAGMA max_page_count = {pages + 2}")  # what SQLite then raises is what a full disk raises
    with pytest.raises(LedgerError, match="full") as caught:
        begin(ledger, failure("msg_2"), [Change("k", bytes(100_000), None)])
    assert "Make room" in caught.value.hint
    assert [r.id for r in ledger.history(5)] == [name]
    ledger.file.db.execute("PRAGMA max_page_count = 1000000")
    assert heal(ledger, failure("msg_3"))


class _AllButFull(sqlite3.Connection):
    """On a disk without room for what the WAL has: that is left where it is."""

    def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        if "wal_checkpoint" not in query:
            return super().execute(query, *values)
        self.other = sqlite3.Connection(super().execute("PRAGMA database_list").fetchone()[2])
        self.other.execute("SELECT count(*) FROM sqlite_master").fetchone()
        raise sqlite3.OperationalError("database or disk is full")


def test_one_that_is_made_without_room_for_all_of_it_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, connect = tmp_path / "ledger.db", sqlite3.connect
    with monkeypatch.context() as full:
        full.setattr("sqlite3.connect", lambda *of, **how: connect(*of, **how, factory=_AllButFull))
        with pytest.raises(LedgerError, match="full"):
            Ledger(path)
    assert list(tmp_path.iterdir()) == []
    with Ledger(path) as ledger:
        assert heal(ledger)


_MADE_TWICE = """
import os, pathlib, sys
from recoveryd.core import RecoverydError
from recoveryd.ledger.ledger import Ledger

place, left = pathlib.Path(sys.argv[1]), int(sys.argv[2]) * 1024
place.joinpath("state").mkdir(mode=0o700)
free = os.statvfs(place)
place.joinpath("fill").write_bytes(bytes(free.f_bavail * free.f_frsize - left))
for _ in range(2):
    try:
        Ledger(place / "state" / "ledger.db").close()
        print("made")
    except RecoverydError as error:
        print(error.message.rpartition(": ")[2])
    print(*os.listdir(place / "state"))
    place.joinpath("fill").unlink(missing_ok=True)
"""


@pytest.mark.live
@pytest.mark.parametrize("left", [16, 32, 64, 96, 112, 132])
def test_on_a_disk_that_is_all_but_full_it_is_made_once_there_is_room(tmp_path: Path, left: int) -> None:
    small = ("unshare", "-Urm", "sh", "-c", 'mount -t tmpfs -o size=2m none "$0" && exec "$@"', str(tmp_path))
    if shutil.which("unshare") is None or subprocess.run([*small, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no disk may be mounted here; the test above has the same through a seam")
    asked = [*small, sys.executable, "-c", _MADE_TWICE, str(tmp_path), str(left)]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["its disk is full, or your quota of it.", "", "made", "ledger.db"]


_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


@pytest.mark.live
@pytest.mark.parametrize("left", ["whole", "with its log"])
def test_on_a_disk_that_went_read_only_the_originals_are_had(tmp_path: Path, left: str) -> None:
    state = tmp_path / "state" / "recoveryd"
    only_read = ("unshare", "-Urm", "sh", "-c", _READ_ONLY, str(tmp_path / "state"))
    state.parent.mkdir()
    asked = [*only_read, "true"]
    if shutil.which("unshare") is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("no disk may be mounted here")
    with Ledger(tmp_path / "made" / "ledger.db") as ledger:
        name = heal(ledger)
        if left == "with its log":
            shutil.copytree(tmp_path / "made", state)  # as one that is killed leaves it
    if left == "whole":
        shutil.copytree(tmp_path / "made", state)
    before = sorted(state.iterdir())
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path / "state")}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        asked = [*only_read, sys.executable, "-m", "recoveryd", *command]
        return subprocess.run(asked, env=env, capture_output=True, text=True, check=False)

    assert name in run("history", "--json").stdout
    assert run("ledger", "export", name, "--out", str(tmp_path / "out")).returncode == 0
    refused = run("ledger", "forget", failure().session, "--yes")
    assert (refused.returncode, sorted(state.iterdir())) == (1, before), refused.stderr
    assert "read-only" in refused.stderr


def test_a_busy_ledger_is_a_busy_error(ledger: Ledger) -> None:
    ledger.file.db.execute("PRAGMA busy_timeout = 10")
    other = hold(ledger.file.path)
    with pytest.raises(BusyError, match="in use"):
        begin(ledger)
    other.close()
    assert begin(ledger)


@pytest.mark.live
def test_many_processes_may_make_and_write_it_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ledger.db"
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_write_some, args=(path, n)) for n in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join(15)
    assert [child.exitcode for child in children] == [0] * 8
    with Ledger(path) as ledger:
        assert len(ledger.history(1000)) == 80
        assert ledger.pending() == []
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def _write_some(path: Path, number: int) -> None:
    with Ledger(path) as ledger:
        for n in range(10):
            heal(ledger, failure(f"msg_{number}_{n}"))


def _remove(path: Path) -> None:
    for file in path.parent.glob("ledger.db*"):
        file.unlink()


def _move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def _replace(path: Path) -> None:
    other = path.with_name("other.db")
    Ledger(other).close()
    other.replace(path)


@pytest.mark.parametrize("change", [_remove, Path.unlink, _move_folder, _replace])
def test_what_is_kept_stands_in_the_file_that_is_there(
    ledger: Ledger, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    """Originals that are written into a file that was removed or moved away are lost."""
    before, told = heal(ledger), list[str]()
    ledger.file.replaced = lambda: told.append("replaced")
    change(ledger.file.path)
    assert ledger.history(9) == [] and told == ["replaced"]
    kept = begin(ledger, changes=[Change("part/a", b"word", b"")])
    with Ledger(tmp_path / "state" / "ledger.db") as another:
        assert [entry.id for entry in another.history(9)] == [kept] != [before]
        assert [found.before for found in another.changes(kept)] == [b"word"]
    assert ledger.file.read("PRAGMA quick_check") == [("ok",)]


def test_one_that_is_moved_away_takes_along_what_only_its_wal_had(ledger: Ledger, tmp_path: Path) -> None:
    kept = heal(ledger)
    ledger.file.path.rename(tmp_path / "ledger.db")
    assert ledger.history(9) == []
    with Ledger(tmp_path / "ledger.db") as moved:
        assert [entry.id for entry in moved.history(9)] == [kept]


def test_one_that_can_not_be_made_anew_is_tried_again(ledger: Ledger) -> None:
    place = ledger.file.path.parent
    _move_folder(ledger.file.path)
    place.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(LedgerError):
            heal(ledger)
    place.unlink()
    heal(ledger)


def test_what_a_crash_left_of_a_copy_of_it_is_removed(tmp_path: Path) -> None:
    """It holds what a user may have had forgotten since."""
    Ledger(tmp_path / "ledger.db").close()
    left = tmp_path / ".recoveryd-0123456789"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    Ledger(tmp_path / "ledger.db").close()
    assert not left.exists()
