"""What asks a person first, what asks nobody, and what is shown before that."""

from __future__ import annotations

import json
import re

import pytest

from recoveryd.cli import scan
from recoveryd.clients import Config
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.core.errors import DiskError
from recoveryd.core.model import Kind
from recoveryd.diagnose import Context
from recoveryd.heal.recovery import Recovery
from recoveryd.heal.undo import undo
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import paths
from tests.conftest import Run
from tests.support.build import SessionBuilder
from tests.support.cases import case
from tests.support.judge import refusal
from tests.support.terminal import in_terminal
from tests.support.trees import EMPTY, Tree, blank_answer

NEW = '+  "text": "[user interrupted]",'


def held(run: Run) -> int:
    """How many recoveries still have their originals."""
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        return sum(bool(ledger.changes(entry.id)) for entry in ledger.history(99))


def many_blank_answers(session: SessionBuilder) -> None:
    """More records of a repair than are shown at once."""
    for turn in range(scan.MOST + 3):
        session.user(f"go {turn}")
        session.assistant(" ")
    session.user("next")


class TestRepair:
    @pytest.mark.live
    def test_in_a_terminal_the_diffs_are_shown_once_and_a_no_changes_nothing(self, tree: Tree) -> None:
        tree.stuck(blank_answer, EMPTY)
        tree.stuck(title="Another")
        before = tree.files()
        shown = in_terminal("scan", "--repair", typed="\n", whole=True)
        assert shown.code == 1 and tree.files() == before
        assert shown.text.count("Make these 2 repairs? [y/N]") == 1
        assert shown.text.index(NEW) < shown.text.index("Make these 2 repairs?")
        assert shown.text.count(NEW) == 1
        assert shown.text.rstrip().endswith("Nothing was repaired.")

    @pytest.mark.parametrize("named", [True, False])
    def test_a_yes_repairs_and_says_what_was_done(self, tree: Tree, named: bool) -> None:
        session = tree.stuck(blank_answer, EMPTY)
        only = ("--session", session) if named else ()
        shown = in_terminal("scan", "--repair", *only, typed="y\n", whole=True)
        before, after = shown.text.split("Make this repair? [y/N]")
        assert shown.code == 0 and refusal(tree.store.load(session), thinking=False) is None
        assert before.count(NEW) == 1 and "Would take out 1 thinking block, fill 1 gap" in before
        assert NEW not in after and re.search(r"Took out 1 thinking block, filled 1 gap .*\(r\w+\)", after)
        assert "Would" not in after and "none is stuck" in after

    def test_with_yes_nobody_is_asked(self, tree: Tree) -> None:
        tree.stuck(blank_answer, EMPTY)
        shown = in_terminal("scan", "--repair", "--yes", typed="", whole=True)
        assert shown.code == 0 and "[y/N]" not in shown.text and NEW in shown.text

    @pytest.mark.parametrize("typed", ["n", "y"])
    def test_it_asks_in_a_terminal_also_where_its_output_goes_into_a_file(self, tree: Tree, typed: str) -> None:
        """`scan --repair | tee log`: the diff is shown where the question is."""
        tree.stuck(blank_answer, EMPTY)
        before = tree.files()
        shown = in_terminal("scan", "--repair", typed=f"{typed}\n")
        assert shown.text.index(NEW) < shown.text.index("Make this repair? [y/N]") and NEW not in shown.out
        assert (tree.files() == before) == (typed == "n")
        assert (shown.code, "Took out" in shown.out) == ((1, False) if typed == "n" else (0, True))

    def test_a_program_that_reads_json_is_not_asked(self, tree: Tree) -> None:
        tree.stuck(blank_answer, EMPTY)
        shown = in_terminal("scan", "--repair", "--json", typed="")
        assert (shown.code, shown.text) == (0, "") and json.loads(shown.out)["stuck"][0]["healed"]

    def test_a_script_is_not_asked_and_sees_the_diff_first(self, tree: Tree, run: Run) -> None:
        session = tree.stuck(blank_answer, EMPTY)
        code, out, err = run("scan", "--repair", "--session", session)
        assert (code, err) == (0, "")
        assert out.count(NEW) == 1 and out.index("Would take") < out.index(NEW) < out.index("Took out")

    @pytest.mark.parametrize("argv", [["--repair", "--dry-run"], ["--dry-run"]])
    def test_a_dry_run_shows_each_edit_and_writes_nothing(self, tree: Tree, run: Run, argv: list[str]) -> None:
        tree.stuck(blank_answer, EMPTY)
        before = tree.files()
        code, out, _ = run("scan", *argv)
        assert code == 1 and tree.files() == before
        assert NEW in out and "Would take out" in out and "nothing was written" in out
        assert not paths.state_dir().exists()

    def test_a_dry_run_shows_all_of_a_long_repair_and_the_others_name_it(
        self, tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who is asked can read each change before he agrees."""

        session = tree.stuck(many_blank_answers, EMPTY)
        all_of_it = f"All of them: recoveryd scan --dry-run --session {session}"
        code, out, _ = run("scan", "--dry-run")
        assert code == 1 and out.count("\n--- ") > scan.MOST and "more records" not in out and "All of them" not in out
        records = out.count("\n--- ")
        monkeypatch.setenv("RECOVERYD_DRY_RUN", "true")
        assert all_of_it in " ".join(run("scan", "--repair", "--yes")[1].split())
        monkeypatch.delenv("RECOVERYD_DRY_RUN")
        for argv in (["--session", session], ["--repair"]):
            _, out, _ = run("scan", *argv)
            assert out.count("\n--- ") == scan.MOST
            assert f"... and {records - scan.MOST} more records" in out
            assert (all_of_it in " ".join(out.split())) == ("--repair" not in argv)
        shown = f"Once made, all of them: recoveryd show {json.loads(run('history', '--json')[1])[0]['id']}"
        assert shown in out, "nobody was asked: it is written by then"

    def test_of_a_long_repair_that_can_not_be_made_nothing_is_said_that_the_ledger_does_not_know(
        self, tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise DiskError("Can't write: the disk is full.")

        tree.stuck(many_blank_answers, EMPTY)
        monkeypatch.setattr(OpencodeFiles, "apply", full)
        code, out, _ = run("scan", "--repair", "--yes")
        [named] = re.findall(r"recoveryd show (r\w{8})", out)
        assert code == 1 and run("show", named)[0] == 3
        assert f"Once made, all of them: recoveryd show {named}" in out

    def test_who_is_asked_is_told_how_to_see_all_of_it_before(self, tree: Tree) -> None:
        session = tree.stuck(many_blank_answers, EMPTY)
        shown = in_terminal("scan", "--repair", typed="n\n")
        assert f"All of them: recoveryd scan --dry-run --session {session}" in " ".join(shown.text.split())

    @pytest.mark.parametrize("asked", [True, False], ids=["with a question", "without one"])
    @pytest.mark.parametrize("argv", [[], ["--yes"], ["--json"]])
    @pytest.mark.parametrize("since", ["prompted", "answered", "answered elsewhere"])
    def test_what_changed_since_it_was_looked_at_is_left_alone(
        self, tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, asked: bool, argv: list[str], since: str
    ) -> None:
        session = tree.stuck(blank_answer, EMPTY)
        model = {"providerID": "google", "modelID": "gemini-2.5-pro"} if since == "answered elsewhere" else {}

        def change(*_: object) -> bool:
            return bool(tree.prompted(session) if since == "prompted" else tree.answered(session, **model))

        monkeypatch.setattr("recoveryd.cli.scan.is_asked", lambda *_: asked or not change())
        monkeypatch.setattr("recoveryd.cli.scan.agreed", change)
        code, out, _ = run("scan", "--repair", *argv)
        assert code == 1 and "changed meanwhile" in out
        assert json.loads(run("history", "--json")[1]) == []

    @pytest.mark.parametrize("late", [False, True], ids=["before the lock", "right before the lock"])
    @pytest.mark.parametrize("argv", [[], ["--json"]])
    def test_what_a_daemon_healed_since_it_was_looked_at_is_told_as_healed(
        self, tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, late: bool, argv: list[str]
    ) -> None:
        session = tree.stuck(blank_answer, EMPTY)
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:

            def heal(*_: object) -> bool:
                recovery = Recovery(Context(ledger, Config(), paths.state_dir()))
                recovery.attempt(case(tree.store, tree.failure(session), Kind.EMPTY_CONTENT))
                return False

            def stamp(*_: object) -> str:
                seen = tree.store.stamp(session).digest
                heal()
                return seen

            if late:
                monkeypatch.setattr("recoveryd.cli.repairing._stamp", stamp)
            else:
                monkeypatch.setattr("recoveryd.cli.scan.is_asked", heal)
            code, out, _ = run("scan", "--repair", "--yes" if late else "--quiet", *argv)
        [entry] = json.loads(run("history", "--json")[1])
        assert (code, entry["outcome"]) == (0, "healed"), out
        if argv:
            found = json.loads(out)
            assert [(one["healed"], one["recovery"]) for one in found["stuck"]] == [(True, entry["id"])]
        else:
            assert "none is stuck." in out and f"({entry['id']})" in out
        assert ("healed meanwhile by another recoveryd: Took out" in " ".join(out.split())) is not late

    @pytest.mark.parametrize("named", [True, False])
    def test_what_was_undone_since_it_was_looked_at_is_left_alone(
        self, tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch, named: bool
    ) -> None:
        session = tree.stuck(blank_answer, EMPTY)
        before = tree.files()
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:

            def repaired_and_undone(*_: object) -> bool:
                recovery = Recovery(Context(ledger, Config(), paths.state_dir()))
                event = recovery.attempt(case(tree.store, tree.failure(session), Kind.EMPTY_CONTENT)).event
                return not undo(tree.store, ledger, ledger.get(event.id))

            monkeypatch.setattr("recoveryd.cli.scan.is_asked", repaired_and_undone)
            code, out, _ = run("scan", "--repair", *(("--session", session) if named else ()))
        assert code == 1 and tree.files() == before, out
        assert [entry["outcome"] for entry in json.loads(run("history", "--json")[1])] == ["undone"]


class TestLedger:
    @pytest.fixture
    def session(self, tree: Tree, run: Run) -> str:
        session = tree.stuck()
        assert run("scan", "--repair")[0] == 0
        return session

    def test_what_is_gone_for_good_wants_a_yes(self, run: Run, session: str) -> None:
        for command in (["prune", "--keep-days", "0"], ["forget", session]):
            code, out, err = run("ledger", *command)
            assert (code, out) == (4, "") and "Nothing was removed" in err and "--yes" in err
            assert held(run) == 1
            said = in_terminal("ledger", *command, typed="no\n")
            assert said.code == 4 and "Go on? [y/N]" in said.text and held(run) == 1
        assert in_terminal("ledger", "prune", "--keep-days", "0", typed="y\n").code == 0
        assert held(run) == 0
        assert run("ledger", "forget", session, "--yes")[0] == 0

    def test_what_goes_by_itself_asks_nobody(self, run: Run, session: str) -> None:
        """The limits of the configuration are the user's word already."""
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger, ledger.file.write() as db:
            db.execute("UPDATE recovery SET time = 1000")
        assert run("ledger", "prune")[0] == 0
        assert held(run) == 0
