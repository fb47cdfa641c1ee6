"""The command line: what people read, what machines read, and how a command ends."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from recoveryd.cli.declare import subparsers
from recoveryd.cli.findings import Finding
from recoveryd.cli.parser import make_parser
from recoveryd.cli.reasons import REASONS, ended_words
from recoveryd.cli.scan import _show_elsewhere
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.core import UNDONE, Diagnosis, PastRecovery, diagnosis
from recoveryd.core.model import Change, Failure, Kind, Outcome
from recoveryd.core.version import __version__
from recoveryd.disk import private_files
from recoveryd.disk.locks import StoreLock, recovery_lock
from recoveryd.heal import lifecycle
from recoveryd.ledger import Upkeep
from recoveryd.ledger.ledger import Ledger, Record, new_id
from recoveryd.settings import paths
from tests.conftest import Run
from tests.shapes import SHAPES
from tests.support.build import SessionBuilder, text
from tests.support.database import Base
from tests.support.judge import refusal
from tests.support.trees import EMPTY, MISSING, Tree, blank_answer, write_over

COMMANDS = [command.prog.partition(" ")[2] for _, command in subparsers(make_parser())]
# What prints no result, or a text for another program; the actions of `ledger` have it each.
WITHOUT_JSON = ("watch", "run", "logs", "metrics", "ledger", "completion", "man")
HOSTILE = "[bold red]x[/] \x1b[31mred\x07 \u202eevil\u2066 \x9b2J\nsecond line :smile: {0} %s \ud83d"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def as_json(run: Run, *argv: str) -> Any:
    _, out, err = run(*argv, "--json")
    assert out.isascii() and not err
    return json.loads(out)


def newest(run: Run, outcome: str = "healed") -> str:
    return next(str(entry["id"]) for entry in as_json(run, "history") if entry["outcome"] == outcome)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert re.search(rf"^example: .*\brecoveryd {command}\b", out, re.MULTILINE)
    assert ("--json" in out) is (command not in WITHOUT_JSON)


def test_the_first_page_lists_all_commands_and_the_exit_codes(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert all(re.search(rf"^ +{command} +\w", out, re.MULTILINE) for command in COMMANDS)
    assert all(f"{number} " in out for number in (0, 1, 2, 3, 4, 75, 78))
    assert max(map(len, out.splitlines())) <= 80


def test_the_version(run: Run) -> None:
    assert run("--version") == (0, f"recoveryd {__version__}\n", "")


@pytest.mark.parametrize(
    "argv",
    [
        *(["heal"], ["help", "x"], ["scan", "--kind", "flu"], ["show"], ["scan", "--rep"], ["explain"]),
        *(["scan", "--repair", "--session", ""], ["scan", "--client", " "], ["logs", "--session", ""]),
        *(["explain", "ses_1"], ["config", "check", "other.toml"], ["config", "show", "notify.desktop"]),
    ],
)
def test_what_makes_no_sense_is_a_matter_of_usage(run: Run, argv: list[str]) -> None:
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert err


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        *((["compact", "ses_1", "--target", value], "from 0.1 to 0.95") for value in ("abc", "3", "nan", "50%")),
        *((["pause", "--for", value], "90s, 30m, 2h or 1d") for value in ("abc", "3", "nans", "1e9d")),
    ],
)
def test_a_value_that_is_none_is_told_with_what_is_wanted(run: Run, argv: list[str], wanted: str) -> None:
    code, _, err = run(*argv)
    assert code == 2 and wanted in err


def test_nothing_is_stuck_in_a_healthy_store(tree: Tree, run: Run) -> None:
    tree.answered(tree.stuck())
    tree.stuck(words="Overloaded")
    code, out, err = run("scan")
    assert (code, err) == (0, "")
    assert out.startswith("2 sessions in ") and "none is stuck.\n" in out and "1 ended in an error" in out
    said = as_json(run, "scan")
    [elsewhere] = said.pop("elsewhere")
    assert (elsewhere["kind"], elsewhere["reason"]) == (None, "refused_elsewhere")
    nothing = {"schema": 1, "stuck": [], "healed": [], "ignored": []}
    assert said == {**nothing, "stores": [tree.store.id], "sessions_seen": 2}


def test_the_newest_of_those_that_were_undone_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Their answers hold no failure, so its time tells nothing."""

    def undone(session: str, at: float) -> Finding:
        past = PastRecovery("r1", "msg_1", Outcome.UNDONE, at)
        return Finding(Diagnosis(Failure("st", session, "", 0), None, code=UNDONE), "A title", undone=past)

    _show_elsewhere(Console(width=200), [undone("ses_old", 1.0), undone("ses_new", 3.0), undone("ses_mid", 2.0)])
    assert "explain --session ses_new" in capsys.readouterr().out


def test_of_what_is_only_counted_an_id_is_told(tree: Tree, run: Run) -> None:
    """`explain --session ID` was named, and no id of one stood anywhere."""
    first = tree.stuck(words="Overloaded")
    assert f"`recoveryd explain --session {first}` says more." in " ".join(run("scan")[1].split())
    newer = tree.refused(tree.stuck(words="Overloaded"), words="Overloaded")
    assert tree.failure(newer).time > tree.failure(first).time
    said = " ".join(run("scan")[1].split())
    assert f"`recoveryd explain --session {newer}` says more of the newest; `recoveryd scan --json` has the id" in said
    assert run("explain", "--session", newer)[0] == 0


def test_a_session_whose_answer_broke_off_is_not_stuck(tree: Tree, run: Run) -> None:
    def broken(made: SessionBuilder) -> None:
        made.user("go on")
        made.assistant(text("half an ans"), error={"name": "UnknownError", "data": {"message": "JSON parsing failed"}})

    session = tree.ended(broken)
    assert run("scan")[0] == 0
    code, out, _ = run("explain", "--session", session)
    assert code == 0 and "The answer broke off" in out and "Send the prompt again." in " ".join(out.split())
    [told] = as_json(run, "scan")["elsewhere"]
    assert told["action"].startswith("nothing is to be repaired. The answer broke off")


def test_a_refusal_of_unknown_words_is_never_told_to_be_in_order(tree: Tree, run: Run) -> None:
    """With its words, but not with what would steer a terminal."""
    session = tree.stuck(words="the flux of\x1b[31m all turns\nis not \\u0041ligned " + "so " * 100)
    code, out, _ = run("scan")
    assert code == 1 and "1 stuck" in out and "refused for a reason that recoveryd does not know" in out
    assert "\x1b" not in out and f"recoveryd report {session}" in out and "/fork" in " ".join(out.split())
    assert "if a new session is refused alike, it is not the history" in " ".join(out.split())
    [found] = as_json(run, "scan")["stuck"]
    assert (found["kind"], found["reason"]) == (None, "refused_unknown")
    assert (
        found["evidence"]["says"].startswith("the flux of all turns is not Aligned")
        and found["evidence"]["status"] == 400
    )
    assert len(found["evidence"]["says"]) <= 200
    assert found["action"].endswith("look at the client's settings, the account, the model or the server")
    told = as_json(run, "explain", "--session", session)
    assert (told["stuck"], told["reason"]) == (True, "refused_unknown")
    tree.answered(session)
    assert "is not stuck" in run("explain", "--session", session)[1]
    assert run("scan")[0] == 0


@pytest.mark.parametrize("code", sorted(diagnosis._NOT_STUCK))
def test_each_reason_that_is_not_stuck_is_told_in_words_of_its_own(code: str) -> None:
    """Also in the sum of `scan`, and never as a kind that its next prompt clears."""
    found = Finding(Diagnosis(Failure("st", "ses_1", "msg_1", 1), None, code=code), "A title")
    assert not found.stuck and found.elsewhere
    assert found.cause == f"{REASONS[code].cause} ({code})"
    assert ended_words(code) not in ("", ended_words(Kind.ASSISTANT_PREFILL))


def test_without_a_store_it_says_where_to_look(run: Run, tree: Tree) -> None:
    tree.root.parent.rename(tree.root.parent.with_name("elsewhere"))
    code, out, _ = run("scan")
    assert code == 0
    assert "[opencode] data_dirs" in out
    found = as_json(run, "scan")
    assert (found["stores"], found["sessions_seen"], found["stuck"]) == ([], 0, [])


def test_what_is_stuck_is_listed_with_its_remedy(tree: Tree, run: Run) -> None:
    session = tree.stuck()
    before = tree.files()
    code, out, err = run("scan")
    assert (code, err) == (1, "")
    assert session in out and "To heal it: recoveryd scan --repair" in out
    [stuck] = as_json(run, "scan")["stuck"]
    assert {"store", "session", "message", "kind", "action", "healed"} <= stuck.keys()
    assert (stuck["session"], stuck["kind"], stuck["healed"]) == (session, "tool_result_missing", False)
    assert stuck["action"] == "Would put 1 tool result right behind its call"
    assert tree.files() == before and as_json(run, "history") == []


def test_repair_shows_what_it_does_and_does_it(tree: Tree, run: Run) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    code, out, _ = run("scan", "--repair")
    assert code == 0
    assert '-  "text": " ",' in out and '+  "text": "[user interrupted]",' in out
    assert refusal(tree.store.load(session), thinking=False) is None
    entry = newest(run)
    assert entry in out
    assert f'"recovery": "{entry}"' in out, "the diff that is shown is the one that is written"
    code, out, _ = run("scan")
    assert code == 0 and f"({entry})" in out
    found = as_json(run, "scan")
    assert found["stuck"] == [], "it is not stuck any more"
    assert [(one["healed"], one["recovery"]) for one in found["healed"]] == [(True, entry)]
    assert entry not in found["healed"][0]["action"], "a program reads it from a field"


def test_repair_in_json_is_one_document(tree: Tree, run: Run) -> None:
    tree.stuck()
    assert as_json(run, "scan")["stuck"][0]["recovery"] is None
    found = as_json(run, "scan", "--repair")
    [stuck] = found["stuck"]
    assert (stuck["healed"], stuck["recovery"], found["healed"]) == (True, newest(run), [])
    assert newest(run) not in stuck["action"]


def test_one_session_and_one_kind_alone(tree: Tree, run: Run) -> None:
    first, second = tree.stuck(), tree.stuck(blank_answer, EMPTY)
    assert [s["session"] for s in as_json(run, "scan", "--kind", "empty_content")["stuck"]] == [second]
    code, out, _ = run("scan", "--session", first)
    assert code == 1
    assert "step-start" in out and second not in out
    assert run("scan", "--session", "ses_none")[0] == 3
    assert run("scan", "--session", "../../etc")[0] == 3


def test_what_is_not_understood_stays_stuck(tree: Tree, run: Run) -> None:
    tree.stuck(words=EMPTY)
    code, out, _ = run("scan", "--repair")
    assert code == 1
    assert "find" in out and "nothing" in out


def test_one_session_that_cannot_be_read_does_not_end_the_scan(tree: Tree, run: Run) -> None:
    broken, hostile, session = tree.stuck(), tree.stuck(), tree.stuck()
    max((tree.root / "message" / broken).iterdir()).write_bytes(b"{")
    for path in sorted((tree.root / "message" / hostile).iterdir()):
        write_over(path, parentID=[{}], summary=True, finish="stop")
    code, out, _ = run("scan", "--json")
    assert code == 1
    found = {stuck["session"]: stuck for stuck in json.loads(out)["stuck"]}
    assert found[session]["kind"] == "tool_result_missing"
    assert found[broken]["action"].startswith("can't be read: ")
    about = run("scan", "--session", broken, "--dry-run")[1] + run("scan")[1].split(broken)[1].split("ses_")[0]
    assert "can't be looked into" in about and "\n    \n" not in about and "\n\n    " not in about, "an empty line"


@pytest.mark.parametrize("argv", [["scan"], ["explain", "--session", "{session}"]])
def test_a_broken_list_of_what_is_ignored_hides_no_session(tree: Tree, run: Run, argv: list[str]) -> None:
    session = tree.stuck()
    (private_files.make_folder(paths.state_dir()) / "ignore.json").write_bytes(b"{")
    code, out, err = run(*(part.format(session=session) for part in argv))
    said = " ".join(out.split())
    assert (code, err) == (1 if argv == ["scan"] else 0, "")
    assert "My session" in said and "a tool call without its result" in said
    assert "not repaired: " in said and "ignore.json can't be read" in said
    assert "can't be looked into" not in said


def test_nothing_is_repaired_while_it_is_not_known_what_is_ignored(tree: Tree, run: Run) -> None:
    tree.stuck()
    before = tree.files()
    (private_files.make_folder(paths.state_dir()) / "ignore.json").write_bytes(b"{")
    code, out, err = run("scan", "--repair")
    assert (code, out, tree.files()) == (1, "", before)
    assert "ignore.json can't be read" in err and "Nothing is repaired until it can be" in err


def test_history_is_a_list_newest_first(tree: Tree, run: Run) -> None:
    assert run("history") == (0, "No recovery so far.\n", "")
    sessions = {tree.stuck(), tree.stuck(words=EMPTY)}
    run("scan", "--repair")
    listed = as_json(run, "history")
    keys = ["id", "time", "store", "client", "session", "title", "kind", "outcome", "edits", "detail", "confirmed"]
    keys.append("overwritten")
    assert [list(entry) for entry in listed] == [keys, keys]
    assert {entry["session"] for entry in listed} == sessions
    assert [entry["time"] for entry in listed] == sorted((entry["time"] for entry in listed), reverse=True)
    one = listed[0]["session"]
    assert {entry["session"] for entry in as_json(run, "history", "--session", one)} == {one}
    assert len(as_json(run, "history", "--limit", "1")) == 1
    none = (0, "None of those. `recoveryd history` lists what there is.\n", "")
    assert run("history", "--session", "ses_other") == none


def test_history_lists_all_unless_a_limit_is_given(run: Run) -> None:
    with Ledger(paths.ledger_file(private_files.make_folder(paths.state_dir()))) as ledger:
        for number in range(25):
            of = Failure("/none", f"ses_{number}", "msg_1", 0)
            ledger.record(Record(new_id(), of, "", None, "why"), Outcome.REFUSED)
    assert len(as_json(run, "history")) == 25
    assert len(run("history")[1].splitlines()) == 26, "one is the heading"
    assert [entry["session"] for entry in as_json(run, "history", "--limit", "2")] == ["ses_24", "ses_23"]


def test_a_limit_of_history_counts_those_of_the_client_that_is_meant(run: Run) -> None:
    with Ledger(paths.ledger_file(private_files.make_folder(paths.state_dir()))) as ledger:
        for number in range(6):
            of = Failure("/none/projects" if number < 3 else "/none", f"ses_{number}", "msg_1", 0)
            ledger.record(Record(new_id(), of, "", None, "why"), Outcome.REFUSED)
    listed = as_json(run, "history", "--client", "claude_code", "--limit", "2")
    assert [entry["session"] for entry in listed] == ["ses_2", "ses_1"]


def test_show_is_what_changed_as_a_diff(tree: Tree, run: Run) -> None:
    tree.stuck()
    run("scan", "--repair")
    name = newest(run)
    code, out, _ = run("show", name)
    assert code == 0
    assert '+  "type": "step-start",' in out
    assert f"recoveryd undo {name}" in out
    data = as_json(run, "show", name[:5])
    assert data["id"] == name
    assert [change.keys() for change in data["changes"]] == [{"record", "diff"}]
    assert run("show", "rzzzz")[0] == 3


def test_show_of_the_last_repair_in_vain_names_the_way_on(tree: Tree, run: Run) -> None:
    session = tree.stuck()
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        of = Failure(tree.store.id, session, "msg_1", 0)
        names = [new_id() for _ in range(2)]
        for name in names:
            ledger.record(Record(name, of, "", None, "It was repaired 3 times."), Outcome.GAVE_UP)
    told = [f"recoveryd scan --repair --session {session}" in run("show", name)[1] for name in names]
    assert told == [False, True], "of the newest alone: behind the others it was answered, or repaired by hand"


@pytest.mark.parametrize(
    ("kind", "kinds", "told"),
    [
        ("interrupted_turn", "", True),
        ("interrupted_turn", "interrupted_turn", False),
        ("empty_content", "role_order", False),
    ],
)
def test_a_kind_that_is_never_found_as_it_is_configured_says_so(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, kinds: str, told: bool
) -> None:
    """All others are listed, also where they are not repaired."""
    tree.stuck()
    if kinds:
        monkeypatch.setenv("RECOVERYD_KINDS", kinds)
    out = run("scan", "--kind", kind)[1]
    assert ("recoveryd config set kinds +interrupted_turn" in out) is told


def test_of_a_tree_that_its_client_left_the_originals_are_had_as_files(tree: Tree, run: Run, tmp_path: Path) -> None:
    tree.stuck()
    run("scan", "--repair")
    name = newest(run)
    Base(tree.root.parent / "opencode.db")
    export = f"recoveryd ledger export {name}"
    out = run("show", name)[1]
    assert export in out and "recoveryd undo" not in out
    for more in ((), ("--force",), ("--dry-run",)):
        code, _, err = run("undo", name, *more)
        assert (code, export in err) == (4, True), err
    assert run("ledger", "export", name, "--out", str(tmp_path / "kept"))[0] == 0
    status = " ".join(run("status")[1].split())
    assert "left behind when it moved to a database" in status and "is dead" not in status


def test_of_a_store_that_was_copied_the_originals_are_had_as_files(
    tree: Tree, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a new disk, or a home of another name. A store that was moved on its disk is known again."""
    tree.stuck()
    run("scan", "--repair")
    name = newest(run)
    shutil.copytree(tmp_path / "data", tmp_path / "new")
    shutil.rmtree(tmp_path / "data")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new"))
    export = f"recoveryd ledger export {name}"
    out = " ".join(run("show", name)[1].split())
    assert f"Its store is not found: `recoveryd undo {name}` says why." in out and export in out
    code, _, err = run("undo", name)
    assert code == 3 and "Is its disk mounted" in err and export in " ".join(err.split())
    assert run("ledger", "export", name, "--out", str(tmp_path / "kept"))[0] == 0


def test_what_a_forced_undo_wrote_is_no_repair_in_a_copy_of_the_store(
    tree: Tree, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said there that the session is healed, by "Forced undo of r…"."""
    tree.stuck(blank_answer, EMPTY)
    run("scan", "--repair")
    name = newest(run)
    write_over(next(path for path in (tree.root / "part").rglob("*.json") if name in path.read_text()), text="other")
    assert run("undo", name)[0] == 4 and run("undo", name, "--force")[0] == 0
    assert run("scan")[0] == 1
    shutil.copytree(tmp_path / "data", tmp_path / "new")
    shutil.rmtree(tmp_path / "data")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new"))
    assert run("scan")[0] == 1


def test_undo_puts_it_back_and_says_so(tree: Tree, run: Run) -> None:
    tree.stuck(blank_answer, EMPTY)
    before = tree.files()
    run("scan", "--repair")
    after, name = tree.files(), newest(run)
    code, out, _ = run("undo", name, "--dry-run")
    assert code == 0 and "nothing was written" in out
    assert tree.files() == after
    code, out, _ = run("undo", name)
    assert code == 0 and f"Took back {name}: 2 records are as before." in out
    assert tree.files() == before
    code, out, err = run("undo", name)
    assert (code, out) == (4, "")
    assert err == f"recoveryd: {name} was undone before.\n"
    assert run("undo", "rzzzz")[0] == 3


def test_a_dry_run_that_is_configured_holds_for_commands_too(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.stuck(blank_answer, EMPTY)
    before = tree.files()
    with monkeypatch.context() as patch:
        patch.setenv("RECOVERYD_DRY_RUN", "true")
        code, out, _ = run("scan", "--repair")
        assert code == 1 and '+  "text": "[user interrupted]",' in out
        assert "nothing was written. `dry_run` is set in the configuration." in out
        assert tree.files() == before
    run("scan", "--repair")
    after, name = tree.files(), newest(run)
    assert after != before
    with monkeypatch.context() as patch:
        patch.setenv("RECOVERYD_DRY_RUN", "true")
        code, out, _ = run("undo", name)
        assert code == 0 and "nothing was written, for `dry_run` is set" in " ".join(out.split())
        assert as_json(run, "undo", name)["undone"] is False
    assert tree.files() == after


def test_what_is_turned_off_or_paused_for_the_daemon_is_done_by_hand(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tree.stuck()
    run("pause")
    monkeypatch.setenv("RECOVERYD_ENABLED", "false")
    assert run("scan", "--repair")[0] == 0
    assert refusal(tree.store.load(session), thinking=False) is None


def test_repair_tells_what_stands_after_the_client_had_its_time(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "CONFIRM_S", 0.4)
    session = tree.stuck(blank_answer, EMPTY)
    blank, healed = tree.part(session, "text", 1), threading.Event()
    apply = tree.store.__class__.apply

    def applied(store: OpencodeFiles, changes: Sequence[Change]) -> None:
        apply(store, changes)
        healed.set()

    def client() -> None:
        assert healed.wait(10)
        write_over(blank, text=" ")

    monkeypatch.setattr(tree.store.__class__, "apply", applied)
    other = threading.Thread(target=client)
    other.start()
    code, out, _ = run("scan", "--repair")
    other.join()
    assert code == 0 and "healed" in out
    assert refusal(tree.store.load(session), thinking=False) is None


def test_undo_in_json(tree: Tree, run: Run) -> None:
    tree.stuck()
    run("scan", "--repair")
    data = as_json(run, "undo", newest(run))
    assert data["undone"] is True and len(data["records"]) == 1
    assert data["outcome"] == Outcome.UNDONE, "what it is now, not what it was"
    assert data["kept"] is None, "nothing was written over"


def test_undo_is_refused_when_something_would_be_lost(tree: Tree, run: Run) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    run("scan", "--repair")
    write_over(tree.part(session, "text", 1), text="somebody wrote this")
    name = newest(run)
    code, out, err = run("undo", name)
    assert (code, out) == (4, "")
    assert f"recoveryd undo {name} --force" in err
    code, out, _ = run("undo", name, "--force")
    [kept] = [entry["id"] for entry in as_json(run, "history") if entry["overwritten"]]
    since = f"1 had changed since; what stood there is kept (as files: recoveryd ledger export {kept})."
    then = "What else came since stays. The provider may refuse its next prompt, and "
    assert code == 0 and f" as before. {since} {then}" in out


def test_a_forced_undo_names_what_it_wrote_over(tree: Tree, run: Run) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    run("scan", "--repair")
    name = newest(run)
    tree.answered(session)
    write_over(tree.part(session, "text", 1), text="somebody wrote this")
    kept = as_json(run, "undo", name, "--force")["kept"]
    assert kept == as_json(run, "history")[0]["id"] != name
    export = tree.root.parent / "export"
    assert run("ledger", "export", kept, "--out", str(export))[0] == 0
    assert "somebody wrote this" in "".join(path.read_text() for path in export.iterdir())


def test_a_forced_undo_says_that_what_came_since_stays(tree: Tree, run: Run) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    run("scan", "--repair")
    name = newest(run)
    tree.answered(session)
    code, out, _ = run("undo", name, "--force")
    assert code == 0 and " as before. What came since stays. The provider may refuse its next prompt, and " in out


def test_a_forced_undo_is_counted_once(tree: Tree, run: Run) -> None:
    """What it wrote over is kept, as a recovery in the history: that one was never made."""
    session = tree.stuck(blank_answer, EMPTY)
    assert run("scan", "--repair")[0] == 0
    [made] = as_json(run, "history")
    tree.answered(session)
    assert run("undo", made["id"], "--force")[0] == 0
    kept, undone = as_json(run, "history")
    assert (kept["overwritten"], undone["overwritten"]) == (True, False)
    assert [line.split()[3] for line in run("history")[1].splitlines()[1:3]] == ["kept", "undone"]
    shown = run("show", kept["id"])[1]
    assert shown.splitlines()[0].endswith("  kept")
    assert f"What it wrote over, as files: recoveryd ledger export {kept['id']}" in shown
    [line] = as_json(run, "history", "--stats")
    assert (line["total"], line["outcomes"]) == (1, {"undone": 1})
    assert as_json(run, "status")["ever"]["undone"] == 1
    assert 'outcome="undone"} 1' in run("metrics")[1]
    tree.refused(session, EMPTY)
    assert [one["recovery"] for one in as_json(run, "status")["need_user"]] == [made["id"]]


@pytest.mark.parametrize("pruned", [False, True])
def test_of_a_recovery_below_a_newer_one_show_says_as_undo_does(tree: Tree, run: Run, pruned: bool) -> None:
    """It named an undo that is refused, whatever is typed."""
    session = tree.stuck()
    assert run("scan", "--repair")[0] == 0
    write_over(tree.part(session, "text", 1), text="\n")
    tree.refused(session, EMPTY)
    assert run("scan", "--repair")[0] == 0
    newer, older = (one["id"] for one in as_json(run, "history"))
    if pruned:
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            Upkeep(ledger).clear([newer], [])
    else:
        assert run("show", newer)[1].endswith(f"\nTo take it back: recoveryd undo {newer}\n")
    says = " ".join(run("undo", older)[2].removeprefix("recoveryd: ").split("\n")).strip()
    way = f"ledger export {older}" if pruned else f"undo {newer}"
    assert says.endswith(f": recoveryd {way}")
    assert run("show", older)[1].endswith(f"\n{says}\n")


@pytest.mark.parametrize("how", ["answered", "written over", "deleted", "conflict", "dry run", "unreadable"])
def test_show_names_the_undo_that_works_now(tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """By the check of `undo` itself: the way that it names is that which `undo` takes, or names."""
    session = tree.stuck(blank_answer, EMPTY)
    assert run("scan", "--repair")[0] == 0
    name = newest(run)
    if how == "answered":
        tree.answered(session)
    elif how == "written over":
        write_over(tree.part(session, "text", 1), text="somebody wrote this")
    elif how == "deleted":
        shutil.rmtree(tree.root / "message" / session)
        next(tree.root.glob(f"session/*/{session}.json")).unlink()
    elif how == "conflict":
        write_over(tree.part(session, "text", 1), text="somebody wrote this")
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            ledger.finish(name, Outcome.CONFLICT, "written over")
    elif how == "dry run":
        monkeypatch.setenv("RECOVERYD_DRY_RUN", "true")
    else:
        for path in (tree.root / "part").rglob("*.json"):
            path.unlink()
            path.mkdir()
    files = tree.files()
    told = " ".join(run("show", name)[1].split())
    assert tree.files() == files
    if how == "dry run":
        assert told.endswith(f"To take it back: recoveryd undo {name} (`dry_run` is set: it only shows that)")
        return
    code, _, err = run("undo", name)
    says = " ".join(err.removeprefix("recoveryd: ").split())
    assert code and told.endswith(says)
    assert ("would fail now" in told) is (how == "unreadable") is not told.endswith(f"recoveryd undo {name} --force")
    if how != "unreadable":
        assert run("undo", name, "--force")[0] == 0


def test_show_names_no_undo_of_a_store_that_can_not_be_written_to(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.stuck()
    assert run("scan", "--repair")[0] == 0
    name = newest(run)
    monkeypatch.setattr(tree.store.__class__, "live", lambda _: "It can't be written to.")
    assert f"`recoveryd undo {name}` would fail now: It can't be written to." in " ".join(run("show", name)[1].split())


def test_a_session_whose_messages_can_not_be_listed_is_not_told_as_one_without(tree: Tree, run: Run) -> None:
    """What the store tells of it besides says nothing of that."""
    session = tree.stuck()
    (tree.root / "message" / session).rename(tree.root / "elsewhere")
    (tree.root / "message" / session).symlink_to(tree.root / "elsewhere")
    for command in (["explain", "--session", session], ["report", session], ["compact", session]):
        code, _, err = run(*command)
        assert code == 3 and "no message yet" not in err and "where a folder should be" in " ".join(err.split())


def test_an_undo_that_was_cut_off_is_ended_as_is_said(tree: Tree, run: Run) -> None:
    tree.stuck(blank_answer, EMPTY)
    before = tree.files()
    assert run("scan", "--repair")[0] == 0
    [made] = as_json(run, "history")
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        ledger.mark(made["id"], Outcome.UNDOING)
    assert run("scan", "--repair")[0] == 1
    assert as_json(run, "history")[0]["outcome"] == "undoing"
    said = as_json(run, "scan")["stuck"][0]["action"]
    assert f"`recoveryd undo {made['id']}` end that" in said and "scan --repair" not in said
    assert "`recoveryd restart`" in said
    assert "`recoveryd start` brings that to an end" in " ".join(run("status")[1].split())
    code, _, err = run("ledger", "forget", made["session"], "--yes")
    assert code == 4 and "`recoveryd restart` brings that to an end" in err
    with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        told = " ".join(run("status")[1].split())
        assert "`recoveryd restart` brings that to an end" in told, "one that runs does that at its start alone"
    assert run("undo", made["id"])[0] == 0 and tree.files() == before


def test_a_forced_undo_that_was_cut_off_is_ended_as_is_said(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it is in the way of each other undo of its session."""
    session = tree.stuck(blank_answer, EMPTY)
    before = tree.files()
    assert run("scan", "--repair")[0] == 0
    [made] = as_json(run, "history")
    write_over(tree.part(session, "text", 1), text="somebody wrote this")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "undone", lambda *_, **__: sys.exit(9))
        assert run("undo", made["id"], "--force")[0] == 9
    kept = as_json(run, "history")[0]
    assert (kept["outcome"], kept["overwritten"]) == ("undoing", True)
    ends = f"recoveryd undo {kept['id']}"
    assert ends in run("undo", made["id"], "--force")[2]
    assert f"To take it back: {ends}" in run("show", kept["id"])[1]
    assert run("undo", kept["id"])[0] == 0
    assert "somebody wrote this" in tree.part(session, "text", 1).read_text()
    assert run("undo", made["id"], "--force")[0] == 0 and tree.files() == before


@pytest.mark.parametrize("left", [False, True])
def test_undo_of_a_deleted_session_says_so_and_how_to_end_it(tree: Tree, run: Run, left: bool) -> None:
    """`left`: what the repair wrote is there still."""
    session = tree.stuck(blank_answer, EMPTY)
    assert run("scan", "--repair")[0] == 0
    [made] = as_json(run, "history")
    shutil.rmtree(tree.root / "message" / session)
    next(tree.root.glob(f"session/*/{session}.json")).unlink()
    if not left:
        shutil.rmtree(tree.root / "part")
    for dry in ((), ("--dry-run",)):
        code, _, err = run("undo", made["id"], *dry)
        assert code == 4 and "not stored any more" in err and "--force" in err
    code, out, _ = run("undo", made["id"], "--force")
    said = " ".join(out.split())
    assert code == 0 and "next prompt" not in said
    if left:
        assert said.endswith("1 is not: what it belonged to is gone. Its session is not stored any more.")
    else:
        assert said.endswith("nothing that it wrote is stored any more.")
    assert as_json(run, "history")[-1]["outcome"] == "undone"


def test_undo_of_a_session_that_its_user_deleted_tells_of_no_prompt(tree: Tree, run: Run) -> None:
    tree.stuck()
    run("scan", "--repair")
    name = newest(run)
    for path in [path for path in tree.root.rglob("*") if path.is_file()]:
        path.unlink()
    for folder in sorted((path for path in tree.root.rglob("*/*") if path.is_dir()), reverse=True):
        folder.rmdir()  # some versions leave these
    assert run("undo", name) == run("undo", name, "--dry-run")
    assert run("undo", name)[0] == 4
    nothing = f"Nothing that {name} wrote is stored any more; nothing was written.\n"
    assert run("undo", name, "--force", "--dry-run") == (0, nothing, "")
    assert run("undo", name, "--force") == (0, f"Took back {name}: nothing that it wrote is stored any more.\n", "")
    assert not tree.files()


def test_undo_by_force_of_what_an_older_copy_took_back_says_that_it_is_not_repaired_again(
    tree: Tree, run: Run, tmp_path: Path
) -> None:
    """It does nothing else: behind its next refusal such a session stayed stuck, and nothing had said so."""
    tree.stuck()
    shutil.copytree(tree.root, tmp_path / "backup")
    run("scan", "--repair")
    name = newest(run)
    shutil.rmtree(tree.root)
    shutil.copytree(tmp_path / "backup", tree.root)
    code, _, refused = run("undo", name)
    hint = f"Nothing is left to put back. To have it count as undone: recoveryd undo {name} --force"
    assert code == 4 and hint in " ".join(refused.split())
    said = " ".join(run("undo", name, "--force")[1].split())
    assert said.startswith(f"Took back {name}: nothing that it wrote is stored any more, and the session ")
    assert said.endswith("is not repaired again by itself before a prompt was answered.")


def test_while_a_recovery_is_under_way_undo_is_busy(tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import recoveryd.heal.undo as module

    tree.stuck()
    run("scan", "--repair")
    name = newest(run)
    monkeypatch.setattr(module, "recovery_lock", lambda *a, **kw: recovery_lock(*a, **{**kw, "timeout": 0.01}))
    with recovery_lock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
        code, _, err = run("undo", name)
    assert code == 75
    assert "Try again in a moment." in err


def test_a_store_that_can_not_be_read_is_no_all_clear(tree: Tree, run: Run) -> None:
    database = tree.root.parent / "opencode-local.db"
    database.touch()  # nothing was ever kept in it
    assert run("scan")[0] == 0
    database.write_bytes(b"no database " * 500)
    code, out, err = run("scan")
    assert code == 1 and "none of those that could be read is stuck" in out and "no SQLite database" in err
    code, out, err = run("scan", "--json")
    [unreadable] = json.loads(out)["unreadable"]
    assert (code, err, unreadable["store"]) == (1, "", str(database)) and "no SQLite database" in unreadable["problem"]
    session = tree.stuck()
    assert run("explain", "--session", session)[0] == 0
    for command in (["explain", "--session", "ses_none"], ["scan", "--session", "ses_none"]):
        code, _, err = run(*command)
        assert code == 3 and "There is no session ses_none" in err and "no SQLite database" in err


def test_undo_finds_a_store_that_was_moved(
    tree: Tree, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, before = tree.stuck(), tree.files()
    assert run("scan", "--repair")[0] == 0
    [done] = as_json(run, "history")
    (tmp_path / "data").rename(tmp_path / "disk")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "disk"))
    [healed] = as_json(run, "scan")["healed"]
    assert (healed["session"], healed["recovery"]) == (session, done["id"])
    assert run("undo", done["id"])[0] == 0
    moved = tmp_path / "disk" / "opencode" / "storage"
    assert all((moved / name).read_bytes() == content for name, (content, _) in before.items())


@pytest.mark.live
def test_a_second_run_is_busy_and_says_who_has_it(tree: Tree, run: Run) -> None:
    state = private_files.make_folder(paths.state_dir())
    with StoreLock(tree.store.lock_path, paths.lock_dir(state), tree.store.id):
        code, out, err = run("run")
    assert (code, out) == (75, "")
    assert f"recoveryd ends: recoveryd is already watching {tree.store.id} (pid " in err and "`recoveryd stop`" in err


def test_a_bad_configuration_is_78_everywhere(tree: Tree, run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("max_retry = 3\n")
    for argv in (["run"], ["scan"], ["config", "check"], ["config", "show"]):
        code, out, err = run("--config", str(bad), *argv)
        assert (code, out) == (78, "")
        assert "max_retries" in err
    for argv in (["history"], ["explain", "hello"], ["config", "path"], ["completion", "bash"]):  # don't read it
        assert run("--config", str(bad), *argv)[0] == 0
    advice = err.splitlines()[-1].partition(": ")[2].split()
    code, out, _ = run(*advice[1:])
    assert (code, advice[0]) == (0, "recoveryd") and "max_retries = 3" in out, "what is advised works beside it"
    assert run("--config", str(tmp_path / "none.toml"), "scan")[0] == 3


def test_without_a_home_each_command_says_so_in_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as a user of which it has no entry."""

    def unknown(_: int) -> None:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    for argv in (["status"], ["scan"], ["history"], ["config", "path"], ["doctor"], ["run"]):
        code, out, err = run(*argv)
        assert (code, out) == (1, "") and "HOME is not set" in err and "Set HOME" in err
    assert json.loads(run("status", "--json")[1])["error"]["code"] == "failed"


def test_config_says_where_it_is_and_what_it_says(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config" / "recoveryd" / "config.toml"
    assert run("config", "path") == (0, f"{path}\n", "")
    assert as_json(run, "config", "path") == {"schema": 1, "path": str(path)}
    assert run("config", "check")[1] == f"There is no {path}: all settings are the defaults.\n"
    monkeypatch.setenv("RECOVERYD_DRY_RUN", "true")
    said = "all settings are the defaults, but for RECOVERYD_DRY_RUN of the environment."
    assert run("config", "check")[1] == f"There is no {path}: {said}\n"
    assert "(not there: all defaults, but for RECOVERYD_DRY_RUN of the environment)" in run("status")[1]
    assert any(said in check["says"] for check in as_json(run, "doctor")["checks"])
    monkeypatch.delenv("RECOVERYD_DRY_RUN")
    path.parent.mkdir(parents=True)
    path.write_text("max_retries = 5\n")
    assert run("config", "check") == (0, f"{path} is sound.\n", "")
    assert as_json(run, "config", "check") == {
        "schema": 1,
        "path": str(path),
        "exists": True,
        "ok": True,
        "problems": [],
    }
    assert as_json(run, "config", "show")["max_retries"] == 5
    shown = run("config", "show")[1]
    path.write_text(shown)
    assert run("config", "show")[1] == shown, "what is shown can be read again"


def test_explain_of_the_id_of_a_recovery_names_what_shows_it(tree: Tree, run: Run) -> None:
    """It was told as an error that nobody knows, to be reported."""
    tree.stuck(blank_answer, EMPTY)
    assert run("scan", "--repair")[0] == 0
    name = newest(run)
    code, out, err = run("explain", name)
    assert (code, out) == (2, "") and f"{name} is the id of a recovery, and no error.\nrecoveryd show {name}" in err
    assert run("explain", "r2345678")[0] == 0


def test_explain_says_what_a_text_means(run: Run) -> None:
    code, out, _ = run("explain", MISSING)
    assert code == 0
    assert out.startswith("tool_result_missing: a tool call without its result.\n")
    data = as_json(run, "explain", MISSING)
    assert data.keys() == {"schema", "kind", "repairable", "action"}
    assert (data["kind"], data["repairable"]) == ("tool_result_missing", True)
    assert run("explain", "-", stdin=MISSING.encode())[1] == out
    for nothing in (b"", b" \n"):
        code, out, err = run("explain", "-", stdin=nothing)
        assert (code, out) == (2, "") and "What was read from stdin is empty." in err
    assert as_json(run, "explain", "rate limit exceeded")["kind"] is None
    assert "Wait a little" in run("explain", "rate limit exceeded")[1]
    assert "more than one kind (empty_content, tool_result_missing)" in run("explain", f"{MISSING} {EMPTY}")[1]
    unknown = " ".join(run("explain", "???")[1].split())
    assert "does not know this error" in unknown and "if a new session is refused alike, it is not the" in unknown
    untold = "The words alone do not tell that. Of a session, `recoveryd explain --session ID` tells what is meant."
    shown = run("explain", '{"detail":"Bad Request"}')[1]  # as Codex shows it, of an image
    assert shown.startswith("media_rejected: an image") and untold in shown and untold not in out
    named = run("explain", '{"message": "boom", "codex_error_info": "context_window_exceeded"}')[1]
    assert named.startswith("context_overflow: a conversation") and untold not in named
    long = run("explain", "Prompt is too long")[1]  # as Claude Code says it, where nothing is made shorter
    assert long.startswith("context_overflow: ") and "In Codex and Claude Code: `/compact`." in " ".join(long.split())


def test_the_parts_that_are_named_are_stored(tree: Tree, run: Run) -> None:
    """Also where a repair only adds some."""
    words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    left_open = tree.stuck(SHAPES["open-tool-alone"].turns, words)
    assert as_json(run, "explain", "--session", left_open)["parts"] == [tree.part(left_open, "tool").stem]
    words = 'messages: first message must use the "user" role'
    headless = tree.stuck(SHAPES["begins-with-an-answer"].turns, words)
    told = as_json(run, "explain", "--session", headless)
    assert (told["kind"], told["parts"]) == ("role_order", []) and told["action"].startswith("Would fill 1 gap")


def test_explain_names_the_part_that_killed_a_session(tree: Tree, run: Run) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    blank = tree.part(session, "text", 1)
    code, out, _ = run("explain", "--session", session)
    assert code == 0
    assert blank.stem in out and "an empty message or text" in out
    assert blank.stem in as_json(run, "explain", "--session", session)["parts"]
    healthy = tree.stuck(words="Overloaded")
    assert "not about the history" in run("explain", "--session", healthy)[1]
    told = as_json(run, "explain", "--session", healthy)
    assert (told["stuck"], told["reason"]) == (False, "refused_elsewhere") and "server" in told["action"]
    assert "is not stuck" in run("explain", "--session", tree.answered(healthy))[1]
    assert run("explain", "--session", "ses_none")[0] == 3


GARBAGE = [
    b'{"text": "rate limit"}',
    b"not json",
    b"[]",
    b"null",
    b"7",
    b'"a text"',
    b"{}",
    b'{"error": null}',
    b'{"error": []}',
    b'{"text": 7}',
    b"[" * 100_000,
    b'{"text": ' + b"9" * 10_000 + b"}",
    b'{"text": NaN}',
    b'\xff\xfe{"text": "x"}',
    b'{"text": "\xff"}',
    b'{"text": "\\ud83d"}',
    b'{"text": "\xe2\x80\xa8"}',
    b'{"text":\r"x"}',
    b"\x00",
    b"\x1a",
    b'\xef\xbb\xbf{"text": "x"}',
    json.dumps({"error": {"name": "APIError", "data": {"message": MISSING}}}).encode(),
    json.dumps({"error": MISSING}).encode(),
    json.dumps({"text": MISSING}).encode(),
]


def test_explain_stays_in_step_line_by_line_whatever_it_reads(run: Run) -> None:
    code, out, err = run("explain", "--jsonl", stdin=b"\n".join(GARBAGE) + b"\n")
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (1, "")
    assert len(answers) == len(GARBAGE)
    assert all({"kind", "repairable", "action"} <= answer.keys() for answer in answers)
    assert [answer["kind"] for answer in answers[-3:]] == ["tool_result_missing"] * 3
    assert "problem" not in answers[0] and "problem" in answers[1]
    assert [answer["kind"] for answer in answers[:-3]] == [None] * (len(GARBAGE) - 3)


def test_explain_of_sound_lines_ends_well(run: Run) -> None:
    line = json.dumps({"text": EMPTY}).encode()
    assert run("explain", "--jsonl", stdin=line)[0] == 0
    assert {"schema": 1, **json.loads(run("explain", "--jsonl", stdin=line)[1])} == as_json(run, "explain", EMPTY)


@pytest.mark.parametrize("argv", [["scan"], ["scan", "--repair"], ["history"], ["explain", "--session"], ["show"]])
def test_a_hostile_title_is_only_text(tree: Tree, run: Run, argv: list[str]) -> None:
    session = tree.stuck(title=HOSTILE)
    if argv[0] in ("history", "show"):
        run("scan", "--repair")
    named = {"explain": [session], "show": [newest(run)] if argv == ["show"] else []}.get(argv[0], [])
    _, out, err = run(*argv, *named)
    assert not UNSEEN.search(out.replace("\n", "")) and not UNSEEN.search(err.replace("\n", ""))
    assert "[bold" in out and ":smile:" in out, "its mark-up is shown, not obeyed"
    assert "\nsecond line" not in out


def test_a_hostile_text_in_a_part_is_only_text(tree: Tree, run: Run) -> None:
    def turns(made: Any) -> None:
        made.user("go")
        made.assistant({"type": "text", "text": " ", "metadata": {"x": {"y": HOSTILE.replace("\ud83d", "")}}})

    tree.stuck(turns, EMPTY)
    _, out, _ = run("scan", "--repair")
    assert not UNSEEN.search(out.replace("\n", ""))
    assert "[bold red]x[/]" in out


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("argv", [["scan"], ["history"]])
def test_tables_fit_a_terminal_of_80_columns_and_can_be_read(tree: Tree, run: Run, argv: list[str]) -> None:
    session = tree.stuck(title="A title of an ordinary length")
    tree.stuck(blank_answer, EMPTY, title="日本語のセッション " * 5)
    run("scan", "--repair")
    tree.refused(session, EMPTY)
    _, out, _ = run(*argv)
    lines = [line.rstrip() for line in out.splitlines() if str(tree.root) not in line]
    assert max(map(cell_len, lines)) <= 80
    assert "A title of an ordinary" in " ".join(" ".join(lines).split()), "words stay whole"


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_can_be_asked_for(tree: Tree, run: Run, kind: Kind) -> None:
    assert run("scan", "--kind", kind.value)[0] == 0


def test_a_damaged_ledger_is_said_and_nothing_is_written(tree: Tree, run: Run) -> None:
    tree.stuck()
    before = tree.files()
    state = private_files.make_folder(paths.state_dir())
    Ledger(paths.ledger_file(state)).close()
    paths.ledger_file(state).write_bytes(b"no database " * 500)
    code, out, err = run("scan", "--repair")
    assert (code, out) == (1, "")
    assert "ledger" in err and "Traceback" not in err
    assert tree.files() == before


@pytest.mark.parametrize(
    "words",
    [
        "scan",
        "status",
        "doctor",
        "history",
        "show rabc",
        "metrics",
        "explain --session {}",
        "report {}",
        "ledger prune",
    ],
)
def test_a_state_folder_of_another_user_is_told_in_words(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """As after `sudo recoveryd scan --repair` with HOME kept: nothing in it can be looked at."""
    session = tree.stuck()
    state = private_files.make_folder(paths.state_dir())
    ask = os.stat

    def refused(path: Any, **how: Any) -> os.stat_result:
        if isinstance(path, (str, Path)) and state in Path(path).parents:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return ask(path, **how)

    monkeypatch.setattr(os, "stat", refused)
    _, out, err = run(*words.format(session).split())
    assert "ledger.db can't be opened: Permission denied" in (out if words in ("status", "doctor") else err)
    assert "Traceback" not in err


@pytest.mark.live
def test_a_reader_that_left_is_no_error(tree: Tree) -> None:
    tree.stuck()
    command = [sys.executable, "-m", "recoveryd", "scan", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(60) in (0, 1)
    assert b"Traceback" not in said


def read_by_head(*argv: str) -> tuple[int, bytes]:
    """What a command ends with whose reader leaves behind the first line, and what it said on stderr."""
    command = [sys.executable, "-m", "recoveryd", *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        return process.wait(60), said


@pytest.mark.live
def test_repairs_that_nobody_reads_of_are_made_all_the_same(tree: Tree, run: Run) -> None:
    """`recoveryd scan --repair --yes | head -1` made none, and ended with 0: as if nothing were stuck any more."""
    for _ in range(3):
        tree.stuck(blank_answer, EMPTY)
    assert read_by_head("scan") == (1, b"")
    assert read_by_head("scan", "--repair", "--yes") == (0, b"")
    assert [entry["outcome"] for entry in as_json(run, "history")] == ["healed"] * 3
    assert read_by_head("scan") == (0, b"")


def left_at_once(*argv: str, both: bool = False) -> int:
    """What a command ends with whose reader was gone before the first line; `both`: of its errors, too (`2>&1`)."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        command = [sys.executable, "-m", "recoveryd", *argv]
        stderr = write_end if both else subprocess.DEVNULL
        return subprocess.run(command, stdout=write_end, stderr=stderr, timeout=60, check=False).returncode
    finally:
        os.close(write_end)


@pytest.mark.live
def test_a_store_that_can_not_be_read_keeps_no_repair_from_being_made_where_nobody_reads_of_it(
    tree: Tree, run: Run
) -> None:
    """`recoveryd scan --repair --yes 2>&1 | head -1`"""
    tree.stuck(blank_answer, EMPTY)
    (kilo := tree.root.parents[1] / "kilo").mkdir()
    (kilo / "kilo.db").write_bytes(b"no database " * 500)
    assert left_at_once("scan", "--repair", "--yes", both=True) == 1
    assert [entry["outcome"] for entry in as_json(run, "history")] == ["healed"]


@pytest.mark.live
def test_what_a_command_ends_with_is_told_also_where_nobody_reads_of_it(tree: Tree) -> None:
    tree.stuck(blank_answer, EMPTY)
    assert [left_at_once("scan"), left_at_once("scan", "--dry-run")] == [1, 1]
    assert [left_at_once("show", "rnone"), left_at_once("show", "rnone", "--json")] == [3, 3]
    assert left_at_once("--help") == 0


@pytest.mark.live
def test_steps_that_nobody_reads_of_are_done_all_the_same() -> None:
    """`recoveryd install | head -1`: half an install is worse than words that are lost."""
    code = """
import sys
from recoveryd.cli.steps import Steps
steps = Steps(shown=True)
for number in range(2000):
    steps.say(f"step {number} " + "x" * 100)
print("all done", file=sys.stderr)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"all done\n"
        assert process.wait(60) == 0


@pytest.mark.parametrize("argv", [[], ["help"]])
def test_alone_it_prints_its_help(run: Run, argv: list[str]) -> None:
    code, out, err = run(*argv)
    assert (code, err) == (0, "") and out == run("--help")[1]
    assert run("help", "scan") == run("scan", "--help")


def test_a_table_in_a_pipe_has_a_line_for_each_record(tree: Tree, run: Run) -> None:
    for title in ("short", "日本語のセッション " * 9):
        tree.stuck(title=title)
    run("scan", "--repair")
    header, *rows = run("history")[1].splitlines()
    assert [row.split("  ")[0] for row in rows] == [entry["id"] for entry in as_json(run, "history")]
    assert all(len(re.split("  +", row)) == 4 for row in (header, *rows))
    _, *rows = run("history", "--stats")[1].partition("\n\n")[0].splitlines()
    assert len(rows) == len(as_json(run, "history", "--stats"))


def test_what_went_wrong_is_a_document_too(tree: Tree, run: Run) -> None:
    """Whatever ends a command, a program that reads stdout gets JSON, and a person the same words on stderr."""
    session = tree.stuck()
    run("scan", "--repair")
    name = newest(run)
    for argv, code, recoveries in (
        (["scan", "--kind", "flu"], "usage", []),
        (["explain"], "usage", []),
        (["scan", "--session", "ses_none"], "not_found", []),
        (["show", "rzzzz"], "not_found", [name]),
        (["show", session], "not_found", [name]),
        (["report", "ses_none"], "not_found", []),
    ):
        exit_code, out, err = run(*argv, "--json")
        said = json.loads(out)
        assert (said["schema"], said["ok"], said["error"]["code"]) == (1, False, code), argv
        assert said["error"]["exit"] == exit_code != 0
        assert said["error"]["recoveries"] == recoveries
        words = f"recoveryd: {said['error']['message']}\n{said['error']['hint']}"
        assert err.strip() == words.strip()


def test_an_id_of_the_other_sort_is_told_from_one_that_is_not_there(tree: Tree, run: Run) -> None:
    session = tree.stuck()
    run("scan", "--repair")
    name = newest(run)
    for command in (["show"], ["undo"], ["ledger", "export"]):
        code, _, err = run(*command, session)
        assert code == 3 and "is the id of a session" in err and f"recoveryd history --session {session}" in err
    code, _, err = run("ledger", "forget", name)
    assert code == 3 and f"its session is {session}" in err
    code, _, err = run("report", "ses_none")
    assert code == 3 and "no session ses_none" in err and "either id" in err


def test_a_title_of_white_space_alone_is_none(tree: Tree, run: Run) -> None:
    session = tree.stuck(title="  \t ")
    assert run("scan")[1].splitlines()[2] == "(no title)" and session in run("status")[1]


def test_what_is_missing_is_told_with_what_there_is(run: Run) -> None:
    for command, names in (("ledger", "prune,forget,export"), ("config", "path,show"), ("plugin", "install,remove")):
        code, _, err = run(command)
        assert code == 2 and f"required: {{{names}" in err


def test_what_was_mistyped_is_told_with_what_is_nearest(run: Run) -> None:
    assert "did you mean 'show'?" in run("shoe")[2]
    assert "did you mean 'empty_content'?" in run("scan", "--kind", "empty_contents")[2]
    assert "choose from" in run("heal")[2]


def test_a_check_in_a_pipe_is_one_line(tree: Tree, run: Run) -> None:
    lines = run("doctor")[1].partition("\n\n")[0].splitlines()
    assert [line.split()[1] for line in lines] == [check["code"] for check in as_json(run, "doctor")["checks"]]
    assert next(line for line in lines if line.startswith("warn  daemon")).endswith("Next: recoveryd start")


def test_undo_finds_a_store_that_a_broken_configuration_names(tree: Tree, run: Run, tmp_path: Path) -> None:
    tree.root.parent.rename(tmp_path / "elsewhere")
    paths.config_file().parent.mkdir(parents=True)
    sound = f'[opencode]\ndata_dirs = ["{tmp_path}/elsewhere"]\n'
    paths.config_file().write_text(sound)
    there = Tree.__new__(Tree)
    there.__dict__.update(tree.__dict__, root=tmp_path / "elsewhere" / "storage")
    there.stuck()
    assert run("scan", "--repair")[0] == 0
    name = newest(run)
    paths.config_file().write_text("max_retry = 3\n" + sound)
    code, out, err = run("undo", name)
    assert code == 0 and f"Took back {name}" in out
    assert err.startswith("recoveryd: warning: ") and "max_retry" in err


def test_options_of_all_commands_stand_before_and_behind(run: Run, tmp_path: Path) -> None:
    """What stands behind holds."""
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    for file in (one, other):
        file.write_text("max_retries = 2\n")
    for words, wanted in (
        (["--config", one, "config", "path"], one),
        (["config", "path", "--config", one], one),
        (["--config", one, "config", "path", "--config", other], other),
    ):
        assert run(*map(str, words)) == (0, f"{wanted}\n", "")
    assert run("ledger", "prune", "--config", str(tmp_path / "none"))[0] == 3
    assert run("-q", "config", "path", "-v")[0] == 0 and run("status", "-q", "-v")[0] == 2


def test_quiet_and_verbose(run: Run, tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    """The result is the same; what is told beside it is less, or more."""
    tree.stuck()
    _, out, err = run("scan")
    assert run("scan", "--quiet")[1] == out
    _, verbose, said = run("scan", "--verbose")
    assert verbose == out and len(said) >= len(err)


@pytest.mark.parametrize("size", ["0", "00", "", "-5", "\u00b2", "wide"])
def test_a_size_that_is_none_is_taken_as_not_told(
    tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    """rich would print nothing in 0 columns, and end in a traceback at a digit that is no number."""
    tree.stuck()
    commands = ("scan",), ("status",), ("history",), ("config", "show"), ("help", "scan")
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    usual = [run(*command) for command in commands]
    assert all(out for _, out, _ in usual)
    for command, as_ever in zip(commands, usual, strict=True):
        monkeypatch.setenv("COLUMNS", size)
        monkeypatch.setenv("LINES", size)
        assert run(*command) == as_ever
