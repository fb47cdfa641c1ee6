"""A repair made right after the error survives the client's own clean-up.

A turn that failed is not over when its error is written: the client goes on to clear the outputs of old tools. Each of
these sessions has some for it to clear, most of them in the very message that is broken.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recoveryd.core.model import Change
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings.paths import ledger_file
from tests.e2e.daemon import Daemon, healing
from tests.e2e.harness import Harness, Outcome
from tests.e2e.install import UnavailableError
from tests.support.build import Planted, SessionBuilder
from tests.support.parts import Part, reasoning, text, tool

RUNS = int(os.environ.get("TEST_RECOVERYD_SETTLE", "200"))

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120 + 2 * RUNS)]

# Behind the last two questions the client spares 40,000 tokens of outputs (four characters each), and clears what is
# older if that is 20,000 tokens or more.
SPARED, CLEARED = "x" * 170_000, "y" * 45_000
# A second of quiet, in which the daemon reads back, and some more.
CONFIRMED = 1.5

# What a message holds beside the outputs that are to be cleared; each is refused, and repaired in another way.
FAULTS: dict[str, tuple[bool, tuple[Part, ...]]] = {
    "a text behind a tool": (False, (tool(output="short"), text("behind"))),
    "a blank text": (False, (text(" \n"),)),
    "forged thinking": (True, (reasoning("a plan", "forged"), text("a word"))),
    "a name with a space, in what is cleared": (False, (tool("my tool", output=CLEARED),)),
    "thinking between": (True, (reasoning("a plan"), tool(output="short"), reasoning("late"), text("so"))),
}


def _session(number: int) -> tuple[Planted, bool, set[str]]:
    """A session, how to prompt it, and the tool parts that the client is going to clear."""
    name = list(FAULTS)[number % len(FAULTS)]
    thinking, parts = FAULTS[name]
    built = SessionBuilder(title=f"{name} {number}")
    built.user("go")
    outputs = [tool(output=CLEARED), tool(output=CLEARED)]
    broken = built.assistant(*outputs, *parts) if number % 3 == 0 else built.assistant(*parts, *outputs, finish="stop")
    old = {part["id"] for part in built.parts[broken["id"]] if part["type"] == "tool"}
    built.assistant(tool(output=SPARED))
    built.assistant("done")
    for question in ("one", "two"):
        built.user(question)
        built.assistant("fine")
    return built.planted(), thinking, old


@dataclass(repr=False)
class Run:
    """One session: refused, healed, and read again when the daemon had confirmed it and the client was long done."""

    planted: Planted
    refused: Outcome
    entries: list[dict[str, Any]]
    lost: list[str]
    cleared: int
    again: Outcome


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Run]]:
    root = tmp_path_factory.mktemp("settle")
    try:
        with healing(root, bound=True) as (harness, daemon):
            yield _play(harness, daemon)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _play(harness: Harness, daemon: Daemon) -> list[Run]:
    planned = [_session(number) for number in range(RUNS)]
    refused = []
    for planted, thinking, _ in planned:
        harness.plant(planted)
        refused.append(harness.prompt(planted.id, thinking=thinking))
    daemon.wait_settled(planted.id for planted, _, _ in planned)
    time.sleep(CONFIRMED)
    history = daemon.by_session()
    runs = []
    with Ledger(ledger_file(daemon.state)) as ledger:
        for (planted, thinking, old), first in zip(planned, refused, strict=True):
            entries = history.get(planted.id, [])
            changes = [change for entry in entries for change in ledger.changes(entry["id"])]
            lost = [change.key for change in changes if _now(harness.client.storage, change) != change.after]
            cleared = sum(_cleared(harness.client.storage, planted, part) for part in old)
            again = harness.prompt(planted.id, thinking=thinking)
            runs.append(Run(planted, first, entries, lost, cleared, again))
    return runs


def _now(storage: Path, change: Change) -> bytes | None:
    path = storage / change.key
    return path.read_bytes() if path.exists() else None


def _cleared(storage: Path, planted: Planted, part: str) -> bool:
    message = next(m for m, parts in planted.parts.items() if any(p["id"] == part for p in parts))
    stored = json.loads((storage / "part" / message / f"{part}.json").read_bytes())
    return bool(stored["state"].get("time", {}).get("compacted"))


def test_the_client_did_clean_up(runs: list[Run]) -> None:
    """Else there was nothing to survive: every session was refused, and had old outputs cleared behind the error."""
    assert len(runs) == RUNS
    assert [run.planted.session["title"] for run in runs if [r.status for r in run.refused.requests] != [400]] == []
    assert [run.planted.session["title"] for run in runs if run.cleared < 2] == []


def test_no_repair_is_lost(runs: list[Run]) -> None:
    """All that the ledger says was written is there, byte for byte."""
    outcomes = {run.planted.session["title"]: [entry["outcome"] for entry in run.entries] for run in runs}
    assert {title: outcome for title, outcome in outcomes.items() if outcome != ["healed"]} == {}
    assert {run.planted.session["title"]: run.lost for run in runs if run.lost} == {}


def test_every_session_goes_on(runs: list[Run]) -> None:
    said = {
        run.planted.session["title"]: [r.refused for r in run.again.requests] for run in runs if not run.again.accepted
    }
    assert said == {}
