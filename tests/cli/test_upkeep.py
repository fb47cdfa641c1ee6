"""The commands for living with it, as a user types them."""

from __future__ import annotations

import json
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from recoveryd.cli.output import diff
from recoveryd.clients import Config, Whose
from recoveryd.core.model import Change, Failure, Kind, Outcome
from recoveryd.diagnose import Context
from recoveryd.disk import private_files
from recoveryd.disk.locks import StoreLock
from recoveryd.heal.recovery import Recovery
from recoveryd.ledger import Upkeep
from recoveryd.ledger.ledger import Ledger, Record, new_id
from recoveryd.ledger.stats import EndedRecovery, stats_by_kind
from recoveryd.settings import overrides, paths
from tests.conftest import Run
from tests.support.build import SessionBuilder, api_error, text, tool, write_sqlite
from tests.support.cases import case
from tests.support.database import OLD, Base
from tests.support.rollouts import Rollout
from tests.support.terminal import in_terminal
from tests.support.trees import EMPTY, MISSING, Tree, blank_answer

SECRET = "swordfish-7Kq2"


def healed(run: Run) -> tuple[str, str]:
    """The id of the newest heal, and its session."""
    _, out, _ = run("history", "--json")
    entry = next(e for e in json.loads(out) if e["outcome"] == "healed")
    return entry["id"], entry["session"]


def as_json(run: Run, *argv: str) -> Any:
    code, out, err = run(*argv, "--json")
    assert (code, err) == (0, ""), err
    return json.loads(out)


@pytest.fixture
def secretive(tree: Tree, run: Run) -> str:
    """A healed session whose thinking, now in the ledger alone, holds a secret."""

    def turns(session: SessionBuilder) -> None:
        blank_answer(session)
        session.messages[0]["agent"] = "build"
        for parts in session.parts.values():
            for part in parts:
                if part["type"] == "reasoning":
                    part["text"] = f"thinking of {SECRET}"

    session = tree.stuck(turns, EMPTY, title=f"About {SECRET}")
    assert run("scan", "--repair")[0] == 0
    return session


def _flat(text: str) -> str:
    return " ".join(text.split())


class TestPause:
    def test_until_it_is_ended(self, run: Run, tree: Tree) -> None:
        code, out, _ = run("pause")
        assert code == 0 and "by itself until `recoveryd unpause`" in _flat(out)
        tree.stuck()
        assert run("scan", "--repair", "--yes")[0] == 0, "what is asked for by hand is done"
        assert overrides.paused(paths.state_dir(), time.time())
        assert "paused" in run("status")[1]
        code, out, _ = run("unpause")
        assert code == 0 and "nothing runs that would. To start it: recoveryd start" in " ".join(out.split())
        told = _flat(run("unpause")[1])
        assert told.startswith("It was not paused. Nothing is repaired all the same: nothing runs that would. To start")
        assert as_json(run, "unpause")["was"] is False

    def test_one_that_was_over_by_itself(self, run: Run, tree: Tree) -> None:
        """It was not ended now, and is not what keeps repairs back."""
        state = private_files.make_folder(paths.state_dir())
        with StoreLock(tree.store.lock_path, paths.lock_dir(state), tree.store.id):
            overrides.pause(state, time.time() - 60, 1)
            assert as_json(run, "unpause")["was"] is False
            overrides.pause(state, time.time() - 60, 1)
            told = "The pause was over by itself. What gets stuck is healed within a minute."
            assert _flat(run("unpause")[1]) == told
            overrides.pause(state, time.time() - 60)
            assert as_json(run, "unpause")["was"] is True

    def test_nothing_goes_on_without_a_ledger(self, run: Run, tree: Tree) -> None:
        tree.stuck()
        overrides.pause(private_files.make_folder(paths.state_dir()), time.time())
        paths.ledger_file(paths.state_dir()).write_bytes(b"no database " * 500)
        with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
            why = as_json(run, "status")["ledger_problem"]
            out = _flat(run("unpause")[1])
        assert why and f"nothing is repaired yet: {_flat(why)}" in out and ".." not in out.replace(str(tree.root), "")

    @pytest.mark.parametrize(("span", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5d", 129_600)])
    def test_for_a_time(self, run: Run, tree: Tree, span: str, seconds: float) -> None:
        said = as_json(run, "pause", "--for", span)
        assert said["until"] - said["since"] == seconds

    @pytest.mark.parametrize("span", ["", "h", "2", "-2h", "0h", "nanh", "infd", "2w", "2h30m"])
    def test_what_is_no_time(self, run: Run, tree: Tree, span: str) -> None:
        code, _, err = run("pause", f"--for={span}")
        assert code == 2 and "invalid time value" in err and "such as 90s, 30m, 2h or 1d" in _flat(err)
        assert not paths.state_dir().exists()

    def test_after_a_long_one_it_says_what_is_too_old_to_be_healed_by_itself(self, run: Run, tree: Tree) -> None:
        overrides.pause(private_files.make_folder(paths.state_dir()), time.time() - 2 * 86_400)
        assert "more than 24 hours ago" in " ".join(run("unpause")[1].split())

    def test_it_ends_with_a_broken_configuration_too(self, run: Run, tree: Tree) -> None:
        paths.config_file().parent.mkdir(parents=True, exist_ok=True)
        paths.config_file().write_text("nonsense = 1\n")
        overrides.pause(private_files.make_folder(paths.state_dir()), time.time() - 2 * 86_400)
        code, out, _ = run("unpause")
        assert code == 0 and "more than 24 hours ago" in " ".join(out.split())
        assert overrides.paused(paths.state_dir(), time.time()) is None


class TestIgnore:
    def test_a_session_and_a_folder(
        self, run: Run, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "shop").mkdir()
        assert run("ignore")[1] == "Nothing is ignored.\n"
        assert run("ignore", "ses_1")[0] == run("ignore", "shop")[0] == run("ignore", "~/else/where")[0] == 0
        named = as_json(run, "ignore")["named"]
        assert named == ["ses_1", str(tmp_path / "shop"), str(tmp_path / "else" / "where")]
        assert run("ignore", "--remove", "shop")[0] == 0
        assert run("ignore", "--remove", "ses_9")[0] == 3
        assert as_json(run, "ignore")["named"] == ["ses_1", str(tmp_path / "else" / "where")]

    def test_what_nobody_has_is_ignored_and_said_to_be_nowhere(self, run: Run, tree: Tree, tmp_path: Path) -> None:
        for typo in ("ses_typo", "agent-a3f9c1e0b7d244e61", str(tmp_path / "shpo")):
            code, out, err = run("ignore", typo)
            assert code == 0 and "left alone from now on" in out
            assert f"warning: {typo} is not there now" in " ".join(err.split())
        for there in (tree.stuck(), str(tmp_path)):
            assert run("ignore", there)[::2] == (0, "")

    def test_what_is_no_longer_ignored_is_told_with_what_comes_of_that(self, run: Run, tree: Tree) -> None:
        def removed() -> str:
            assert run("ignore", "ses_1")[0] == 0
            return " ".join(run("ignore", "--remove", "ses_1")[1].split())

        tree.stuck()
        assert "nothing runs that would" in removed() and "recoveryd start" in removed()
        with StoreLock(tree.store.lock_path, paths.lock_dir(paths.state_dir()), tree.store.id):
            assert "What is stuck there now, and was not undone, is healed within a minute." in removed()
            run("pause")
            assert "Nothing is repaired yet: paused" in removed()

    def test_what_else_still_covers_a_session_or_a_folder_is_named(self, run: Run, tree: Tree, tmp_path: Path) -> None:
        shop, inner = tmp_path / "shop", tmp_path / "shop" / "inner"
        inner.mkdir(parents=True)
        session = tree.stuck(directory=str(inner))
        assert run("ignore", str(shop))[0] == 0
        for what in (session, str(inner)):
            code, _, err = run("ignore", "--remove", what)
            assert code == 3 and f"is ignored with {shop}." in err and f"recoveryd ignore --remove {shop}" in err
            assert run("ignore", what)[0] == 0
            code, out, _ = run("ignore", "--remove", what)
            out = " ".join(out.split())
            assert code == 0 and f"still ignored with {shop}." in out and f"recoveryd ignore --remove {shop}" in out
            assert "healed within" not in out and "no longer" not in out
        run("ignore", session)
        assert as_json(run, "ignore", "--remove", session)["ignored"] is True
        assert as_json(run, "ignore", "--remove", str(shop))["ignored"] is False

    def test_a_folder_of_the_configuration_that_still_covers_a_session_is_named(
        self, run: Run, tree: Tree, tmp_path: Path
    ) -> None:
        session = tree.stuck(directory=str(tmp_path))
        paths.config_file().parent.mkdir(parents=True)
        paths.config_file().write_text(f'ignore = ["{tmp_path}"]\n')
        code, _, err = run("ignore", "--remove", session)
        assert code == 3 and f"Take {tmp_path} out of `ignore` in {paths.config_file()}" in err

    def test_what_a_variable_ignores_is_taken_out_of_that(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It stands in place of the list in the file."""
        monkeypatch.setenv("RECOVERYD_IGNORE", f"ses_1,{tmp_path}")
        said = (1, "", "recoveryd: ses_1 is ignored by RECOVERYD_IGNORE.\nTake it out there.\n")
        assert run("ignore", "--remove", "ses_1") == said
        code, _, err = run("ignore", "--remove", str(tmp_path / "inner"))
        assert code == 3 and f"Take {tmp_path} out of RECOVERYD_IGNORE." in err

    def test_what_the_configuration_ignores_is_listed_and_taken_out_there(self, run: Run, tree: Tree) -> None:
        paths.config_file().parent.mkdir(parents=True)
        paths.config_file().write_text('ignore = ["ses_c"]\n')
        assert run("ignore")[1] == "ses_c (configuration)\n"
        code, _, err = run("ignore", "--remove", "ses_c")
        assert code == 1 and str(paths.config_file()) in err

    def test_scan_only_counts_it_and_repairs_it_on_no_account(self, run: Run, tree: Tree) -> None:
        session = tree.stuck()
        run("ignore", session)
        before = tree.files()
        code, out, _ = run("scan", "--repair")
        assert code == 0 and "none is stuck but what is ignored." in out and "1 is stuck and ignored" in out
        assert as_json(run, "scan")["stuck"] == []
        code, out, _ = run("scan", "--repair", "--session", session)
        assert code == 0 and "you said to leave this session" in " ".join(out.split())
        assert "none is stuck but what is ignored." in out
        named = as_json(run, "scan", "--session", session)
        assert (named["stuck"], [one["session"] for one in named["ignored"]]) == ([], [session])
        code, out, _ = run("scan", "--session", session)
        assert code == 0 and "none is stuck" in out and "you said to leave this session" in " ".join(out.split())
        assert tree.files() == before and as_json(run, "history") == []


class TestLedger:
    def test_forget_says_exactly_what_it_would_do_and_does_it(self, run: Run, tree: Tree, secretive: str) -> None:
        name, _ = healed(run)
        state = paths.state_dir()
        assert holding(state, SECRET) == ["ledger.db"]
        code, dry, _ = run("ledger", "forget", secretive, "--dry-run")
        assert code == 0 and "Would go for good" in dry and holding(state, SECRET)
        would = as_json(run, "ledger", "forget", secretive, "--dry-run")
        did = as_json(run, "ledger", "forget", secretive, "--yes")
        assert did == {**would, "removed": True} and did["recoveries"] == [name] and did["bytes"] > 0
        assert holding(state, SECRET) == []
        for command in (["undo", name], ["undo", name, "--force"], ["ledger", "export", name]):
            code, _, err = run(*command)
            assert code == 3 and "were forgotten at your wish (`recoveryd ledger forget`)" in " ".join(err.split())
        shown = " ".join(run("show", name)[1].split())
        assert "were forgotten at your wish" in shown and shown.endswith("can't be shown, nor undone any more.")
        for command in (["explain"], ["scan"]):
            told = " ".join(run(*command, "--session", secretive)[1].split())
            assert f"healed what was done is not known any more, as you had that forgotten ({name})" in told
        assert SECRET not in run("history")[1]
        assert run("ledger", "forget", "ses_unknown")[0] == 3

    def test_what_has_no_originals_says_why(self, run: Run, tree: Tree, secretive: str) -> None:
        """Pruned, or of what never was one."""
        name, _ = healed(run)
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            Upkeep(ledger).clear([name], [])
            none = Record(new_id(), Failure(str(tree.root), secretive, "msg_1", 0), "", None, "why")
            ledger.record(none, Outcome.REFUSED)
        for command in (["undo", name], ["ledger", "export", name]):
            code, _, err = run(*command)
            assert code == 3 and f"originals of {name} are no longer in the ledger" in err and "`[ledger]` says" in err
        assert "can't be shown, nor undone any more." in " ".join(run("show", name)[1].split())
        code, _, err = run("ledger", "export", none.id)
        assert code == 3 and f"{none.id} changed nothing (refused)" in err
        assert "originals of" not in run("show", none.id)[1]

    def test_forgetting_twice_says_that_nothing_was_left(self, run: Run, tree: Tree, secretive: str) -> None:
        healed(run)
        assert run("ledger", "forget", secretive, "--yes")[0] == 0
        for more in ((), ("--dry-run",)):  # nobody is asked about nothing
            code, out, err = run("ledger", "forget", secretive, *more)
            assert (code, err) == (0, "") and "go" not in _flat(out).lower().split()
            assert _flat(out) == f"Nothing of what session {secretive} said is left in the ledger."
        said = as_json(run, "ledger", "forget", secretive, "--yes")
        assert (said["removed"], said["recoveries"], said["bytes"]) == (True, [], 0)

    def test_forget_says_how_many_of_its_subagents_lose_its_title(self, run: Run, tree: Tree) -> None:
        parent, child = tree.ended(fine, "Acquisition"), tree.stuck(title="Child")
        tree.began(parent, child)
        assert run("scan", "--repair")[0] == 0
        [made] = as_json(run, "history")
        assert made["title"] == "Acquisition"
        assert "of 1 recovery of its subagents" in _flat(run("ledger", "forget", parent, "--dry-run")[1])
        assert as_json(run, "ledger", "forget", parent, "--yes")["titles"] == [made["id"]]
        assert as_json(run, "history")[0]["title"] == ""

    def test_prune_takes_what_exists_nowhere_else_only_with_yes(self, run: Run, tree: Tree, secretive: str) -> None:
        name, _ = healed(run)
        assert "--all-content" in run("ledger", "prune", "--keep-days", "0")[1]
        every = ("ledger", "prune", "--keep-days", "0", "--all-content")
        code, _, err = run(*every)
        assert code == 4 and "--yes" in err
        assert "would go" in run(*every, "--dry-run")[1]
        assert holding(paths.state_dir(), SECRET)
        assert as_json(run, *every, "--yes")["recoveries"] == [name]
        assert holding(paths.state_dir(), f"thinking of {SECRET}") == []
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            assert ledger.get(name).title == f"About {SECRET}", "only the originals went"

    def test_prune_by_the_size_does_what_its_dry_run_says(
        self, run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The oldest beyond it go; what exists nowhere else stays, and does not count."""

        def blank(session: SessionBuilder) -> None:
            session.user("go")
            session.assistant(text("fine"), text(" " * 600_000))
            session.user("next")
            session.assistant(text("fine"))

        for _ in range(3):
            tree.stuck(blank, EMPTY)
        assert run("scan", "--repair", "--yes")[0] == 0
        names = [entry["id"] for entry in json.loads(run("history", "--json")[1])]
        for name in names:
            assert run("undo", name)[0] == 0
        monkeypatch.setenv("RECOVERYD_LEDGER_KEEP_MB", "1")
        would = as_json(run, "ledger", "prune", "--dry-run")
        assert len(would["recoveries"]) == 2 and would["bytes"] > 1_000_000
        assert "would go" in run("ledger", "prune", "--dry-run")[1]
        assert as_json(run, "ledger", "prune") == {**would, "removed": True}
        assert as_json(run, "ledger", "prune", "--dry-run")["recoveries"] == []

    def test_prune_says_what_stays_and_when_nothing_is_left(self, run: Run, tree: Tree, secretive: str) -> None:
        """Of two, one has what exists nowhere else now; behind that nothing is "beyond the limits" any more."""
        every = ("ledger", "prune", "--keep-days", "0", "--yes")
        tree.stuck()
        assert run("scan", "--repair")[0] == 0
        run("undo", healed(run)[0])
        stay = "exists nowhere else now: the originals of 1 recovery. They stay."
        out = _flat(run(*every)[1])
        assert "The originals of 1 recovery" in out and f"What else is beyond the limits (0 days, 200 MB) {stay}" in out
        assert f"All that is beyond the limits (0 days, 200 MB) {stay}" in _flat(run(*every)[1])
        assert "are gone for good" in run(*every, "--all-content")[1]
        for command in (every, (*every, "--all-content"), (*every[:4], "--dry-run")):
            assert run(*command)[:2] == (0, "The ledger holds no originals, so there is nothing to remove.\n")

    def test_prune_takes_the_first_words_of_a_prompt_that_stand_for_a_title(self, run: Run, tree: Tree) -> None:
        rollout = Rollout(tree.root.parents[2] / ".codex", ms=int(time.time() * 1000) - 60_000)
        rollout.asks(f"look up {SECRET}")
        rollout.stuck()
        assert run("scan", "--repair", "--yes")[0] == 0 and SECRET in run("history")[1]
        name, every = healed(run)[0], ("ledger", "prune", "--keep-days", "0")
        code, _, err = run(*every)
        assert code == 4 and "--yes" in err and holding(paths.state_dir(), SECRET)
        assert "listed by the session's id" in _flat(err), "its originals exist nowhere else now: they stay"
        assert "1 recovery will be listed by the session's id and no more" in _flat(run(*every, "--all-content")[2])
        would, did = as_json(run, *every, "--dry-run"), as_json(run, *every, "--yes")
        assert did == {**would, "removed": True} and did["titles"] == [name]
        assert holding(paths.state_dir(), SECRET) == []
        assert rollout.thread in run("history")[1] and rollout.thread in run("show", name)[1]

    def test_what_was_undone_already_is_not_said_to_be_undone_no_more(self, run: Run, tree: Tree) -> None:
        (first, second), every = (
            (tree.stuck(blank_answer, EMPTY) for _ in range(2)),
            ("--keep-days", "0", "--all-content"),
        )
        run("scan", "--repair", "--yes")
        assert "2 recoveries lose their originals" in (said := _flat(run("ledger", "prune", *every)[2]))
        assert "They can't be undone any more." in said
        run("undo", as_json(run, "history", "--session", first)[0]["id"])
        assert "1 of them can't be undone any more." in _flat(run("ledger", "prune", *every)[2])
        assert "undone" not in _flat(run("ledger", "forget", first)[2])
        assert "It can't be undone any more." in _flat(run("ledger", "forget", second)[2])

    def test_export_writes_the_originals_for_the_user_alone(
        self, run: Run, tree: Tree, secretive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        name, _ = healed(run)
        code, out, _ = run("ledger", "export", name)
        folder = tmp_path / f"recoveryd-{name}"
        assert code == 0 and folder.name in out
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
        index = json.loads((folder / "index.json").read_text())
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            changes = ledger.changes(name)
        assert [one["record"] for one in index["records"]] == [change.key for change in changes]
        for one, change in zip(index["records"], changes, strict=True):
            stored = (folder / one["file"]).read_bytes() if one["file"] else None
            assert stored == change.before
        assert any(SECRET in file.read_text() for file in folder.iterdir())
        code, _, err = run("ledger", "export", name)
        assert code == 4 and "nothing is written over" in err
        assert run("ledger", "export", name, "--out", str(tmp_path / "no" / "where"))[0] == 1

    def test_a_key_never_becomes_a_path(self, tree: Tree, run: Run, secretive: str, tmp_path: Path) -> None:
        from recoveryd.ledger.export import export

        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            entry = ledger.get(healed(run)[0])
        keys = ("../../../etc/passwd", "/abs", "..", "part/.hidden", "x" * 500, "a\0b\nc\udcff")
        names = export(entry, [Change(key, b"x", None) for key in keys], tmp_path / "out")
        assert len(names) == len(set(names)) == len(keys) + 1
        assert sorted(names) == sorted(file.name for file in (tmp_path / "out").iterdir())


def holding(folder: Path, text: str) -> list[str]:
    """The files of the folder that hold a text; the log has titles, and is none of the ledger."""
    return [file.name for file in folder.iterdir() if file.suffix != ".log" and text.encode() in file.read_bytes()]


class TestReport:
    def test_it_is_json_and_may_go_into_a_file(self, run: Run, tree: Tree, secretive: str, tmp_path: Path) -> None:
        name, _ = healed(run)
        code, out, err = run("report", name)
        assert (code, err) == (0, "")
        assert json.loads(out)["recovery"]["id"] == name
        assert SECRET not in out and str(tmp_path) not in out
        code, said, err = run("report", secretive, "--out", str(tmp_path / "r.json"))
        assert (code, said) == (0, "") and "no content" in err
        assert json.loads((tmp_path / "r.json").read_text())["messages"] == json.loads(out)["messages"]
        assert run("report", "r0000")[0] == 3


class TestStats:
    def test_by_kind(self) -> None:
        def ended(kind: Kind | None, outcome: Outcome, seconds: float | None = None) -> EndedRecovery:
            return EndedRecovery(kind, outcome, 0.0, seconds)

        empty = Kind.EMPTY_CONTENT
        healed_ones = [ended(empty, Outcome.HEALED, s) for s in (0.1, 0.2, 9.0)]
        others = [ended(empty, Outcome.CONFLICT), ended(empty, Outcome.REFUSED), ended(None, Outcome.NOT_UNDERSTOOD)]
        first, second = stats_by_kind([*healed_ones, *others])
        assert (first.kind, first.total, first.success, first.median_seconds) == (empty, 5, 0.75, 0.2)
        assert (second.kind, second.total, second.success, second.median_seconds) == (None, 1, None, None)
        assert stats_by_kind([]) == []

    def test_the_command(self, run: Run, tree: Tree) -> None:
        assert "No recovery so far" in run("history", "--stats")[1]
        assert not paths.state_dir().exists()
        tree.stuck()
        tree.stuck(blank_answer, EMPTY)
        run("scan", "--repair")
        first, second = as_json(run, "history", "--stats")
        assert {first["kind"], second["kind"]} == {"tool_result_missing", "empty_content"}
        assert first["outcomes"] == {"healed": 1} and first["success"] == 1.0
        assert 0 < first["median_seconds"] < 10
        assert "100%" in run("history", "--stats")[1]


class TestDiff:
    def test_a_row_is_shown_with_what_its_column_says(self, tmp_path: Path) -> None:
        path = tmp_path / "opencode.db"
        base = Base(path, OLD, time.time)
        session = SessionBuilder(int(time.time() * 1000) - 60_000)
        session.user("go")
        session.assistant(tool(), text("behind"))
        session.user("next")
        session.assistant(" ", "fine")
        session.failed("continue", api_error(MISSING, 400))
        write_sqlite(session.planted(), path)
        failure = base.store.look(session.session["id"]).failure
        assert failure is not None
        with Ledger(tmp_path / "ledger.db") as ledger:
            recovery = Recovery(Context(ledger, Config(), tmp_path))
            event = recovery.attempt(case(base.store, failure, Kind.TOOL_RESULT_MISSING)).event
        assert event.outcome is Outcome.HEALED
        lines = [line for change in event.changes for line in diff(base.store.content, change)]
        assert '+    "type": "step-start",' in lines
        assert not [line for line in lines if '\\"' in line], "nothing is one long escaped text"
        assert max(map(len, lines)) < 120

    def test_what_is_no_json_is_shown_as_it_is(self) -> None:
        row = Change("part/p", b'{"id":"p","session_id":"s","data":"{broken"}', None)
        assert '-  "data": "{broken"' in diff(Whose(Config(), []).content("/gone"), row)


class TestTerminal:
    """The program in a terminal of its own: what is drawn there, and nowhere else."""

    def test_a_bar_over_many_sessions_goes_to_the_terminal_and_not_into_the_result(self, tree: Tree) -> None:
        for number in range(250):
            (tree.root / "message" / f"ses_{number:03d}").mkdir()
            (tree.root / "message" / f"ses_{number:03d}" / "msg_1.json").write_text('{"role": "user"}')
        shown = in_terminal("scan", "--json")
        assert re.search(r"\d+/250", shown.drawn)
        assert json.loads(shown.out)["sessions_seen"] == 250
        assert in_terminal("scan", "--json", TERM="dumb").drawn == ""

    def test_few_sessions_need_none(self, tree: Tree) -> None:
        tree.answered(tree.stuck())
        shown = in_terminal("scan", "--json")
        assert shown.drawn == "" and json.loads(shown.out)["sessions_seen"] == 1


def test_a_report_does_not_go_over_a_file(run: Run, tree: Tree, tmp_path: Path) -> None:
    tree.stuck()
    assert run("scan", "--repair")[0] == 0
    name, out = as_json(run, "history")[0]["id"], tmp_path / "report.json"
    assert run("report", name, "--out", str(out))[0] == 0
    out.write_text("mine")
    code, _, err = run("report", name, "--out", str(out))
    assert code == 4 and f"{out} is there already" in err
    assert out.read_text() == "mine"


def test_an_error_is_folded_on_a_terminal_alone(run: Run, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    words = "There is no session ses_that_is_not_there in any store."
    assert run("scan", "--session", "ses_that_is_not_there")[2] == f"recoveryd: {words}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    lines = run("scan", "--session", "ses_that_is_not_there")[2].splitlines()
    assert max(map(len, lines)) <= 30 < len(words)
    assert " ".join(" ".join(lines).split()) == f"recoveryd: {words}"


def fine(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant("fine")
