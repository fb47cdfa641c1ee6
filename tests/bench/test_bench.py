"""The measurements run and say what they say in the promised form. Never how long anything takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SMALL = ["--quick", "--runs", "2", "--at-once", "6", "--sessions", "6", "--idle", "0.5", "--megabytes", "2"]
SMALL += ["--stream", "0.5"]
KEYS = {"name", "unit", "value", "floor", "floor_is", "ratio", "limit", "limit_of", "holds", "more", "lines"}
FIGURES = {"detect_to_durable", "sessions_at_once", "first_start", "start_unchanged", "idle_wake_ups", "idle_rss"}
DATABASE = {"start", "start_reads", "failure", "failure_reads", "stream", "stream_long", "plans"}
FIGURES |= {f"database_{name}{mark}" for name in DATABASE for mark in ("", "_no_events")}


@pytest.mark.skipif(sys.platform != "linux", reason="memory and wake-ups are read from /proc")
def test_one_command_measures_everything_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bench", *SMALL, "--dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data.keys() == {"version", "machine", "quick", "figures"}
    assert {figure["name"] for figure in data["figures"]} == FIGURES
    for figure in data["figures"]:
        assert figure.keys() == KEYS
        assert figure["value"] >= 0
        assert isinstance(figure["holds"], bool)
    for plans in (figure for figure in data["figures"] if figure["name"].startswith("database_plans")):
        assert plans["value"] == 0, plans["lines"]
        assert len(plans["lines"]) == plans["more"]["of"] > 0
    once = next(figure for figure in data["figures"] if figure["name"] == "sessions_at_once")["more"]
    assert once["most_repairs_of_one"] == once["most_writes_of_one"] == 1
    assert list(tmp_path.iterdir()) == []
