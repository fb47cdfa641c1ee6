"""`status`: what is watched and by whom, what came of it; it writes nothing."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recoveryd.clients import Config
from recoveryd.clients.opencode import generations
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.store import Generation, Store
from recoveryd.core.errors import StoreError
from recoveryd.core.model import Change, Failure, Kind, Outcome
from recoveryd.disk import private_files
from recoveryd.disk.locks import RunNote, StoreLock
from recoveryd.doctor.status import collect_status, ledger_summary
from recoveryd.ledger.ledger import Judged, Ledger, Record
from recoveryd.settings import paths
from recoveryd.settings.overrides import ignore, pause
from tests.conftest import Run
from tests.support.database import NEW, OLD, Base
from tests.support.running import running, until
from tests.support.trees import Tree

CHANGE = Change("part/x", b'{"a":1}', b'{"a":2}')


def heal(
    ledger: Ledger,
    name: str,
    store: Store,
    session: str,
    outcome: Outcome = Outcome.HEALED,
    title: str = "A title",
) -> None:
    failure = Failure(store.id, session, f"msg_{name}", 1)
    judged = Judged(answered=store.look(session).last_answer)
    said = title, Kind.EMPTY_CONTENT, title, ("placeholder",), (CHANGE,)
    ledger.begin(Record(name, failure, *said, judged=judged))
    if outcome is not Outcome.PENDING:
        ledger.finish(name, outcome, title)


def test_without_a_ledger_nothing_is_said_to_be_repaired(tree: Tree, run: Run) -> None:
    tree.stuck()
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        assert json.loads(run("status", "--json")[1])["repairs"] is True
        private_files.make_folder(paths.state_dir())
        paths.ledger_file(paths.state_dir()).write_bytes(b"no database " * 500)
        found = json.loads(run("status", "--json")[1])
        assert found["repairs"] is False and found["unrepaired"] == found["ledger_problem"] != ""


def test_beside_a_ledger_that_can_not_be_written_to_nothing_is_said_to_be_repaired(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        Ledger(paths.ledger_file(private_files.make_folder(paths.state_dir()))).close()
        assert json.loads(run("status", "--json")[1])["repairs"] is True
        monkeypatch.setattr(os, "access", lambda path, _mode: Path(path).name != "ledger.db")
        found = json.loads(run("status", "--json")[1])
        assert found["repairs"] is False and found["unrepaired"] == found["ledger_problem"] != ""
        assert "can't be written to, so nothing is repaired" in " ".join(run("status")[1].split())


def test_on_a_full_disk_nothing_is_said_to_be_repaired(tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        private_files.make_folder(paths.state_dir())
        assert json.loads(run("status", "--json")[1])["repairs"] is True
        monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_blocks=9, f_bavail=0, f_bfree=0, f_frsize=4096))
        found = json.loads(run("status", "--json")[1])
        assert found["repairs"] is False and found["unrepaired"] == found["ledger_problem"] != ""
        assert "is full, so nothing is repaired" in " ".join(run("status")[1].split())


def seen(*stores: Store, state: Path, **config: Any) -> Any:
    return collect_status(Config(**config), stores, state, state / "config.toml", time.time(), lambda _: True)


class TestGeneration:
    def test_a_tree_and_one_that_is_dead(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        assert tree.store.generation() is generations.JSON
        Base(tree.root.parent / "opencode-beta.db")
        assert tree.store.generation() is generations.JSON_DEAD

    @pytest.mark.parametrize(("version", "found"), [(OLD, generations.SQLITE), (NEW, generations.SQLITE_EVENTS)])
    def test_a_database(self, tmp_path: Path, version: str, found: Generation) -> None:
        base = Base(tmp_path / "opencode.db", version)
        assert base.store.generation() is found
        base.run("CREATE TABLE session_v2 (id TEXT)")
        assert base.store.generation() is generations.OPENCODE_2

    def test_another_database(self, tmp_path: Path) -> None:
        base = Base(tmp_path / "opencode.db", OLD)
        base.run("DROP TABLE part")
        assert base.store.generation() is generations.UNKNOWN

    def test_each_has_words(self) -> None:
        known = [each for each in vars(generations).values() if isinstance(each, Generation)]
        assert len({each.name for each in known}) == len({each.words for each in known}) == len(known) == 6


def test_nothing_at_all(tmp_path: Path) -> None:
    found = seen(state=tmp_path / "state")
    assert (found.running, found.stores, found.pause, found.summary.ever) == ([], [], None, {})
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("how", ["session_ids", "written_since"])
def test_a_store_whose_sessions_can_not_be_listed_has_a_problem(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """As of a database that is damaged: it is looked into in more ways than one, and `run` repairs none of it."""
    state = private_files.make_folder(paths.state_dir())
    Ledger(paths.ledger_file(state)).close()
    tree.stuck()
    [store] = seen(tree.store, state=state).stores
    assert store.problem == ""

    def damaged(*_: object) -> Any:
        raise StoreError("Can't read it: it is damaged.", "Keep a copy of it.")

    monkeypatch.setattr(tree.store, how, damaged)
    [store] = seen(tree.store, state=state).stores
    assert store.problem == "Can't read it: it is damaged. Keep a copy of it."


@pytest.mark.live
def test_what_a_daemon_watches_is_said_of_each_store_of_a_shared_folder(tmp_path: Path) -> None:
    first, second = Base(tmp_path / "db" / "opencode.db"), Base(tmp_path / "db" / "opencode-beta.db")
    other = Base(tmp_path / "db" / "opencode-dev.db")  # in the same folder, and not watched
    tree = Tree(tmp_path)
    stores = first.store, second.store, tree.store
    state = tmp_path / "state"
    with running(tmp_path, *stores):
        until(lambda: all(s.watched for s in seen(*stores, state=state).stores))
        found = seen(*stores, other.store, state=state)
        assert [bool(s.watched) for s in found.stores] == [True, True, True, False]
        [holder] = found.running
        assert holder.doing in ("terminal", "program")
        assert abs(holder.since - time.time()) < 10
    assert seen(*stores, state=state).running == []


@pytest.mark.live
@pytest.mark.parametrize(
    ("config", "why"), [({"dry_run": True}, "dry run"), ({"enabled": False}, "turned off"), ({}, "")]
)
def test_a_daemon_that_repairs_nothing_says_so_whatever_the_configuration_says(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, config: dict[str, Any], why: str
) -> None:
    """It may have been started with --dry-run, or before the configuration was changed."""
    state = tmp_path / "state"
    monkeypatch.setattr(paths, "state_dir", lambda: state)
    with running(tmp_path, tree.store, **config):
        until(lambda: seen(tree.store, state=state).running)
        until(lambda: why in seen(tree.store, state=state).unrepaired)
        out = " ".join(run("status")[1].split())
        assert ("nothing is repaired" in out) is bool(why) and why in out
        checks = json.loads(run("doctor", "--json")[1])["checks"]
        [check] = [check for check in checks if check["code"] == "repairs"]
        assert check["level"] == ("warn" if why else "ok") and why in check["says"]


@pytest.mark.parametrize("mine", [True, False])
def test_status_and_doctor_speak_of_the_daemons_of_these_stores_alone(
    tree: Tree, run: Run, tmp_path: Path, mine: bool
) -> None:
    note = RunNote(paths.lock_dir(private_files.make_folder(paths.state_dir())))
    note.say([tree.store.id if mine else str(tmp_path / "elsewhere")], "`dry_run` is set")
    try:
        assert bool(json.loads(run("status", "--json")[1])["running"]) is mine
        checks = json.loads(run("doctor", "--json")[1])["checks"]
        [check] = [check for check in checks if check["code"] == "repairs"]
        assert check["level"] == ("warn" if mine else "ok")
    finally:
        note.release()


@pytest.mark.usefixtures("tree")
def test_a_state_folder_on_a_disk_that_is_not_mounted_is_said(run: Run, tmp_path: Path) -> None:
    """By a symlink: what was repaired is there, once the disk is; it is no ledger without a recovery."""
    state = paths.state_dir()
    state.parent.mkdir(parents=True, exist_ok=True)
    state.symlink_to(tmp_path / "not mounted")
    for command in ("history", "scan", "start"):
        code, _, said = run(command)
        assert code == 1 and f"the symlink {state} leads to" in said and "Is its disk mounted?" in said, command
    out = " ".join(run("status")[1].split())
    assert out.count("can't be reached") == 1 and "nothing yet" not in out
    checks = {check["code"]: check for check in json.loads(run("doctor", "--json")[1])["checks"]}
    assert {checks[code]["level"] for code in ("state_folder", "ledger")} == {"fail"}
    (tmp_path / "not mounted").mkdir()
    assert run("history")[0] == 0


@pytest.mark.parametrize(("key", "value"), [("dry_run", "true"), ("enabled", "false")])
def test_a_configuration_that_has_nothing_repaired_is_said(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, key: str, value: str
) -> None:
    monkeypatch.setenv(f"RECOVERYD_{key.upper()}", value)
    assert "nothing is repaired" in " ".join(run("status")[1].split())
    assert key in run("status")[1]
    checks = json.loads(run("doctor", "--json")[1])["checks"]
    assert any(check["code"] == "repairs" and check["level"] == "warn" for check in checks)


def test_it_counts_today_and_all_days(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    now = time.time()
    clock = [now - 3 * 86_400]
    path = private_files.make_folder(tmp_path / "state") / "ledger.db"
    with Ledger(path, lambda: clock[0]) as ledger:
        heal(ledger, "r1", tree.store, "ses_1")
        clock[0] = now
        heal(ledger, "r2", tree.store, "ses_2")
        heal(ledger, "r3", tree.store, "ses_2", Outcome.CONFLICT)
        heal(ledger, "r4", tree.store, "ses_3", Outcome.PENDING)
    found = ledger_summary(Config(), [tree.store], path.parent, now)
    assert found.today[Outcome.HEALED] == 1 and found.ever[Outcome.HEALED] == 2
    assert [e.id for e in found.conflicts] == ["r3"]
    assert [e.id for e in found.pending] == ["r4"]
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db"]


def test_a_session_at_its_cap_is_named_until_a_prompt_of_it_was_answered(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    session = tree.stuck()
    path = private_files.make_folder(tmp_path / "state") / "ledger.db"
    with Ledger(path) as ledger:
        for n in range(2):
            heal(ledger, f"r{n}", tree.store, session)
    assert ledger_summary(Config(max_retries=3), [tree.store], path.parent, time.time()).capped == []
    assert ledger_summary(Config(max_retries=2), [tree.store], path.parent, time.time()).capped == [
        (tree.store.id, session, "A title")
    ]
    tree.answered(session)
    assert ledger_summary(Config(max_retries=2), [tree.store], path.parent, time.time()).capped == []


def test_the_cap_of_a_session_is_that_of_its_own_store(tmp_path: Path) -> None:
    trees = [Tree(tmp_path / name) for name in "ab"]
    session = trees[0].stuck()
    shutil.copytree(trees[0].root, trees[1].root, dirs_exist_ok=True)
    path = private_files.make_folder(tmp_path / "state") / "ledger.db"
    with Ledger(path) as ledger:
        for name, tree in (("r1", trees[0]), ("r2", trees[0]), ("r3", trees[1])):
            heal(ledger, name, tree.store, session)
    stores = [tree.store for tree in trees]
    assert [store for store, *_ in ledger_summary(Config(max_retries=2), stores, path.parent, time.time()).capped] == [
        stores[0].id
    ]


def test_a_ledger_that_can_not_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"no database " * 500)
    assert "ledger" in ledger_summary(Config(), [], tmp_path, 0).problem


class TestCommand:
    def test_a_first_look(self, run: Run, tree: Tree, tmp_path: Path) -> None:
        code, out, err = run("status")
        assert (code, err) == (0, "")
        assert re_lines(out)["running"].startswith("no;")
        assert "not watched" in out and "a tree of JSON files" in out
        assert not paths.state_dir().exists(), "it writes nothing"

    def test_as_json(self, run: Run, tree: Tree) -> None:
        state = private_files.make_folder(paths.state_dir())
        pause(state, 1.0)
        ignore(state, "ses_x")
        with Ledger(paths.ledger_file(state)) as ledger:
            heal(ledger, "r1", tree.store, "ses_1")
        with StoreLock(tree.store.lock_path, paths.lock_dir(state), tree.store.id):
            code, out, _ = run("status", "--json")
        found = json.loads(out)
        assert code == 0
        assert found.keys() == {
            *("schema", "version", "running", "repairs", "unrepaired", "paused", "stores", "today", "ever", "pending"),
            *(
                "conflicts",
                "capped",
                "need_user",
                "ignored",
                "ledger_problem",
                "config",
                "ledger",
                "log",
                "config_problem",
            ),
        }
        [holder] = found["running"]
        assert holder.keys() == {"pid", "since", "version", "as", "idle"}
        [store] = found["stores"]
        expected = {
            "store": tree.store.id,
            "client": "opencode",
            "generation": "json",
            "watched": holder["pid"],
            "problem": "",
        }
        expected |= {"locked_by": [], "late": ""}
        assert store == expected
        assert found["paused"] == {"since": 1.0, "until": None}
        assert (found["repairs"], found["unrepaired"]) == (False, "paused")
        assert (found["ever"]["healed"], found["ignored"]) == (1, ["ses_x"])

    @pytest.mark.usefixtures("terminal")
    @pytest.mark.parametrize("columns", [80, 60])
    def test_it_fits_the_terminal(
        self, run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, columns: int
    ) -> None:
        from rich.cells import cell_len

        monkeypatch.setenv("COLUMNS", str(columns))
        session = tree.stuck(title="とても長い題名 " * 9)
        state = private_files.make_folder(paths.state_dir())
        with Ledger(paths.ledger_file(state)) as ledger:
            for n in range(3):
                heal(ledger, f"r{n}", tree.store, session, title="とても長い題名 " * 9)
        commands = (["status"], ["doctor"], ["history"], ["history", "--stats"], ["ledger", "prune", "--dry-run"])
        dry = (["ledger", "forget", session, "--dry-run"], ["ignore"], ["scan"])
        for command in (*commands, *dry):
            _, out, _ = run(*command)
            long = [line for line in out.splitlines() if cell_len(line.rstrip()) > columns]
            assert [line for line in long if str(tmp_path) not in line] == [], command
            assert out.strip()


def re_lines(out: str) -> dict[str, str]:
    """The first line of each field."""
    return {line[:10].strip(): line[10:] for line in out.splitlines() if line[:1] != " "}


def test_a_store_that_can_not_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "opencode").mkdir()
    (tmp_path / "opencode" / "opencode.db").write_bytes(b"no database " * 500)
    from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite

    [store] = seen(OpencodeSqlite(tmp_path / "opencode" / "opencode.db"), state=tmp_path / "state").stores
    assert store.generation is None and "no SQLite database" in store.problem
    (tmp_path / "opencode" / "storage").mkdir()
    [dead] = seen(OpencodeFiles(tmp_path / "opencode" / "storage"), state=tmp_path / "state").stores
    assert dead.generation is generations.JSON_DEAD and "dead" in dead.problem


def test_where_no_store_is_it_does_not_say_that_none_runs(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A daemon that waits for the first store has no lock yet; a note tells of it. One that a crash left does not."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nowhere"))
    assert json.loads(run("status", "--json")[1])["running"] == []
    store = OpencodeFiles(tmp_path / "nowhere" / "opencode" / "storage")
    notes = paths.lock_dir(private_files.make_folder(paths.state_dir()))
    with running(tmp_path / "daemon", store):
        until(lambda: json.loads(run("status", "--json")[1])["running"])
        found = json.loads(run("status", "--json")[1])
        assert (found["running"][0]["pid"], found["unrepaired"]) == (os.getpid(), "there is no store yet")
        said = " ".join(run("status")[1].split())
        assert f"pid {os.getpid()}" in said and "gets stuck" not in said and "No store of OpenCode" in said
        assert "runs already" in run("start")[2]
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of another"))
        assert json.loads(run("status", "--json")[1])["running"] == [], "one that looks elsewhere"
    [*left] = notes.glob("*.daemon.json")
    assert left == []
    (notes / "0123456789abcdef.daemon.json").write_text('{"pid": 1, "since": 1, "version": "1", "doing": "service"}')
    assert json.loads(run("status", "--json")[1])["running"] == []
    with running(tmp_path / "daemon", store):
        until(lambda: len([*notes.glob("*.daemon.json")]) == 1)


def test_what_keeps_all_repairs_back_is_said(tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    state = private_files.make_folder(paths.state_dir())
    run("pause")
    assert "nothing is repaired yet: nothing runs that would" in " ".join(run("unpause")[1].split())
    with StoreLock(tree.store.lock_path, paths.lock_dir(state), tree.store.id):
        run("pause")
        assert "within a minute" in " ".join(run("unpause")[1].split())
        monkeypatch.setenv("RECOVERYD_KINDS", "[]")
        assert "names no kind" in json.loads(run("status", "--json")[1])["unrepaired"]
        monkeypatch.delenv("RECOVERYD_KINDS")
        (state / "ignore.json").write_text("{")
        assert "ignore.json can't be read" in json.loads(run("status", "--json")[1])["unrepaired"]
        assert "Nothing is repaired until it can be" in " ".join(run("status")[1].split())
