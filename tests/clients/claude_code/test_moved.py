"""A session whose transcript is moved to another project's folder: by `/cd`, by leaving a worktree, by a rename."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from recoveryd.clients import Config, find_stores
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.core import Failure, Outcome
from recoveryd.heal import finish_interrupted
from recoveryd.ledger import OVERWRITTEN, Ledger, Record, new_id
from recoveryd.settings import paths
from recoveryd.settings.paths import ledger_file
from tests.conftest import Run
from tests.support.running import running, until
from tests.support.transcript import Transcript, call, dump, project, text

ILLEGAL = "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"


def stuck(projects: Path, folder: Path) -> Transcript:
    """A session that was refused a minute ago, begun in this folder."""
    made = Transcript(cwd=str(folder), start=int(time.time() * 1000) - 90_000)
    made.user("question")
    made.assistant(text("I look"), call(call_id="call:1"))
    made.result("call:1")
    made.assistant(text("done"))
    made.user("next")
    made.refused(ILLEGAL)
    os.utime(made.write(projects), (time.time() - 60,) * 2)
    return made


def moved(made: Transcript, projects: Path, folder: Path) -> Path:
    """What `/cd` does in 2.1.330: the file goes to the folder of the other project, and a line says where that is."""
    [path] = projects.glob(f"*/{made.session}.jsonl")
    there = projects / project(str(folder)) / path.name
    there.parent.mkdir(exist_ok=True)
    path.rename(there)
    with there.open("ab") as file:
        file.write(dump({"type": "relocated", "sessionId": made.session, "relocatedCwd": str(folder)}))
    return there


def test_a_healed_session_that_was_moved_counts_as_healed_and_its_repair_can_be_taken_back(
    run: Run, tmp_path: Path
) -> None:
    projects = tmp_path / ".claude" / "projects"
    made = stuck(projects, tmp_path / "work")
    [path] = projects.rglob("*.jsonl")
    assert run("scan", "--repair", "--yes")[0] == 0
    [healed] = json.loads(run("history", "--json")[1])
    there = moved(made, projects, tmp_path / "other")
    line = there.read_bytes().splitlines(keepends=True)[-1]
    os.utime(there, (time.time() - 5,) * 2)
    code, out, _ = run("scan")
    assert (code, "none is stuck" in out, "healed: a tool call" in out) == (0, True, True), out
    assert run("undo", healed["id"])[::2] == (0, "")
    assert there.read_bytes() == made.raw() + line and not path.exists()
    assert f"it was healed ({healed['id']}), and you undid that" in " ".join(run("scan")[1].split())


def test_a_repair_whose_session_may_be_in_either_of_two_files_is_not_taken_back(run: Run, tmp_path: Path) -> None:
    projects = tmp_path / ".claude" / "projects"
    made = stuck(projects, tmp_path / "work")
    assert run("scan", "--repair", "--yes")[0] == 0
    [healed] = json.loads(run("history", "--json")[1])
    there = moved(made, projects, tmp_path / "other")
    copy = projects / "-copy" / there.name
    copy.parent.mkdir()
    copy.write_bytes(there.read_bytes())
    written = there.read_bytes()
    for path in (there, copy):
        os.utime(path, (time.time() - 5,) * 2)
    for force in ((), ("--force",)):
        code, _, told = run("undo", healed["id"], *force)
        assert code != 0 and f"not known which is it now: {copy} and {there}" in told
    assert "not known which is it now" in " ".join(run("scan")[1].split())
    assert there.read_bytes() == copy.read_bytes() == written
    assert [entry["outcome"] for entry in json.loads(run("history", "--json")[1])] == ["healed"]
    copy.unlink()
    assert run("undo", healed["id"])[0] == 0 and there.read_bytes().startswith(made.raw())


def test_what_is_gone_from_an_older_copy_of_a_transcript_can_not_be_undone_by_force_either(
    run: Run, tmp_path: Path
) -> None:
    """It named `--force`, which ended with "is not what was read before: the client wrote since"."""
    projects = tmp_path / ".claude" / "projects"
    stuck(projects, tmp_path / "work")
    [path] = projects.rglob("*.jsonl")
    first = path.read_bytes().splitlines(keepends=True)[0]
    assert run("scan", "--repair", "--yes")[0] == 0
    [healed] = json.loads(run("history", "--json")[1])
    path.write_bytes(first)
    os.utime(path, (time.time() - 5,) * 2)
    for way in ((), ("--dry-run",), ("--force",), ("--force", "--dry-run")):
        code, _, told = run("undo", healed["id"], *way)
        assert code == 4 and "not in their transcript any more" in told and "--force" not in told
        assert f"recoveryd ledger export {healed['id']}" in told
    assert path.read_bytes() == first
    path.unlink()
    assert run("undo", healed["id"], "--force")[0] == 0, "of a session that is gone nothing has to be put back"


def test_what_an_older_version_left_of_a_forced_undo_that_did_not_find_the_session_is_not_told_as_done(
    run: Run, tmp_path: Path
) -> None:
    """It was begun with no record there, and ended by "There is no transcript of session"."""
    projects = tmp_path / ".claude" / "projects"
    made = stuck(projects, tmp_path / "work")
    assert run("scan", "--repair", "--yes")[0] == 0
    [healed] = json.loads(run("history", "--json")[1])
    there = moved(made, projects, tmp_path / "other")
    written = there.read_bytes()
    os.utime(there, (time.time() - 5,) * 2)
    [store] = [one for one in find_stores(Config(), {"HOME": str(tmp_path)}) if one.client == "claude_code"]
    with Ledger(ledger_file(tmp_path / "state" / "recoveryd")) as ledger:
        back = tuple(replace(c, before=None, after=c.before) for c in ledger.changes(healed["id"]))
        entry = ledger.get(healed["id"])
        failure = Failure(store.id, made.session, entry.message, 0)
        record = Record(new_id(), failure, "", entry.kind, judged=OVERWRITTEN, changes=back)
        ledger.begin(record, Outcome.UNDOING)
        [ended] = finish_interrupted(store, ledger)
        assert (ended.outcome, "its version stays" in ended.detail) == (Outcome.CONFLICT, True)
    assert there.read_bytes() == written
    assert run("undo", healed["id"])[0] == 0 and there.read_bytes().startswith(made.raw())


@pytest.mark.parametrize("ignored", ["begun", "moved", "shell"])
@pytest.mark.parametrize("noted", ["before", "after", "both"])
def test_a_session_that_was_moved_is_left_alone_where_either_folder_is_ignored(
    run: Run, tmp_path: Path, ignored: str, noted: str
) -> None:
    """Also while its shell stands in one that was added (`--add-dir`): `relocated` is noted again with each turn."""
    projects = tmp_path / ".claude" / "projects"
    folders = {name: tmp_path / name for name in ("begun", "moved", "shell")}
    made = stuck(projects, folders["begun"])
    path = moved(made, projects, folders["moved"])
    note = path.read_bytes().removeprefix(made.raw())
    made.cwd, lines = str(folders["shell"]), len(made.raw())
    made.user("again")
    made.refused(ILLEGAL)
    since = made.raw()[lines:]
    path.write_bytes(
        made.raw()[:lines] + {"before": note + since, "after": since + note}.get(noted, note + since + note)
    )
    os.utime(path, (time.time() - 60,) * 2)
    before = path.read_bytes()
    folders[ignored].mkdir()
    assert run("ignore", str(folders[ignored]))[0] == 0
    told = json.loads(run("scan", "--repair", "--yes", "--json")[1])
    assert ([one["session"] for one in told["ignored"]], path.read_bytes()) == ([made.session], before)
    assert run("ignore", "--remove", str(folders[ignored]))[0] == 0
    assert run("scan", "--repair", "--yes")[0] == 0 and path.read_bytes() != before


def test_a_copy_that_the_user_made_beside_a_session_keeps_every_byte(run: Run, tmp_path: Path) -> None:
    projects = tmp_path / ".claude" / "projects"
    made = stuck(projects, tmp_path / "work")
    [path] = projects.rglob("*.jsonl")
    copy = path.with_name(f"{path.stem}-backup.jsonl")
    shutil.copy2(path, copy)
    assert run("scan", "--repair", "--yes")[0] == 0
    assert [entry["session"] for entry in json.loads(run("history", "--json")[1])] == [made.session]
    assert path.read_bytes() != made.raw() == copy.read_bytes()


def test_what_was_once_repaired_in_such_a_copy_can_be_taken_back(run: Run, tmp_path: Path) -> None:
    """An older recoveryd took it for a session."""
    projects = tmp_path / ".claude" / "projects"
    made = stuck(projects, tmp_path / "work")
    [path] = projects.rglob("*.jsonl")
    assert run("scan", "--repair", "--yes")[0] == 0
    [healed] = json.loads(run("history", "--json")[1])
    copy = path.rename(path.with_name(f"{path.stem}-backup.jsonl"))
    with closing(sqlite3.connect(ledger_file(paths.state_dir()))) as db, db:
        db.execute("UPDATE recovery SET session = ?", (copy.stem,))
        db.execute("UPDATE image SET key = replace(key, ?, ?)", (path.name, copy.name))
    code, _, told = run("undo", healed["id"])
    assert (code, f"recoveryd undo {healed['id']} --force" in told) == (4, True), told
    assert run("undo", healed["id"], "--force")[0] == 0
    assert copy.read_bytes() == made.raw()


def gone_on(path: Path, made: Transcript, folder: Path, *, ago: float) -> Path:
    """A copy in the folder of another project, where its user went on with it and was refused so many seconds ago."""
    copied = Transcript(made.session, cwd=str(folder), start=int((time.time() - ago) * 1000))
    copied.last = made.last
    copied.user("and here?")
    copied.refused(ILLEGAL)
    there = path.parents[1] / project(str(folder)) / path.name
    there.parent.mkdir(exist_ok=True)
    there.write_bytes(made.raw() + copied.raw())
    return there


def test_what_is_refused_in_a_copy_is_healed_there_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited for the next sweep, which tells where sessions are: up to a minute."""
    monkeypatch.setattr("recoveryd.daemon.daemon.SWEEP_S", 3600.0)
    projects = tmp_path / "home" / "projects"
    made = stuck(projects, tmp_path / "work")
    [path] = projects.rglob("*.jsonl")
    (projects / project(str(tmp_path / "other"))).mkdir()  # a new folder is watched a moment later
    with running(tmp_path, ClaudeCodeTranscripts(projects)) as daemon:
        until(lambda: len(daemon.events) == 1)
        healed = path.read_bytes()
        there = gone_on(path, made, tmp_path / "other", ago=0)
        until(lambda: len(daemon.events) == 2)
    assert [event.outcome for event in daemon.events] == [Outcome.HEALED] * 2
    copied = there.read_bytes()
    assert b'"call:1"' not in copied and b"and here?" in copied
    assert b'"call:1"' not in healed and path.read_bytes() == healed


@pytest.mark.parametrize("work", ["work", "work/below"])
def test_a_copy_that_nobody_went_on_with_is_not_taken_for_the_session(run: Run, tmp_path: Path, work: str) -> None:
    """It is the newer file of the two, and what was refused was the one that it was made of."""
    projects = tmp_path / ".claude" / "projects"
    folder = tmp_path / work
    folder.mkdir(parents=True)
    made = stuck(projects, folder)
    [path] = projects.rglob("*.jsonl")
    if work != "work":  # its shell stands below the folder in which it was started
        path.parent.rename(projects / project(str(tmp_path / "work")))
        [path] = projects.rglob("*.jsonl")
    copy = projects / "-copy" / path.name
    shutil.copytree(path.parent, copy.parent)
    os.utime(copy, (time.time() - 5,) * 2)
    assert run("scan", "--repair", "--yes")[0] == 0
    assert path.read_bytes() != copy.read_bytes() == made.raw()
    there = gone_on(copy, made, tmp_path / "other", ago=10)
    os.utime(there, (time.time() - 90,) * 2)
    assert run("scan", "--repair", "--yes")[0] == 0
    assert b'"call:1"' not in there.read_bytes() and copy.read_bytes() == made.raw()


def test_of_two_files_that_tell_nothing_of_which_is_meant_none_is_repaired(run: Run, tmp_path: Path) -> None:
    """Their project is gone, and both have one time (`cp -a`)."""
    projects = tmp_path / ".claude" / "projects"
    made = stuck(projects, tmp_path / "work")
    [path] = projects.rglob("*.jsonl")
    copy = projects / "-copy" / path.name
    copy.parent.mkdir()
    shutil.copy2(path, copy)
    code, told, _ = run("scan", "--repair", "--yes")
    words = f"is in two folders, and it is not known which is it now: {copy} and {path}. Move the one that is not used"
    assert code == 1 and words in " ".join(told.split())
    assert path.read_bytes() == copy.read_bytes() == made.raw()
    copy.unlink()
    assert run("scan", "--repair", "--yes")[0] == 0 and path.read_bytes() != made.raw()
