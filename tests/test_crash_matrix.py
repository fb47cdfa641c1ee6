"""Each step of a recovery is once the last one: what a start makes of the session, and that nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recoveryd.core import failpoint
from tests.crash_matrix import child, work
from tests.crash_matrix.cells import Bench, Scenario
from tests.crash_matrix.places import PLACES, JsonPlace

# What has to be among the steps of a repair of several records, or a step has lost its name.
JSON_STEPS = {"mkdir", "create", "write", "sync", "compare", "rename", "unlink", "folder", "read back", "confirm"}
SQLITE_STEPS = {"begin", "compare", "write", "commit", "committed", "read back", "confirm"}
TRANSCRIPT_STEPS = {"create", "write", "sync", "compare", "link", "rename", "folder", "unlink", "read back", "confirm"}
ROLLOUT_STEPS = {"write line", "sync lines", "read back", "confirm"}
STEPS = {"json": JSON_STEPS, "sqlite": SQLITE_STEPS, "codex": ROLLOUT_STEPS, "claude_code": TRANSCRIPT_STEPS}
LEDGER_STEPS = {"ledger begin", "ledger images", "ledger commit", "ledger committed"}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    work.alone(monkeypatch.setattr)


def test_nothing_hangs_on_a_failpoint_unless_a_test_says_so() -> None:
    assert failpoint.reach.__module__ == failpoint.__name__


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_every_step(tmp_path: Path) -> None:
    """As it was, or healed, or (where the client wrote since) a conflict; in each store, and the ledger knows."""
    report = tmp_path / "matrix.json"
    stores = [word for store in STEPS for word in ("--store", store)]
    command = [sys.executable, "-m", "tests.crash_matrix", "--short", "--json", str(report), *stores]
    done = subprocess.run(command, capture_output=True, text=True, timeout=590, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    found = {table["scenario"]: table["cells"] for table in json.loads(report.read_text())}
    for store, own in STEPS.items():
        killed = found[f"{store}, many faults, repair, kill"]
        assert {cell["name"] for cell in killed} >= own | LEDGER_STEPS
        assert _outcomes(killed) == {("as it was", ""), ("as it was", "failed"), ("healed", "healed")}
        undone = found[f"{store}, many faults, undo, kill"]
        assert _outcomes(undone) == {("still healed", "healed"), ("undone", "undone")}
        written = found[f"{store}, many faults, repair, kill+client"]
        assert ("as it was", "conflict") in _outcomes(written)
        if PLACES[store].movable:
            moved = found[f"{store}, many faults, undo, kill+move"]
            assert _outcomes(moved) == {("still healed", "healed"), ("undone", "undone")}
        for end in ("error", "broken"):
            failed = found[f"{store}, many faults, repair, {end}"]
            assert _outcomes(failed) == {("healed", "healed")}, "the disk works again, and it was tried again"
        if "long" not in PLACES[store].faults:
            continue
        longer = found[f"{store}, long, repair, kill"]
        assert _outcomes(longer) == {("as it was", ""), ("as it was", "failed"), ("healed", "healed")}


def _outcomes(cells: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(cell["found"], cell["ledger"]) for cell in cells}


@pytest.mark.slow
def test_the_matrix_sees_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the end that a start makes of it, half a repair and its temporary files are found."""
    bench = Bench(Scenario("json", "many", "repair", "kill"), JsonPlace(tmp_path))
    monkeypatch.setattr("recoveryd.daemon.sweeper.finish_interrupted", lambda *_, **__: [])
    monkeypatch.setattr("recoveryd.heal.recorder.finish_interrupted", lambda *_, **__: [])
    wrong = [cell.wrong for cell in bench.cells(every=4)]
    for words in ("a mixture", "pending is left", ".recoveryd-"):
        assert any(words in found for found in wrong)


def test_a_child_that_is_killed_tells_its_steps() -> None:
    def work() -> None:
        for name in "abc":
            failpoint.reach(name)

    assert child.run(work) == child.Ended(("a", "b", "c"), 0)
    assert child.run(work, child.kill_at(1)) == child.Ended(("a", "b"), 9)
    assert failpoint.reach.__module__ == failpoint.__name__
