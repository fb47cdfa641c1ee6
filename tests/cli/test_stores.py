"""What the commands say of a session that several stores have, and of sessions that are stuck in other ways."""

from __future__ import annotations

import ctypes
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from recoveryd.api import recover
from recoveryd.cli import common
from recoveryd.cli.live_sessions import LiveSessions
from recoveryd.clients import Config
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core import NotFoundError, failpoint
from recoveryd.core.model import Outcome
from recoveryd.disk import REPLACED, RunNote, private_files
from recoveryd.ledger import Ledger
from recoveryd.settings import paths
from tests.cli.contract import faults
from tests.conftest import Run
from tests.support.build import SessionBuilder
from tests.support.database import OLD, Base
from tests.support.parts import api_error
from tests.support.plant import write_sqlite, write_tree
from tests.support.transcript import Transcript
from tests.support.trees import EMPTY, MISSING, Tree, behind_a_call, blank_answer


def as_json(run: Run, *argv: str) -> Any:
    said = json.loads(run(*argv, "--json")[1])
    if argv[0] in ("scan", "explain"):
        assert not faults("scan" if argv[0] == "scan" else "explain --session", said)
    return said


@pytest.fixture
def copy(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A second data folder that is watched, empty yet."""
    made = tmp_path / "B" / "opencode"
    monkeypatch.setenv("RECOVERYD_OPENCODE_DATA_DIRS", json.dumps([str(made)]))
    return made


def test_a_command_that_is_named_does_what_this_call_was_about(tree: Tree, run: Run, tmp_path: Path) -> None:
    """Without them it would repair other sessions, or by another configuration."""
    session, other = tree.stuck(), tree.stuck(blank_answer, EMPTY)
    named = tmp_path / "my own.toml"
    named.write_text("")
    by = f" --config '{named}'"
    said = run("--config", str(named), "scan", "--session", session)[1].splitlines()
    assert said[-1] == f"To heal it: recoveryd scan --repair --session {session}{by}"
    out = run("scan", "--config", str(named), "--client", "opencode", "--kind", "empty_content")[1]
    assert f"`recoveryd scan --client opencode{by}` lists it" in out
    assert f"recoveryd scan --repair --client opencode --kind empty_content{by}" in out
    assert f"recoveryd start{by}" in run("status", "--config", str(named))[1]
    run("scan", "--repair", "--session", other)
    [entry] = as_json(run, "history")
    assert f"recoveryd undo {entry['id']}{by}" in run("--config", str(named), "show", entry["id"])[1]
    assert named.name not in run("show", entry["id"])[1]
    named.write_text(f'ignore = ["{session}"]\n')
    told = " ".join(run("--config", str(named), "explain", "--session", session)[1].split())
    assert f"`recoveryd ignore{by}` lists both" in told


def test_of_a_store_that_was_moved_the_same_is_told_before_it_is_written_to(
    tree: Tree, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair that was cut off, one that was undone behind an answer, and one that can be undone by a key."""
    forced, answered, cut_off = tree.stuck(), tree.stuck(), tree.stuck()
    assert run("scan", "--repair")[0] == 0
    made = {entry["session"]: entry["id"] for entry in as_json(run, "history")}
    tree.answered(forced)
    tree.answered(answered)
    assert run("undo", made[forced], "--force")[0] == 0
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        ledger.mark(made[cut_off], Outcome.PENDING)

    def told() -> list[object]:
        said = as_json(run, "scan")
        rows = LiveSessions(Config(), lambda: common.stores_of(Config())).refresh()
        listed = [(one["session"], one["reason"], one["action"]) for one in (*said["stuck"], *said["elsewhere"])]
        return [listed, sorted((row.session, row.state, row.recovery) for row in rows)]

    before = told()
    assert "cut off half way" in str(before) and "repair_undone" in str(before) and made[answered] in str(before)
    monkeypatch.setenv("XDG_DATA_HOME", str((tmp_path / "data").rename(tmp_path / "moved")))
    assert told() == before


def test_the_cap_of_a_session_is_told_of_a_store_that_was_moved_before_it_is_written_to(
    tree: Tree, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOVERYD_MAX_RETRIES", "1")
    session = tree.stuck()
    assert run("scan", "--repair")[0] == 0
    tree.refused(session, EMPTY)
    [capped] = as_json(run, "status")["capped"]
    monkeypatch.setenv("XDG_DATA_HOME", str((tmp_path / "data").rename(tmp_path / "moved")))
    moved = str(tmp_path / "moved" / "opencode" / "storage")
    assert as_json(run, "status")["capped"] == [{**capped, "store": moved}]
    said = " ".join(run("status")[1].split())
    assert f"({session}): left alone until a prompt of it is answered; `recoveryd explain --session {session}`" in said


def test_of_one_session_in_two_stores_each_row_says_which_it_is(tree: Tree, run: Run, copy: Path) -> None:
    session = tree.stuck()
    alone = [run(*argv)[1] for argv in (("scan",), ("explain", "--session", session))]
    assert not any(f"({tree.store.id})" in said or f"store     {tree.store.id}" in said for said in alone)
    shutil.copytree(tree.root, copy / "storage")
    stores = (tree.store.id, str(copy / "storage"))
    rows = [line for line in run("scan")[1].splitlines() if f"{session} (" in line]
    assert [store in row for store, row in zip(stores, rows, strict=True)] == [True, True]
    explained = run("explain", "--session", session)[1]
    assert [explained.count(f"store     {store}") for store in stores] == [1, 1]
    run("scan", "--repair")
    told = run("history")[1]
    assert [told.count(f"My session ({store})") for store in stores] == [1, 1]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_session_whose_repair_was_undone_behind_an_answer_is_not_called_fine(
    tree: Tree, run: Run, deleted: bool
) -> None:
    """Also where its client deleted what was refused (`/undo`, and another prompt)."""
    session = tree.stuck()
    refused = tree.root / "message" / session / f"{tree.failure(session).message}.json"
    run("scan", "--repair")
    [entry] = as_json(run, "history")
    tree.answered(session)
    if deleted:
        refused.unlink()
    assert as_json(run, "scan")["elsewhere"] == [] and run("undo", entry["id"], "--force")[0] == 0
    said = as_json(run, "scan")
    [told] = said["elsewhere"]
    assert (said["stuck"], told["reason"], told["undone"]) == ([], "repair_undone", entry["id"])
    code, out, _ = run("scan")
    assert code == 0 and "1 went on, until a repair was undone: the next prompt may be refused again" in out
    assert "you undid that" in run("explain", "--session", session)[1]
    tree.answered(session)
    assert as_json(run, "scan")["elsewhere"] == []


@pytest.mark.parametrize("compacted", [False, True])
def test_an_undo_behind_a_compaction_is_not_told(tree: Tree, run: Run, compacted: bool) -> None:
    """OpenCode keeps what it took the place of, and sends none of it."""
    session = tree.stuck()
    run("scan", "--repair")
    [entry] = as_json(run, "history")
    tree.answered(session)
    if compacted:
        tree.compacted(session)
    assert as_json(run, "scan")["elsewhere"] == [] and run("undo", entry["id"], "--force")[0] == 0
    told = [told["reason"] for told in as_json(run, "scan")["elsewhere"]]
    assert told == ([] if compacted else ["repair_undone"])


def test_an_undo_that_takes_a_whole_message_away_is_told(tree: Tree, run: Run) -> None:
    """It puts nothing back that could be found."""
    session = tree.stuck(lambda made: made.assistant("first"), 'messages: first message must use the "user" role')
    run("scan", "--repair")
    [entry] = as_json(run, "history")
    assert (entry["kind"], entry["outcome"]) == ("role_order", "healed")
    tree.answered(session)
    assert as_json(run, "scan")["elsewhere"] == [] and run("undo", entry["id"], "--force")[0] == 0
    assert [told["reason"] for told in as_json(run, "scan")["elsewhere"]] == ["repair_undone"]


@pytest.mark.parametrize("words", ["Your llama is not amused by this", "rate limit exceeded"])
def test_an_undone_repair_is_told_beside_a_refusal_that_nothing_stored_explains(
    tree: Tree, run: Run, words: str
) -> None:
    session = tree.stuck()
    run("scan", "--repair")
    [entry] = as_json(run, "history")
    tree.answered(session)
    assert "The provider may refuse its next prompt" in run("undo", entry["id"], "--force")[1]
    tree.refused(session, words)
    found = as_json(run, "explain", "--session", session)
    assert found["kind"] is None and found["undone"] == entry["id"]
    assert f"it was healed ({entry['id']}), and you undid that" in run("explain", "--session", session)[1]


@pytest.fixture
def _bound_by_modes() -> Iterator[None]:
    """Let no mode be passed over, also where the tests are root's: by the capabilities of this thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    before = sets[0]
    sets[0] &= ~0b110  # effective: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, sets) == 0
    yield
    sets[0] = before
    assert libc.capset(header, sets) == 0


@pytest.mark.usefixtures("_bound_by_modes")
@pytest.mark.parametrize("kind", ["files", "database", "both"])
def test_a_store_behind_a_folder_that_may_not_be_entered_is_told(tree: Tree, run: Run, kind: str) -> None:
    session, folder = tree.stuck(), tree.root.parent
    if kind != "files":
        Base(folder / "opencode.db", OLD)
    if kind == "database":
        shutil.rmtree(tree.root)
    folder.chmod(0)
    try:
        said, found = as_json(run, "scan"), as_json(run, "status")["stores"]
        assert len(said["unreadable"]) == len(found) == 1
        assert (
            "permission is denied" in said["unreadable"][0]["problem"] and "permission is denied" in found[0]["problem"]
        )
        assert run("scan")[0] == 1 and run("explain", "--session", session)[0] == 3
        assert "permission is denied" in run("report", session)[2]
        failed = [one["says"] for one in as_json(run, "doctor")["checks"] if one["level"] == "fail"]
        assert len(failed) == 1 and "can't be used" in failed[0] and "not there yet" not in failed[0]
    finally:
        folder.chmod(0o755)


def test_a_project_that_is_a_symlink_is_told_and_makes_no_exit_code_that_never_goes_away(
    tree: Tree, run: Run, tmp_path: Path
) -> None:
    elsewhere, projects = tmp_path / "elsewhere", Path.home() / ".claude" / "projects"
    made = Transcript(start=int(time.time() * 1000) - 60_000)
    made.user("go")
    made.write(elsewhere)
    projects.mkdir(parents=True)
    (projects / "-linked").symlink_to(next(elsewhere.iterdir()))
    code, out, err = run("scan")
    assert code == 0 and "none of those that could be read is stuck" in out and "is not followed" in err
    assert len(as_json(run, "scan")["unreadable"]) == 1
    asked = (("scan", "--session"), ("explain", "--session"), ("compact",), ("report",))
    told = [run(*words, made.session) for words in asked]
    assert [(code, "is not followed" in err) for code, _, err in told] == [(3, True)] * len(asked)
    assert "spelled right" in run("ignore", "ses_0000000000000000000000")[2]
    tree.stuck()
    assert run("scan")[0] == 1


def test_what_can_not_be_healed_is_not_said_to_be(tree: Tree, run: Run) -> None:
    tree.stuck()
    tree.stuck(words="nobody knows these words")
    assert run("scan")[1].splitlines()[-1] == "To heal 1 of these: recoveryd scan --repair"
    tree.stuck()
    assert run("scan")[1].splitlines()[-1] == "To heal 2 of these: recoveryd scan --repair"


def test_one_thing_is_explained_and_it_is_something(tree: Tree, run: Run) -> None:
    session = tree.stuck()
    for argv in (("",), (" ",), ("prompt is too long", "--session", session), ("--jsonl", "--session", session)):
        assert run("explain", *argv)[0] == 2, argv


def test_each_store_is_told_its_own_result(tree: Tree, run: Run, copy: Path) -> None:
    session = tree.stuck()
    shutil.copytree(tree.root, copy / "storage")
    said = as_json(run, "scan", "--repair")["stuck"]
    by_store = {entry["store"]: entry["id"] for entry in as_json(run, "history")}
    assert {one["store"]: one["recovery"] for one in said} == by_store and len(by_store) == 2
    assert all(one["session"] == session and one["healed"] for one in said)


@pytest.mark.parametrize("mine", [False, True])
def test_what_was_undone_in_one_store_is_not_repaired_again_for_a_copy_that_stays_healed(
    tree: Tree, run: Run, copy: Path, mine: bool
) -> None:
    """Whichever of the two was repaired last. Once both are undone, each names the repair that was its own."""
    session = tree.stuck()
    shutil.copytree(tree.root, copy / "storage")
    run("scan", "--repair")
    by_store = {entry["store"]: entry["id"] for entry in as_json(run, "history")}
    store = tree.store.id if mine else str(copy / "storage")
    run("undo", by_store.pop(store))
    assert run("scan", "--repair")[0] == 1, "it needs its user"
    [told] = as_json(run, "scan", "--repair")["stuck"]
    assert told["store"] == store and [entry["outcome"] for entry in as_json(run, "history")].count("undone") == 1
    assert len(as_json(run, "history")) == 2
    [(other, last)] = by_store.items()
    run("undo", last)
    assert {one["store"]: one["undone"] for one in as_json(run, "scan")["stuck"]}[other] == last
    assert {one["undone"] for one in as_json(run, "scan")["stuck"]} == {
        entry["id"] for entry in as_json(run, "history")
    }
    assert run("scan", "--repair", "--session", session)[0] == 0


def test_a_dead_tree_has_no_stuck_sessions_beside_the_database_of_its_client(tree: Tree, run: Run) -> None:
    made = SessionBuilder(int(time.time() * 1000) - 60_000, title="S")
    behind_a_call(made)
    made.failed("continue", api_error(MISSING, 400))
    write_tree(made.planted(), tree.root)
    database = tree.root.parent / "opencode.db"
    Base(database, OLD, clock=time.time)
    write_sqlite(made.planted(), database)
    session = made.session["id"]
    for argv in (["scan"], ["scan", "--session", session]):
        assert [one["store"] for one in as_json(run, *argv)["stuck"]] == [str(database)]
    assert run("scan", "--repair")[0] == 0
    assert run("scan")[0] == 0 and as_json(run, "scan")["stuck"] == []


def test_of_two_stores_the_one_where_it_is_stuck_is_told_and_repaired(tree: Tree, run: Run, copy: Path) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    shutil.copytree(tree.root, copy / "storage")
    tree.answered(session)
    told = as_json(run, "explain", "--session", session)
    assert (told["stuck"], told["store"]) == (True, str(copy / "storage"))
    event = recover(session, Config(opencode=OpencodeSettings(data_dirs=(copy,))))
    assert event is not None and (event.outcome, event.store) == (Outcome.HEALED, str(copy / "storage"))
    assert OpencodeFiles(copy / "storage").id == event.store


def test_what_was_undone_and_cannot_be_repaired_now_says_why(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    run("scan", "--repair")
    run("undo", as_json(run, "history")[0]["id"])
    monkeypatch.setenv("RECOVERYD_KINDS", '["tool_result_missing"]')
    for argv in (["scan"], ["scan", "--repair", "--session", session], ["explain", "--session", session]):
        said = " ".join(run(*argv)[1].split())
        assert "and you undid that" in said and "empty_content is not among the kinds" in said, argv
        assert "repaired only by" not in said


def test_a_filter_does_not_hide_that_something_else_is_stuck(tree: Tree, run: Run) -> None:
    tree.stuck(blank_answer, EMPTY)
    code, out, _ = run("scan", "--kind", "tool_result_missing")
    assert code == 1 and "none is stuck on that kind, 1 on another" in " ".join(out.split())
    said = as_json(run, "scan", "--kind", "tool_result_missing")
    assert (said["stuck"], said["other_kinds"]) == ([], 1)
    assert "other_kinds" not in as_json(run, "scan", "--kind", "empty_content")


def test_what_is_healed_is_so_beside_a_list_of_what_to_ignore_that_is_broken(tree: Tree, run: Run) -> None:
    tree.stuck()
    assert run("scan", "--repair")[0] == 0
    next(Path(tree.root.parents[2]).glob("state/recoveryd")).joinpath("ignore.json").write_text("{")
    assert run("scan")[0] == 0
    assert len(as_json(run, "scan")["healed"]) == 1


def test_one_letter_names_no_recovery(tree: Tree, run: Run) -> None:
    tree.stuck()
    run("scan", "--repair")
    code, _, err = run("undo", "r")
    assert code == 3 and "There is no recovery" in err


def test_of_a_pause_that_cannot_be_read_no_time_is_told(run: Run) -> None:
    assert run("pause")[0] == 0
    (paths.state_dir() / "pause.json").write_bytes(b"{")
    said = " ".join(run("status")[1].split())
    assert "paused until `recoveryd unpause`: nothing is repaired; since when, its file does not tell" in said
    assert as_json(run, "status")["paused"] == {"since": None, "until": None}
    assert "What got stuck more than 24 hours ago is not" in " ".join(run("unpause")[1].split())


def test_a_pause_says_what_it_will_be_too_late_for(run: Run) -> None:
    assert "not older than `lookback_hours` (24" in " ".join(run("pause")[1].split())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("dry_run = true", "it is a dry run"),
        ("enabled = false", "repairs are turned off"),
        ("kinds = []", "the configuration names no kind"),
    ],
)
def test_a_pause_promises_no_heal_that_the_configuration_forbids(run: Run, said: str, why: str) -> None:
    paths.config_file().parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().write_text(said)
    told = " ".join(run("pause")[1].split())
    assert f"nor after that, as it is configured: {why}" in told
    assert "is healed" not in told and "does it by hand" not in told
    (paths.state_dir() / "pause.json").write_bytes(b"{")
    assert ("scan --repair" in run("unpause")[1]) is (said == "enabled = false"), "by hand it is healed then"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("dry_run = true", "it is a dry run"),
        ("enabled = false", "repairs are turned off"),
        ("kinds = []", "the configuration names no kind"),
    ],
)
def test_no_start_is_named_that_would_heal_nothing(tree: Tree, run: Run, said: str, why: str) -> None:
    session = tree.stuck()
    paths.config_file().parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().write_text(said)
    for put, taken in ((["pause"], ["unpause"]), (["ignore", session], ["ignore", "--remove", session])):
        assert run(*put)[0] == 0
        told = " ".join(run(*taken)[1].split())
        assert f"nothing runs that would. Nor would it, as it is configured: {why}" in told
        assert "recoveryd start" not in told


def test_a_pause_says_what_must_run_for_what_gets_stuck_to_be_healed_after_it(tree: Tree, run: Run) -> None:
    says = "is healed after that by a recoveryd that runs (none does now: `recoveryd start`)"
    assert says in " ".join(run("pause")[1].split())
    note = RunNote(paths.lock_dir(private_files.make_folder(paths.state_dir())))
    note.say([tree.store.id], "")
    try:
        assert "is healed after that, if" in " ".join(run("pause")[1].split())
    finally:
        note.release()


@pytest.mark.parametrize(("goes_by", "written"), [("it is a dry run", ""), ("", "dry_run = true"), (REPLACED, "")])
def test_a_pause_goes_by_the_recoveryd_that_runs(tree: Tree, run: Run, goes_by: str, written: str) -> None:
    """It may have been given another configuration by name, or have started before the file was changed."""
    paths.config_file().parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().write_text(written)
    note = RunNote(paths.lock_dir(private_files.make_folder(paths.state_dir())))
    note.say([tree.store.id], goes_by)
    try:
        told = " ".join(run("pause")[1].split())
    finally:
        note.release()
    assert ("What gets stuck meanwhile is healed" in told) is (goes_by != "it is a dry run")
    assert ("nor after that, as it is configured: it is a dry run" in told) is (goes_by == "it is a dry run")
    assert ("scan --repair" in told) is (goes_by == REPLACED), "by hand goes by the file alone"


def test_the_id_of_a_recovery_for_that_of_a_session_is_told_as_such(tree: Tree, run: Run) -> None:
    session = tree.stuck()
    run("scan", "--repair")
    name = as_json(run, "history")[0]["id"]
    for argv in (["explain", "--session"], ["scan", "--session"], ["history", "--session"], ["ignore"]):
        code, _, err = run(*argv, name)
        assert code in (2, 3) and f"its session is {session}" in " ".join(err.split()), argv


@pytest.mark.parametrize("text", ["dry_run = true\nmax_retries = [", 'dry_run = "yes"', "enabled = false\nx ="])
def test_undo_writes_nothing_where_a_broken_file_may_forbid_it(tree: Tree, run: Run, text: str) -> None:
    tree.stuck()
    run("scan", "--repair")
    name, file = as_json(run, "history")[0]["id"], tree.root.parents[2] / "config/recoveryd/config.toml"
    before = tree.files()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    code, _, err = run("undo", name)
    assert code == 78 and tree.files() == before
    assert "That is left out here" not in err and err.count(f"recoveryd: {file}") == 1
    assert f"`recoveryd undo {name}` would fail now: {file}" in " ".join(run("show", name)[1].split())
    file.write_text("max_retries = [")
    assert f"To take it back: recoveryd undo {name}" in run("show", name)[1]
    assert run("undo", name)[0] == 0 and tree.files() != before


def test_what_stays_beyond_the_limits_is_named_with_the_way_to_it(tree: Tree, run: Run) -> None:
    tree.stuck(behind_a_call)
    tree.stuck(blank_answer, EMPTY)
    run("scan", "--repair")
    run("ledger", "prune", "--keep-days", "0", "--yes")
    said = " ".join(run("ledger", "prune", "--keep-days", "0")[1].split())
    assert "exists nowhere else now" in said
    way = said.partition("`recoveryd ")[2].partition("`")[0].split()
    assert as_json(run, *way, "--yes")["recoveries"], "what is advised takes it out"


def test_what_had_all_its_repairs_is_told_beside_its_label(tree: Tree, run: Run) -> None:
    paths.config_file().parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().write_text("max_retries = 1\n")
    session = tree.stuck(title="Mine")
    assert run("scan", "--repair")[0] == 0
    assert f"capped    Mine ({session}): left alone" in run("status")[1]
    assert all(line[9] == " " for line in run("status")[1].splitlines())


def test_under_a_dry_run_nobody_is_sent_to_the_same_command(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.stuck()
    monkeypatch.setenv("RECOVERYD_DRY_RUN", "true")
    said = run("scan", "--repair")[1]
    assert "To heal them" not in said and "`dry_run` is set" in said


@pytest.fixture
def fork(tree: Tree, tmp_path: Path) -> Path:
    """The database of another client, with a stuck session, beside OpenCode's own store."""
    del tree
    made = SessionBuilder(int(time.time() * 1000) - 60_000, title="Fork's")
    behind_a_call(made)
    made.failed("continue", api_error(MISSING, 400))
    database = tmp_path / "fork" / "sessions"
    Base(database, OLD, clock=time.time)
    write_sqlite(made.planted(), database)
    paths.config_file().parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().write_text(f'[[opencode.stores]]\npath = "{database}"\nname = "Fork"\n')
    return database


@pytest.mark.live
def test_every_output_names_the_client(tree: Tree, run: Run, fork: Path) -> None:
    own = tree.stuck()
    said = as_json(run, "scan")["stuck"]
    assert {one["client"] for one in said} == {"opencode", "opencode/Fork"}
    (other,) = [one["session"] for one in said if one["client"] == "opencode/Fork"]
    assert f"{other} (Fork), stuck" in run("scan")[1] and f"{own} (OpenCode), stuck" in run("scan")[1]
    assert as_json(run, "explain", "--session", other)["client"] == "opencode/Fork"
    assert "client    Fork" in " ".join(run("explain", "--session", other)[1].splitlines())
    assert run("scan", "--repair")[0] == 0
    assert {(e["store"], e["client"]) for e in as_json(run, "history")} == {
        (str(tree.root), "opencode"),
        (str(fork), "opencode/Fork"),
    }
    assert "Fork's (Fork): " in run("history")[1]
    status = {one["store"]: one["client"] for one in as_json(run, "status")["stores"]}
    assert status[str(fork)] == "opencode/Fork" and f"{fork} (Fork): " in run("status")[1]
    tree.stuck(blank_answer, EMPTY)
    assert "(My session of OpenCode)" in run("status")[1]
    checks = as_json(run, "doctor")["checks"]
    assert {one["client"] for one in checks if one["about"] == str(fork)} == {"opencode/Fork"}
    assert as_json(run, "report", other)["client_name"] == "opencode"  # what the user calls it stays here


@pytest.mark.parametrize("command", ["scan", "status"])
def test_a_client_that_has_no_store_here_is_named_with_where_it_was_looked_for(
    tree: Tree, run: Run, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(client: str) -> str:
        return " ".join(run(command, "--client", client)[1].split())

    tree.stuck()
    said = told("codex")
    assert f"No store of Codex was found in {tmp_path}/.codex/sessions. There are stores of: OpenCode." in said
    assert "set [codex] homes or CODEX_HOME" in said
    said = told("claude_code")
    assert f"No store of Claude Code was found in {tmp_path}/.claude/projects." in said
    assert "kilo/kilo.db" in told("kilo") and "KILO_DB" in told("kilo")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nowhere"))
    assert f"No store of OpenCode was found in {tmp_path}/nowhere/opencode" in told("opencode")
    paths.config_file().parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().write_text("[codex]\nenabled = false\n")
    assert "No store of Codex is looked for, by the configuration." in told("codex")


def test_a_store_that_is_configured_no_more_is_still_its_clients(tree: Tree, run: Run, fork: Path) -> None:
    """Named "sessions", as those of Codex are; its repair can be undone once it is put back."""
    config = paths.config_file().read_text()
    run("scan", "--repair", "--yes")
    [entry] = as_json(run, "history")
    paths.config_file().unlink()
    assert as_json(run, "history", "--client", "Fork") == [{**entry, "client": "opencode/Fork"}]
    assert "client   Fork" in run("show", entry["id"])[1] and 'client="Fork"' in run("metrics")[1]
    code, _, err = run("undo", entry["id"])
    said = " ".join(err.split())
    assert code == 3 and f"{fork} (Fork) is there" in said and f'path = "{fork}" and name = "Fork"' in said
    paths.config_file().write_text(config)
    assert run("undo", entry["id"])[0] == 0
    fork.rename(fork.with_name("elsewhere"))
    assert "is not there" in run("undo", entry["id"])[2]
    assert as_json(run, "history")[0]["client"] == "opencode/Fork"


class Killed(BaseException):
    """What no code of the program catches."""


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_repair_of_a_fork_is_taken_back_also_where_it_was_cut_off(
    run: Run, fork: Path, monkeypatch: pytest.MonkeyPatch, cut_off: bool
) -> None:
    def rows() -> list[str]:
        with closing(sqlite3.connect(fork)) as db:
            return list(db.iterdump())

    def killed(step: str) -> None:
        if step == "committed":
            raise Killed

    before = rows()
    with monkeypatch.context() as patch, pytest.raises(Killed) if cut_off else nullcontext():
        patch.setattr(failpoint, "reach", killed if cut_off else failpoint.reach)
        run("scan", "--repair", "--client", "fork")
    run("config", "path")  # takes what the killed one printed
    assert rows() != before
    [entry] = as_json(run, "history")
    assert entry["outcome"] == ("pending" if cut_off else "healed")
    code, _, err = run("undo", entry["id"])
    assert (code, rows() == before) == (0, True), err


def test_one_client_alone(tree: Tree, run: Run, fork: Path) -> None:
    own = tree.stuck()
    for name in ("Fork", "opencode/fork"):
        said = as_json(run, "scan", "--client", name)
        assert said["stores"] == [str(fork)] and own not in [one["session"] for one in said["stuck"]]
    assert run("scan", "--repair", "--client", "fork")[0] == 0
    assert [one["session"] for one in as_json(run, "scan")["stuck"]] == [own], "that of the other is as it was"
    assert len(as_json(run, "history", "--client", "Fork")) == 1
    assert as_json(run, "history", "--client", "OpenCode") == []
    assert as_json(run, "history", "--stats", "--client", "opencode") == []
    assert run("history", "--stats", "--client", "opencode")[1].startswith("None of those.")
    assert as_json(run, "history", "--stats", "--session", own) == []
    healed_one = as_json(run, "history")[0]["session"]
    assert [line["total"] for line in as_json(run, "history", "--stats", "--session", healed_one)] == [1]
    for name, healed in (("Fork", 1), ("opencode", 0)):
        status = as_json(run, "status", "--client", name)
        assert ({one["client"] == "opencode/Fork" for one in status["stores"]}, status["ever"]["healed"]) == (
            {bool(healed)},
            healed,
        )
    for only in (["--client", "OpenCode"], ["--session", own], ["--kind", "tool_result_missing"]):
        assert f"recoveryd scan --repair {' '.join(only)}" in " ".join(run("scan", *only)[1].split())
    code, _, err = run("scan", "--client", "Fork", "--session", own)
    assert code == 3 and "in any store of Fork" in err and "one of OpenCode: leave out --client" in err
    code, _, err = run("scan", "--client", "nobody")
    assert code == 2 and '"nobody"' in err and "opencode/Fork" in err


def test_where_one_client_is_no_words_name_it(tree: Tree, run: Run) -> None:
    tree.stuck()
    assert "(OpenCode)" not in run("scan")[1]


@pytest.mark.parametrize("database", [False, True])
def test_a_session_that_nobody_prompted_yet_is_told_as_such(
    tree: Tree, run: Run, tmp_path: Path, database: bool
) -> None:
    """Its client lists it. One that is deleted, or of another store, is none."""
    if database:
        base = Base(tmp_path / "data" / "opencode" / "opencode.db", OLD)
        base.session()
        [(session,)] = base.run("SELECT id FROM session")
    else:
        session = tree.ended(behind_a_call)
        shutil.rmtree(tree.root / "message" / session)
    asked = (("scan", "--session"), ("explain", "--session"), ("compact",), ("report",))
    for command in asked:
        code, out, err = run(*command, session)
        assert (code, out) == (3, ""), command
        assert f"Session {session} has no message yet." in err
    with pytest.raises(NotFoundError, match=f"Session {session} has no message yet"):
        recover(session)
    assert "is not there now" not in run("ignore", session)[2]
    for command in asked:
        assert "There is no session ses_none" in run(*command, "ses_none")[2]
    assert "There is no session" in run("scan", "--session", session, "--client", "codex")[2]
