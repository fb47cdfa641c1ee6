"""`doctor`: each check finds what it is about, says what to do, and writes nothing."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recoveryd.clients import Config
from recoveryd.clients.connection_owner import Owner
from recoveryd.clients.http import Answer
from recoveryd.clients.opencode import generations, server_address
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.processes import Listener
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.server_address import LocalServers
from recoveryd.clients.opencode.settings import NamedStore, OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.versions import TESTED, version_text
from recoveryd.clients.opencode.wrapped_ids import before_wrap
from recoveryd.clients.store import Store
from recoveryd.core.errors import ConfigError, RecoverydError
from recoveryd.core.health_check import Check
from recoveryd.core.model import Change, Failure, Kind, Outcome
from recoveryd.disk import private_files
from recoveryd.disk.locks import RunNote, StoreLock
from recoveryd.doctor import host_checks
from recoveryd.doctor.checks import CODES, examine, none_failed
from recoveryd.doctor.examined import Patient
from recoveryd.doctor.status import collect_status
from recoveryd.ledger.ledger import Ledger, Record
from recoveryd.service.launchd import Launchd
from recoveryd.service.systemd import Systemd
from recoveryd.settings import LedgerLimits, Notify, paths
from recoveryd.settings.overrides import ignored, pause
from recoveryd.watch import folders
from tests.cli.contract import faults
from tests.conftest import Run
from tests.doctor.test_status import heal
from tests.support.database import NEW, OLD, Base
from tests.support.fake_client import listening
from tests.support.json_tree import NOW, name
from tests.support.json_tree import Tree as Plain
from tests.support.stores import KiloRows
from tests.support.trees import Tree

BEFORE = 1_786_000_000_000  # ms; days before ids started again
BIG = Change("part/x", b'{"text":"' + b"x" * 1_500_000 + b'"}', b'{"text":"y"}')

HOLDS_A_LEDGER = """
import pathlib, sys, time
from recoveryd.service.launchd import Launchd
from recoveryd.ledger.ledger import Ledger
from recoveryd.ledger.seen_and_resumed import SeenSessions
ledger = Ledger(pathlib.Path(sys.argv[1]))
SeenSessions(ledger.file).remember("a", {"b": "c"})
print("up", flush=True)
time.sleep(60)
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return private_files.make_folder(tmp_path / "state")


listening_versions = OpencodeServer.listening_versions  # before the tests take it away


class Nobody:
    """No manager of services."""

    log_command = ""

    def state(self) -> str:
        return "none"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client, no desktop, no service manager but those a test makes."""
    monkeypatch.setattr(OpencodeServer, "listening_versions", lambda *_: ())
    monkeypatch.setattr(host_checks, "can_show", lambda: (False, "there is no session bus"))
    monkeypatch.setattr(host_checks, "of_this_system", lambda *_: Nobody())


def patient(state: Path, *stores: Store, now: float | None = None, **options: Any) -> Patient:
    config = options.pop("config", Config())
    return Patient(config, state / "config.toml", state, stores, now or time.time(), **options)


def of(code: str, patient: Patient) -> list[Check]:
    return [check for check in examine(patient) if check.code == code]


def one(code: str, patient: Patient) -> Check:
    [found] = of(code, patient)
    return found


def everything(folder: Path) -> dict[str, Any]:
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


def test_a_home_with_nothing_in_it_has_warnings_and_nothing_is_made(tmp_path: Path) -> None:
    checks = list(examine(patient(tmp_path / "state", OpencodeFiles(tmp_path / "storage"))))
    assert none_failed(checks)
    assert one("stores", patient(tmp_path / "state")).level == "warn"
    assert list(tmp_path.iterdir()) == []


def test_every_check_has_a_code_words_and_where_it_is_not_ok_a_way_on(tmp_path: Path, state: Path) -> None:
    tree, base = Tree(tmp_path), Base(tmp_path / "db" / "opencode.db", clock=time.time)
    tree.stuck()
    with Ledger(state / "ledger.db") as ledger:
        heal(ledger, "r1", tree.store, "ses_1")
    before = everything(tmp_path)
    checks = list(examine(patient(state, tree.store, base.store)))
    assert everything(tmp_path) == before, "it only reads"
    assert {check.code for check in checks} == set(CODES)
    assert list(dict.fromkeys(check.code for check in checks)) == list(CODES), "in the order of the list"
    assert all(check.says.endswith(".") for check in checks)
    assert all(check.next for check in checks if check.level != "ok")
    assert none_failed(checks)


@pytest.mark.live
def test_beside_a_running_daemon_nothing_is_touched_either(tmp_path: Path, state: Path) -> None:
    """Its ledger has a WAL, the client's database too."""
    base = Base(tmp_path / "db" / "opencode.db", clock=time.time)
    command = [sys.executable, "-c", HOLDS_A_LEDGER, str(state / "ledger.db")]
    with base.client() as client, subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        client.execute("CREATE TABLE x (y)")
        try:
            assert process.stdout is not None and process.stdout.readline() == b"up\n"
            names = sorted(p.name for p in (*state.iterdir(), *base.path.parent.iterdir()))
            assert none_failed(examine(patient(state, base.store)))
            assert sorted(p.name for p in (*state.iterdir(), *base.path.parent.iterdir())) == names
            assert "ledger.db-wal" in names and "opencode.db-wal" in names
        finally:
            process.kill()


class TestHost:
    def test_a_configuration_that_is_not_sound_fails_and_the_rest_is_checked(self, state: Path) -> None:
        problem = ConfigError("config.toml: unknown key `x`.", "Every key is optional.")
        checks = list(examine(patient(state, config_problem=problem)))
        [config] = [check for check in checks if check.code == "config"]
        assert config.level == "fail" and "unknown key" in config.says and config.next
        assert len(checks) > 8 and not none_failed(checks)

    def test_a_state_folder_that_can_not_be_made(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert one("state_folder", patient(tmp_path / "a" / "b")).level == "ok"
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
        found = one("state_folder", patient(tmp_path / "a" / "b"))
        assert found.level == "fail" and f"{tmp_path} can't be written to" in found.says

    def test_a_state_folder_that_others_can_read(self, state: Path) -> None:
        state.chmod(0o755)
        assert one("state_folder", patient(state)).level == "fail"
        state.chmod(0o700)
        (state / "ledger.db").touch(0o644)
        (state / "ledger.db").chmod(0o644)
        found = one("state_folder", patient(state))
        assert found.level == "warn" and "ledger.db" in found.says and "chmod 600" in found.next
        (state / "ledger.db").chmod(0o600)
        assert one("state_folder", patient(state)).level == "ok"

    @pytest.mark.parametrize(
        ("user", "free", "of_root", "level", "says"),
        [
            (1000, 1, 0, "fail", "1 MB are free on the disk of "),
            (1000, 100, 0, "warn", "100 MB are free on the disk of "),
            (1000, 10_000, 0, "ok", "10,000 MB are free on the disk of "),
            (1000, 0, 900, "fail", "Nothing can be written to "),
            (0, 0, 900, "ok", "900 MB are free on the disk of "),  # which root's repairs use, and `status` goes by
        ],
    )
    def test_a_full_disk(
        self, state: Path, monkeypatch: pytest.MonkeyPatch, user: int, free: int, of_root: int, level: str, says: str
    ) -> None:
        sizes = {"f_blocks": 1, "f_frsize": 10**6, "f_bavail": free, "f_bfree": free + of_root}
        monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(**sizes))
        monkeypatch.setattr("os.geteuid", lambda: user)
        found = one("disk", patient(state))
        assert (found.level, found.says.partition("/")[0]) == (level, says)

    def test_a_disk_that_tells_no_size(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes = {"f_blocks": 0, "f_frsize": 4096, "f_bavail": 0, "f_bfree": 0}
        monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(**sizes))
        found = one("disk", patient(state))
        assert (found.level, found.says) == ("ok", f"The disk of {state} does not tell how much of it is free.")

    def test_a_quota_that_is_used_up(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(**_: object) -> None:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        found = one("disk", patient(state))
        assert found.level == "fail" and "your quota" in found.says and "Make room" in found.next

    def test_a_clock_that_is_behind(self, tmp_path: Path, state: Path) -> None:
        tree = Tree(tmp_path)
        assert one("clock", patient(state, tree.store)).level == "ok"
        behind = one("clock", patient(state, tree.store, now=time.time() - 7200))
        assert behind.level == "warn" and "2.0 hours" in behind.says
        with Ledger(state / "ledger.db", lambda: time.time() + 1e6) as ledger:
            heal(ledger, "r1", tree.store, "ses_1")
        assert "the newest recovery" in one("clock", patient(state, tree.store)).says

    def test_a_pause(self, state: Path) -> None:
        assert one("pause", patient(state)).level == "ok"
        pause(state, time.time(), 60)
        found = one("pause", patient(state))
        assert (found.level, found.next) == ("warn", "recoveryd unpause")

    @pytest.mark.parametrize("content", [b"{", b'{"ses_1": true}', b'"ses_1"'])
    def test_an_ignore_list_that_can_not_be_read(self, state: Path, content: bytes) -> None:
        """With the words of the daemon, which repairs nothing then; a pause is said besides."""
        (state / "ignore.json").write_bytes(content)
        with pytest.raises(RecoverydError) as caught:
            ignored(state)
        found = one("pause", patient(state))
        assert (found.level, found.says, found.next) == ("fail", caught.value.message, caught.value.hint)
        pause(state, time.time(), 60)
        assert [check.level for check in of("pause", patient(state))] == ["fail", "warn"]


@pytest.mark.parametrize("config", [Config(dry_run=True), Config(kinds=())])
def test_what_turns_repairs_off_is_not_laid_on_a_file(state: Path, config: Config) -> None:
    """The environment may say it, and there need be no file."""
    found = one("repairs", patient(state, config=config))
    assert found.level == "warn" and "by the configuration" in found.says and "config.toml" not in found.says


class TestService:
    @pytest.fixture
    def systemctl(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Where a `systemctl` may be put; a unit is installed."""
        path = tmp_path / "bin" / "systemctl"
        path.parent.mkdir()
        monkeypatch.setenv("PATH", str(path.parent))
        monkeypatch.setenv("HOME", str(tmp_path))
        units = tmp_path / ".config" / "systemd" / "user"
        units.mkdir(parents=True)
        (units / "recoveryd.service").touch()
        monkeypatch.setattr(host_checks, "of_this_system", Systemd)
        return path

    @pytest.mark.parametrize(
        ("script", "said", "level"),
        [
            ('[ "$*" = "--user is-active recoveryd.service" ] && echo active', "active", "ok"),
            ("echo failed; exit 3", "failed", "fail"),
            ("echo inactive; exit 3", "inactive", "warn"),
            ('[ "$2" = show ] && echo start || echo activating; exit 3', "activating", "warn"),
            ('[ "$2" = show ] && echo auto-restart || echo activating; exit 3', "restarting", "fail"),
        ],
    )
    def test_what_the_manager_says(self, systemctl: Path, state: Path, script: str, said: str, level: str) -> None:
        systemctl.write_text(f'#!/bin/sh\n[ "$2" = show-environment ] && exit 0\n{script}\n')
        systemctl.chmod(0o755)
        assert Systemd(os.environ).state() == said
        found = one("service", patient(state))
        words = {"active": "runs", "activating": "is starting.", "restarting": "does not stay up"}.get(said, said)
        assert found.level == level and words in found.says
        assert ("install starts it" in found.next) == (said in {"failed", "inactive"})

    def test_not_installed(self, systemctl: Path, state: Path, tmp_path: Path) -> None:
        systemctl.write_text("#!/bin/sh\nexit 0\n")
        systemctl.chmod(0o755)
        (tmp_path / ".config" / "systemd" / "user" / "recoveryd.service").unlink()
        assert "recoveryd install" in one("service", patient(state)).next

    def test_no_manager(self, systemctl: Path, state: Path) -> None:
        assert "no service manager" in one("service", patient(state)).says
        systemctl.write_text("#!/bin/sh\necho Failed to connect to bus: No medium found >&2; exit 1\n")
        systemctl.chmod(0o755)
        assert "no service manager" in one("service", patient(state)).says

    def test_one_that_never_answers(self, systemctl: Path) -> None:
        systemctl.write_text("#!/bin/sh\nwhile :; do :; done\n")
        systemctl.chmod(0o755)
        start = time.monotonic()
        assert Systemd(os.environ, 0.2).state() == "none"
        assert time.monotonic() - start < 5

    def test_under_launchd(self, systemctl: Path, tmp_path: Path) -> None:
        """With a fake; it was not run on macOS."""
        launchctl = systemctl.with_name("launchctl")
        launchctl.write_text('#!/bin/sh\ncase "$2" in */recoveryd) echo "state = running" ;; esac\n')
        launchctl.chmod(0o755)
        assert Launchd(os.environ).state() == "absent"
        (tmp_path / "Library" / "LaunchAgents").mkdir(parents=True)
        (tmp_path / "Library" / "LaunchAgents" / "recoveryd.plist").touch()
        assert Launchd(os.environ).state() == "active"
        launchctl.write_text("#!/bin/sh\nexit 0\n")
        assert Launchd(os.environ).state() == "inactive"


class TestStores:
    def test_a_living_one_a_dead_one_and_one_of_opencode_2(self, tmp_path: Path, state: Path) -> None:
        tree = Tree(tmp_path)
        assert one("store", patient(state, tree.store)).level == "ok"
        base = Base(tree.root.parent / "opencode.db")
        dead, living = of("store", patient(state, tree.store, base.store))
        assert (dead.level, living.level) == ("ok", "ok")
        assert "left behind" in dead.says and "with events" in living.says
        base.run("CREATE TABLE session_v2 (id TEXT)")
        assert one("store", patient(state, base.store)).level == "warn"

    def test_one_that_can_not_be_read(self, tmp_path: Path, state: Path) -> None:
        path = tmp_path / "opencode.db"
        path.write_bytes(b"no database " * 500)
        found = one("store", patient(state, OpencodeSqlite(path)))
        assert found.level == "fail" and "no SQLite database" in found.says

    def test_a_stranger_is_named(self, tmp_path: Path, state: Path) -> None:
        tree = Tree(tmp_path)
        session = tree.stuck()
        assert one("strangers", patient(state, tree.store)).level == "ok"
        for number in range(5):
            (tree.root / "message" / session / f"msg_{number}.json.bak").touch()
        found = one("strangers", patient(state, tree.store))
        assert found.level == "warn" and "msg_0.json.bak" in found.says and "and 2 more" in found.says

    def test_time_is_bounded_and_it_says_so(self, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from recoveryd.clients.opencode import doctor_checks

        tree = Tree(tmp_path)
        tree.stuck()
        monkeypatch.setattr(doctor_checks, "_LOOK_S", -1.0)
        assert "0 sessions were looked at; there are more" in one("strangers", patient(state, tree.store)).says
        tree.stuck()
        monkeypatch.setattr(doctor_checks, "_LOOK_S", 1.5)
        clock = iter([0.0, 1.0, 2.0])  # time for one
        monkeypatch.setattr(doctor_checks, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        [said] = doctor_checks.check_strangers([(tree.store, generations.JSON)])
        assert "1 session was looked at; there are more" in said.says


class TestWrap:
    def test_a_tree(self, tmp_path: Path, state: Path) -> None:
        tree = Plain(tmp_path / "storage")
        tree.say("user", NOW)
        patient_ = patient(state, tree.store, now=NOW / 1000)
        assert one("id_wrap", patient_).level == "ok"
        tree.say("user", BEFORE)
        found = one("id_wrap", patient_)
        assert found.level == "warn" and ": 1 session with" in found.says and "1.18.15" in found.next

    @pytest.mark.parametrize(("version", "level"), [(OLD, "warn"), (NEW, "ok")])
    def test_a_database(self, tmp_path: Path, state: Path, version: str, level: str) -> None:
        base = Base(tmp_path / "opencode.db", version)
        base.session("ses_new", time_created=NOW)
        base.say("user", NOW, session="ses_new")
        base.session("ses_none", time_created=BEFORE)  # without a message
        base.session("ses_healed", time_created=BEFORE)  # its ids are new ones
        base.say("user", NOW + 1000, session="ses_healed")
        assert before_wrap(base.store, base.store.generation(), NOW, 1.0) == (0, True)
        base.session("ses_old", time_created=BEFORE)
        base.say("user", BEFORE, session="ses_old")
        assert before_wrap(base.store, base.store.generation(), NOW, 1.0) == (1, True)
        assert one("id_wrap", patient(state, base.store, now=NOW / 1000)).level == level

    @pytest.mark.parametrize(("version", "level"), [((1, 15, 0), "warn"), ((1, 18, 14), "warn"), ((1, 18, 15), "ok")])
    def test_a_client_that_is_older_than_the_fix(
        self, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], level: str
    ) -> None:
        base = Base(tmp_path / "opencode.db", NEW)
        base.session("ses_old", time_created=BEFORE)
        base.say("user", BEFORE, session="ses_old")
        monkeypatch.setattr(OpencodeServer, "listening_versions", lambda *_: (version,))
        found = one("id_wrap", patient(state, base.store, now=NOW / 1000))
        assert found.level == level and "1.18.15" in found.says + found.next

    def test_each_store_is_asked_about_its_own_client(
        self, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And one that minds does not hide another, nor does its count end at zero with that of the next."""
        bases = [Base(tmp_path / name, NEW) for name in ("a.db", "b.db", "c.db")]
        for base in bases:
            base.session("ses_old", time_created=BEFORE)
            base.say("user", BEFORE, session="ses_old")
        told = {bases[0].store.id: ((1, 18, 14), (1, 18, 15)), bases[1].store.id: ((1, 18, 15),)}
        monkeypatch.setattr(OpencodeServer, "listening_versions", lambda _, store="": told.get(store, ()))
        found = of("id_wrap", patient(state, *(base.store for base in bases), now=NOW / 1000))
        assert [(check.level, check.about) for check in found] == [("warn", bases[0].store.id)]

    def test_nothing_is_said_of_what_could_not_be_read(self, tmp_path: Path, state: Path) -> None:
        path = tmp_path / "opencode.db"
        path.write_bytes(b"no database " * 500)
        (state / "ledger.db").write_bytes(b"no database " * 500)
        checks = list(examine(patient(state, OpencodeSqlite(path), now=NOW / 1000)))
        assert [check.level for check in checks if check.code in ("id_wrap", "conflicts")] == []
        [store] = [check for check in checks if check.code == "store"]
        assert store.next and "until then" not in store.next

    def test_the_next_wrap_is_one_too(self, tmp_path: Path) -> None:
        tree = Plain(tmp_path / "storage")
        later = NOW + (1 << 36)
        tree.put(f"message/ses_1/{name(later)}.json", {})
        tree.put(f"message/ses_2/{name(later - 40 * 86_400_000)}.json", {})
        assert before_wrap(tree.store, generations.JSON, later, 1.0) == (1, True)

    def test_it_ends_in_time(self, tmp_path: Path) -> None:
        tree = Plain(tmp_path / "storage")
        tree.say("user", BEFORE)
        assert before_wrap(tree.store, generations.JSON, NOW, -1.0) == (0, False)


class TestWatches:
    @pytest.mark.parametrize(("limit", "level"), [(3, "fail"), (12, "warn"), (1000, "ok")])
    def test_the_limit_of_the_kernel(
        self, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, limit: int, level: str
    ) -> None:
        tree = Tree(tmp_path)
        for number in range(9):
            (tree.root / "message" / f"ses_{number}").mkdir()
        monkeypatch.setattr(folders, "watch_limits", lambda: (limit, 128))
        found = one("watches", patient(state, tree.store))
        assert found.level == level
        assert level == "ok" or "fs.inotify.max_user_watches=524288" in found.next

    def test_no_instance_left(self, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tree = Tree(tmp_path)
        monkeypatch.setattr(folders, "why_refused", lambda _: OSError(errno.EMFILE, "too many"))
        found = one("watches", patient(state, tree.store))
        assert found.level == "fail" and "max_user_instances" in found.next

    def test_a_run_is_asked_what_it_could_not_watch(
        self, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is left is its own doing, so nothing is tried beside it, also where no instance is left by now."""
        monkeypatch.setattr(folders, "why_refused", lambda _: OSError(errno.EMFILE, "too many"))
        tree, place = Tree(tmp_path), paths.lock_dir(state)
        note, why = RunNote(place), f"{tree.store.watch_path} is not watched: inotify watch limit reached."
        try:
            with StoreLock(tree.store.lock_path, place, tree.store.id):
                note.say([tree.store.id], "", {tree.store.id: why})
                assert of("watches", patient(state, tree.store)) == []
                found = one("daemon", patient(state, tree.store))
                assert found.level == "warn" and why in found.says and "once a minute" in found.says
                note.say([tree.store.id], "")
                assert {one(code, patient(state, tree.store)).level for code in ("watches", "daemon")} == {"ok"}
        finally:
            note.release()

    def test_a_run_is_asked_what_it_can_not_edit(self, tmp_path: Path, state: Path) -> None:
        """As a service in a sandbox (`install --strict`) can't where a client came later: this process can."""
        tree, place = Tree(tmp_path), paths.lock_dir(state)
        note, why = RunNote(place), f"{tree.store.root} can't be written to."
        try:
            with StoreLock(tree.store.lock_path, place, tree.store.id):
                note.say([tree.store.id], "", {tree.store.id: "no watch is left"}, {tree.store.id: why})
                found = one("daemon", patient(state, tree.store))
                assert found.level == "fail" and why in found.says and "recoveryd restart" in found.next
                [told] = collect_status(
                    Config(), [tree.store], state, tmp_path / "config.toml", 0.0, lambda _: True
                ).stores
                assert told.watched is not None and why in told.problem
                note.say([tree.store.id], "")
                assert one("daemon", patient(state, tree.store)).level == "ok"
        finally:
            note.release()

    @pytest.mark.skipif(sys.platform != "linux", reason="inotify")
    def test_the_kernel_is_really_asked(self) -> None:
        before = len(list(Path("/proc/self/fd").iterdir()))
        assert folders.why_refused(["/", "/nowhere"]) is None
        assert len(list(Path("/proc/self/fd").iterdir())) == before
        assert all(limit for limit in folders.watch_limits())


class TestDaemon:
    def test_watched_not_watched_and_by_another_version(
        self, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from recoveryd.doctor import store_checks as doctor_stores

        tree = Tree(tmp_path)
        assert one("daemon", patient(state, tree.store)).level == "warn"
        with StoreLock(tree.store.lock_path, paths.lock_dir(state), tree.store.id):
            assert one("daemon", patient(state, tree.store)).level == "ok"
            monkeypatch.setattr(doctor_stores, "__version__", "9.9")
            assert "this is 9.9" in one("daemon", patient(state, tree.store)).says

    def test_a_store_that_came_while_one_runs(self, tmp_path: Path, state: Path) -> None:
        """As of a client that is started for the first time: what runs takes it, and `start` does not."""
        tree, new = Tree(tmp_path / "a"), Tree(tmp_path / "b")
        with StoreLock(tree.store.lock_path, paths.lock_dir(state), tree.store.id):
            *_, found = of("daemon", patient(state, tree.store, new.store))
        assert found.level == "warn" and "another configuration?" in found.next
        assert f"Not watched yet by the recoveryd that runs (pid {os.getpid()}" in found.says
        assert str(new.root) in found.says and "once a minute" in found.says

    def test_a_database_beside_one_that_is_watched(self, tmp_path: Path, state: Path) -> None:
        """They share a lock, and who runs says which of them it watches."""
        watched, new = Base(tmp_path / "opencode.db").store, Base(tmp_path / "opencode-beta.db").store
        config = Config(opencode=OpencodeSettings(databases=(Path(watched.id), Path(new.id))))
        with StoreLock(watched.lock_path, paths.lock_dir(state), watched.id):
            *_, found = of("daemon", patient(state, watched, new, config=config))
            status = collect_status(config, [watched, new], state, state / "c.toml", time.time(), lambda _: True)
        assert f"Not watched yet by the recoveryd that runs (pid {os.getpid()}" in found.says and new.id in found.says
        assert [(one.watched is None, [*one.locked]) for one in status.stores] == [(False, []), (True, [])]

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
    def test_one_that_does_not_watch_this_one(self, tmp_path: Path, state: Path) -> None:
        tree = Tree(tmp_path)
        with StoreLock(tree.store.lock_path, paths.lock_dir(state), "a database beside it"):
            found = one("daemon", patient(state, tree.store))
        assert found.level == "warn" and f"process {os.getpid()}" in found.says

    def test_a_note_that_a_crash_left(self, tmp_path: Path, state: Path) -> None:
        tree = Tree(tmp_path)
        with StoreLock(tree.store.lock_path, paths.lock_dir(state), tree.store.id):
            [note] = [file for file in paths.lock_dir(state).glob("*.run.json") if file.stat().st_size]
            said = note.read_bytes()
        note.write_bytes(said)
        assert "left a note" in one("daemon", patient(state, tree.store)).says


class TestClient:
    @pytest.mark.parametrize(
        ("version", "level", "said"),
        [
            (None, "ok", "No running OpenCode answers"),
            (TESTED[-1], "ok", "this version was tested"),
            ((1, 14, 2), "ok", "lies between versions"),
            (
                (*TESTED[-1][:2], TESTED[-1][2] + 1),
                "ok",
                f"planned as for {version_text(TESTED[-1])}, and each is read back",
            ),
            ((2, 0, 1), "warn", f"planned as for {version_text(TESTED[-1])}, and each is read back"),
            ((1, 0, 150), "warn", f"planned as for {version_text(TESTED[0])}, and each is read back"),
        ],
    )
    def test_its_version(
        self, state: Path, monkeypatch: pytest.MonkeyPatch, version: Any, level: str, said: str
    ) -> None:
        monkeypatch.setattr(OpencodeServer, "listening_versions", lambda *_: (version,) if version else ())
        found = one("client", patient(state))
        assert found.level == level and said in found.says

    def test_a_fork_is_told_by_its_own_name_and_of_its_own_versions(
        self, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        kilo = KiloRows(tmp_path)  # the plugin answers for it; OpenCode is at its usual port
        settings = Config(opencode=OpencodeSettings(stores=(NamedStore(path=tmp_path / "fork.db", name="Fork"),)))
        monkeypatch.setattr(OpencodeServer, "listening_versions", listening_versions)
        plugins = {"kilo": [Listener("plugin:x")]}
        monkeypatch.setattr(LocalServers, "_with_plugin", lambda servers: plugins.get(servers._client, []))
        heard = {"plugin:x": "7.7.9", server_address.DEFAULT_URL: version_text(TESTED[-1])}
        monkeypatch.setattr(LocalServers, "ask", lambda _, url, *__, **___: Answer(200, {"version": heard[url]}))
        assert [check.says for check in of("client", patient(state, kilo.store, config=settings))] == [
            f"OpenCode {version_text(TESTED[-1])} answers; this version was tested.",
            "Kilo 7.7.9 answers; this version was tested.",
        ]
        heard["plugin:x"] = "8.0.0"
        untested = of("client", patient(state, config=settings))[1]
        assert untested.level == "warn"
        assert untested.says.startswith("Kilo 8.0.0 answers, which was not tested with this recoveryd (7.7.9 was).")

    def test_each_version_that_listens_is_named(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(OpencodeServer, "listening_versions", lambda *_: (TESTED[-1], (2, 0, 1)))
        assert [check.level for check in of("client", patient(state))] == ["ok", "warn"]

    @pytest.mark.parametrize(
        ("configured", "whose", "level", "said"),
        [
            (False, Owner.OTHER, "ok", "No OpenCode of yours answers"),
            (True, Owner.OTHER, "warn", "a process of another user listens: nothing is said to it"),
            (False, Owner.UNKNOWN, "warn", "can't be told: nothing is said to it"),
            (True, Owner.UNKNOWN, "warn", "can't be told: nothing is said to it"),
        ],
    )
    def test_a_listener_that_is_not_the_users_own(
        self, state: Path, monkeypatch: pytest.MonkeyPatch, configured: bool, whose: Owner, level: str, said: str
    ) -> None:
        monkeypatch.setattr(server_address, "owner", lambda *_: whose)
        monkeypatch.setattr(OpencodeServer, "listening_versions", listening_versions)
        with listening() as fake:
            monkeypatch.setattr(server_address, "DEFAULT_URL", fake.url)
            settings = Config(opencode=OpencodeSettings(server_url=fake.url if configured else None))
            found = one("client", patient(state, config=settings))
        assert found.level == level and said in found.says and fake.url in found.says
        assert fake.asked == []

    def test_a_toast(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert one("toast", patient(state)).level == "warn"
        monkeypatch.setattr(host_checks, "can_show", lambda: (True, ""))
        assert one("toast", patient(state)).level == "ok"
        off = Config(notify=Notify(desktop=False))
        assert "turned off" in one("toast", patient(state, config=off)).says
        monkeypatch.setattr(host_checks, "_show", lambda: "not today")
        assert one("toast", patient(state, show_toast=True)).level == "fail"
        monkeypatch.setattr(host_checks, "_show", lambda: "")
        assert "was shown" in one("toast", patient(state, config=off, show_toast=True)).says


class TestLedger:
    def test_damage(self, tmp_path: Path, state: Path) -> None:
        (state / "ledger.db").write_bytes(b"no database " * 500)
        found = one("ledger", patient(state))
        assert found.level == "fail" and found.next
        assert of("ledger_size", patient(state)) == []

    def test_one_that_can_not_be_written_to(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Ledger(state / "ledger.db").close()
        assert one("ledger", patient(state)).level == "ok"
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "ledger.db")
        assert "can't be written to" in one("ledger", patient(state)).says

    def test_one_of_a_newer_recoveryd(self, state: Path) -> None:
        Ledger(state / "ledger.db").close()
        with closing(sqlite3.connect(state / "ledger.db")) as db:
            db.execute("PRAGMA user_version = 99")
        found = one("ledger", patient(state))
        assert found.level == "fail" and "newer recoveryd" in found.says and "Update" in found.next

    def test_one_that_outgrew_its_limit(self, tmp_path: Path, state: Path) -> None:
        tree = Tree(tmp_path)
        with Ledger(state / "ledger.db") as ledger:
            failure = Failure(tree.store.id, "ses_1", "msg_1", 1)
            ledger.begin(Record("r1", failure, "", Kind.EMPTY_CONTENT, changes=(BIG,)))
        small = Config(ledger=LedgerLimits(keep_mb=1))
        assert one("ledger_size", patient(state, config=small)).level == "warn"
        assert one("ledger_size", patient(state)).level == "ok"

    def test_conflicts_and_what_was_cut_off(self, tmp_path: Path, state: Path) -> None:
        tree = Tree(tmp_path)
        with Ledger(state / "ledger.db") as ledger:
            heal(ledger, "raaa", tree.store, "ses_1", Outcome.CONFLICT)
            heal(ledger, "rbbb", tree.store, "ses_2", Outcome.PENDING)
        cut, over = of("conflicts", patient(state, tree.store))
        assert (cut.says, over.says) == (
            "1 repair was cut off by a crash: rbbb.",
            "1 repair does not stand as it was written, and what is there stays: raaa.",
        )
        with StoreLock(tree.store.lock_path, paths.lock_dir(state), tree.store.id):  # it is being repaired just now
            assert "raaa" in one("conflicts", patient(state, tree.store)).says


class TestCommand:
    @pytest.fixture(autouse=True)
    def _home(self, tree: Tree) -> Iterator[None]:
        yield

    def test_all_is_well_enough(self, run: Run, tree: Tree) -> None:
        code, out, err = run("doctor")
        assert (code, err) == (0, "")
        assert "warn  daemon" in out and "Next: recoveryd start" in out
        assert not paths.state_dir().exists()

    def test_one_failure_is_exit_code_1(self, run: Run, tree: Tree) -> None:
        paths.config_file().parent.mkdir(parents=True)
        paths.config_file().write_text("colour = 3\n")
        code, out, _ = run("doctor", "--json")
        found = json.loads(out)
        assert (code, found["ok"]) == (1, False)
        assert found.keys() == {"schema", "ok", "checks"}
        assert faults("doctor", found) == []
        assert {check["level"] for check in found["checks"]} <= {"ok", "warn", "fail"}
        assert [check["code"] for check in found["checks"] if check["level"] == "fail"] == ["config"]
        code, out, _ = run("doctor")
        assert code == 1 and "1 check fails" in out

    def test_without_a_terminal_there_is_no_colour(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "\x1b" not in run("doctor")[1]
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert "\x1b[" in run("doctor")[1]
        monkeypatch.setenv("NO_COLOR", "1")
        out = run("doctor")[1]
        assert "\x1b[3" not in out and "\x1b[1;3" not in out, "bold may stay, colours may not"


def test_the_modes_that_are_checked_are_those_that_are_made(tmp_path: Path) -> None:
    folder = private_files.make_folder(tmp_path / "new")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
