"""What is known of a session's repairs when images are gone, clocks jump, or the user took a repair back."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from recoveryd.clients import Config
from recoveryd.core.diagnosis import Diagnosis
from recoveryd.core.errors import DiskError, RecoverydError
from recoveryd.core.model import Failure, Outcome, Refused
from recoveryd.diagnose import Context, standing_repair, undone_repair
from recoveryd.diagnose.triage import Next, Triage, Verdict
from recoveryd.disk import private_files
from recoveryd.heal.recovery import Recovery
from recoveryd.heal.undo import finish_interrupted, undo
from recoveryd.ledger.ledger import Ledger
from recoveryd.ledger.upkeep import Upkeep
from recoveryd.settings import paths
from tests.conftest import Run
from tests.ledger.test_upkeep import old_ledger
from tests.support.build import api_error, text, tool
from tests.support.cases import case
from tests.support.judge import refusal
from tests.support.trees import MISSING, Bench, Tree, write_over

SECRET = "Acquisition of Globex"


class Scene:
    """A session on the disk, and a recoveryd whose clock is wrong by `off` seconds."""

    def __init__(self, folder: Path) -> None:
        self.tree = Tree(folder)
        self.off = 0.0
        self.state = private_files.make_folder(folder / "state")
        self.ledger = Ledger(self.state / "ledger.db", clock=self.clock)
        self.recovery = Recovery(Context(self.ledger, Config(), self.state, clock=self.clock))
        self.session = self.tree.stuck()

    def clock(self) -> float:
        return time.time() + self.off

    def heals(self) -> str:
        failure = self.tree.failure(self.session)
        event = self.recovery.attempt(case(self.tree.store, failure)).event
        assert event.outcome is Outcome.HEALED, event.detail
        return event.id

    def breaks(self) -> None:
        """Another call without a result, of the first prompt, and a prompt that is refused for it."""
        made = self.tree._builders[self.session]
        made.assistant(tool(), text("behind"), parentID=made.messages[0]["id"])
        self.tree.refused(self.session)

    def later(self) -> None:
        """What is prompted now is newer than the answer that was made now."""
        self.tree._builders[self.session]._ms = int(time.time() * 1000) + 20

    def works_on(self) -> None:
        """A prompt, five steps of the model, then the same in the middle of the turn."""
        made = self.tree._builders[self.session]
        made.user("continue")
        for _ in range(5):
            made.assistant(tool())
        made.assistant(tool(), text("behind"))
        made.assistant(error=api_error(MISSING, 400))
        self.tree._write(made)

    def verdict(self, after_s: float = 5.0) -> Verdict:
        """Once the session is quiet."""
        config = Config()
        judge = Triage(Context(self.ledger, config, self.state, clock=lambda: time.time() + after_s), print).judge
        return judge(self.tree.store, self.session)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_what_was_healed_is_not_told_as_stuck_for_too_long(scene: Scene) -> None:
    """By hand, say: `run` would tell at its start how many `scan` lists."""
    assert scene.verdict(after_s=2 * 86_400).next is Next.TOO_OLD
    name = scene.heals()
    assert scene.verdict(after_s=2 * 86_400).next is Next.NOTHING
    undo(scene.tree.store, scene.ledger, scene.ledger.get(name))
    assert scene.verdict(after_s=2 * 86_400).next is Next.TOO_OLD


@pytest.mark.parametrize("off", [0.0, 86_400.0, -86_400.0])
def test_the_cap_is_counted_anew_after_an_answer_whatever_the_clock_said(scene: Scene, off: float) -> None:
    scene.off = off
    for _ in range(2):
        scene.heals()
        scene.breaks()
    scene.heals()
    scene.off = 0.0
    scene.breaks()
    assert scene.verdict().next is Next.GIVE_UP
    scene.tree.answered(scene.session)
    scene.later()
    scene.breaks()
    assert scene.verdict().next is Next.RECOVER


def test_a_repair_with_which_the_model_worked_on_does_not_count(scene: Scene) -> None:
    for _ in range(3):
        scene.heals()
        scene.works_on()
    assert scene.verdict().next is Next.RECOVER


def test_what_is_undone_is_not_made_again_when_the_next_prompt_is_refused(scene: Scene) -> None:
    undo(scene.tree.store, scene.ledger, scene.ledger.get(scene.heals()))
    scene.tree.refused(scene.session)
    verdict = scene.verdict()
    assert (verdict.next, "undone by the user" in verdict.reason) == (Next.NOTHING, True)
    scene.tree.answered(scene.session)
    scene.later()
    scene.breaks()
    assert scene.verdict().next is Next.RECOVER


@pytest.mark.parametrize("end", [Outcome.CONFLICT, Outcome.UNDONE])
def test_an_undo_that_a_crash_cut_off_was_the_users_wish_all_the_same(scene: Scene, end: Outcome) -> None:
    name = scene.heals()
    changes = scene.ledger.changes(name)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(GeneratorExit):
        patch.setattr(scene.tree.store, "apply", Mock(side_effect=GeneratorExit))  # as a kill: nobody hears of it
        undo(scene.tree.store, scene.ledger, scene.ledger.get(name))
    if end is Outcome.CONFLICT:
        write_over(scene.tree.root / changes[0].key, note="the client wrote")
    [settled] = finish_interrupted(scene.tree.store, scene.ledger)
    assert settled.outcome is end
    scene.tree.refused(scene.session)
    assert "undone by the user" in scene.verdict().reason


def test_a_repair_by_name_takes_an_undo_back_only_if_it_succeeds(scene: Scene) -> None:
    undo(scene.tree.store, scene.ledger, scene.ledger.get(scene.heals()))
    named = scene.heals()
    scene.ledger.mark(named, Outcome.CONFLICT)
    scene.breaks()
    assert "undone by the user" in scene.verdict().reason
    scene.heals()
    scene.breaks()
    assert undone_repair(scene.tree.store, scene.ledger, scene.tree.failure(scene.session)) is None


def test_a_forced_undo_behind_an_answer_is_a_wish_too_and_no_repair_of_its_own(scene: Scene) -> None:
    name = scene.heals()
    scene.tree.answered(scene.session)
    undo(scene.tree.store, scene.ledger, scene.ledger.get(name), force=True)
    scene.later()
    scene.breaks()
    found = undone_repair(scene.tree.store, scene.ledger, scene.tree.failure(scene.session))
    assert found is not None and found.recovery == name
    assert "undone by the user" in scene.verdict().reason


def test_an_undo_that_wrote_nothing_leaves_no_wish(scene: Scene) -> None:
    name = scene.heals()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RecoverydError):
        patch.setattr(scene.tree.store, "apply", Mock(side_effect=DiskError("full")))
        undo(scene.tree.store, scene.ledger, scene.ledger.get(name))
    scene.breaks()
    assert scene.verdict().next is Next.RECOVER


def test_an_undo_is_refused_behind_an_answer_whatever_the_clock_said(scene: Scene) -> None:
    scene.off = 86_400.0
    name = scene.heals()
    scene.off = 0.0
    scene.tree.answered(scene.session)
    with pytest.raises(RecoverydError, match="The session went on since"):
        undo(scene.tree.store, scene.ledger, scene.ledger.get(name))


def as_json(run: Run, *argv: str) -> Any:
    return json.loads(run(*argv, "--json")[1])


def test_scan_repairs_what_was_undone_only_by_name(tree: Tree, run: Run) -> None:
    session = tree.stuck()
    run("scan", "--repair")
    [entry] = as_json(run, "history")
    run("undo", entry["id"])
    before, today = tree.files(), time.strftime("%Y-%m-%d")
    for argv in (["scan"], ["scan", "--repair"], ["scan", "--repair", "--kind", "tool_result_missing"]):
        code, out, _ = run(*argv)
        said = " ".join(out.split())
        assert code == 1 and "1 stuck" in said
        assert f"it was healed ({entry['id']}), and you undid that on {today}" in said
        assert f"it is repaired only by `recoveryd scan --repair --session {session}`" in said
        assert "To heal them" not in said
        assert tree.files() == before
    assert [found["undone"] for found in as_json(run, "scan")["stuck"]] == [entry["id"]]
    assert f"you undid that on {today}" in " ".join(run("explain", "--session", session)[1].split())
    code, out, _ = run("scan", "--repair", "--session", session)
    assert code == 0 and refusal(tree.store.load(session), thinking=False) is None
    assert "you undid that on" in " ".join(out.split()), "it says what it does"
    [found] = as_json(run, "scan")["healed"]
    assert (found["healed"], found["undone"]) == (True, None)


@pytest.mark.parametrize("how", ["prune", "forget", "time"])
def test_what_was_healed_is_known_as_healed_without_its_images(tree: Tree, run: Run, how: str) -> None:
    session = tree.stuck(title=SECRET)
    run("scan", "--repair")
    if how == "prune":
        run("ledger", "prune", "--keep-days", "0", "--all-content", "--yes")
    elif how == "forget":
        run("ledger", "forget", session, "--yes")
    else:
        with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
            assert Upkeep(ledger).prune(30, 200, time.time() + 31 * 86_400) == 1
    [entry] = as_json(run, "history")
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        assert ledger.changes(entry["id"]) == []
    code, out, _ = run("scan")
    assert code == 0 and "none is stuck" in out
    [found] = as_json(run, "scan")["healed"]
    assert (found["healed"], found["kind"]) == (True, "tool_result_missing")
    assert as_json(run, "explain", "--session", session)["healed"] is True
    write_over(tree.part(session, "text", 1), text="the client wrote")
    code, out, _ = run("scan")
    assert code == 0, "what we did not write is not ours to ask about"
    ours = next(p for m in tree.store.load(session).messages for p in m.parts if "recoveryd" in str(p.data))
    (tree.root / "part" / ours.message_id / f"{ours.id}.json").unlink()
    assert as_json(run, "scan")["stuck"][0]["healed"] is False, "the repair does not stand any more"


def test_forgotten_titles_are_gone_from_the_rows_of_subagents(tmp_path: Path) -> None:
    tree, bench = Tree(tmp_path), Bench(tmp_path)
    root, child, other = tree.stuck(title="renamed since"), tree.stuck(title="look"), tree.stuck(title="another")
    tree.began(root, child)
    info = next((tree.root / "session").rglob(f"{root}.json"))
    write_over(info, title=SECRET)
    bench.attempt(tree, child)
    write_over(info, title="renamed since")
    bench.attempt(tree, other)
    bench.ledger.close()
    files = [tmp_path / "state" / name for name in ("ledger.db", "ledger.db-wal")]

    def held() -> bool:
        return any(SECRET.encode() in file.read_bytes() for file in files if file.exists())

    assert held(), "the test looks where it is"
    with Ledger(files[0]) as ledger:
        assert Upkeep(ledger).forget(root) == [], "nothing of its own was ever repaired"
        assert [entry.title for entry in ledger.history(9)] == ["another", ""]
    assert not held()


def test_an_older_ledger_learns_to_leave_traces(tmp_path: Path) -> None:
    with Ledger(old_ledger(tmp_path / "state" / "ledger.db")) as ledger:
        healed = [e for e in ledger.history(99) if e.outcome is Outcome.HEALED and ledger.changes(e.id)]
        assert healed
        before = {entry.id: ledger.left(entry.id) for entry in healed}
        Upkeep(ledger).clear([entry.id for entry in healed])
        assert {entry.id: ledger.left(entry.id) for entry in healed} == before
        assert ledger.changes(healed[0].id) == []
        assert ledger.tries(healed[0].store, healed[0].session, 0) == []
        kind = healed[0].kind
        assert kind is not None
        failure = Failure(healed[0].store, healed[0].session, "msg_none", 0)
        assert standing_repair(Tree(tmp_path).store, ledger, Diagnosis(failure, Refused(kind))) is None
