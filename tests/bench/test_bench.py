"""The measurements run and say what they say in the promised form. Never how long anything takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench.__main__ import PARTS, PUBLISHED, published
from tests.bench.picture import CHARTS, svg
from tests.bench.sizes import Point

SMALL = ["--quick", "--runs", "2", "--at-once", "6", "--sessions", "6", "--idle", "0.5", "--megabytes", "2"]
SMALL += ["--stream", "0.5", "--rollouts", "3"]
SIZE = ["--sizes", "3", "--runs", "2", "--picture"]
KEYS = {"name", "unit", "value", "floor", "floor_is", "ratio", "limit", "limit_of", "holds", "more", "lines"}
FIGURES = {"detect_to_durable", "sessions_at_once", "first_start", "start_unchanged", "idle_wake_ups", "idle_rss"}
FIGURES |= {
    "rollouts_start",
    "rollouts_failure",
    "plan_of_a_long_session",
    "plan_that_clears_outputs",
    "failure_beside_streams",
}
DATABASE = {"start", "start_reads", "failure", "failure_reads", "stream", "stream_long", "plans"}
FIGURES |= {f"database_{name}{mark}" for name in DATABASE for mark in ("", "_no_events")}


@pytest.mark.timeout(300)  # of seven measurements, on a machine that does other things beside
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


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_the_picture_is_made_by_the_same_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bench", *SIZE, str(tmp_path / "a.svg"), "--dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [(point["store"], point["sessions"]) for point in data["sizes"]] == [("files", 3), ("database", 3)]
    assert all(value > 0 for point in data["sizes"] for value in point.values() if not isinstance(value, str))
    ElementTree.parse(tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_a_picture_has_a_chart_for_each_measure_and_a_mark_for_each_point() -> None:
    points = [Point(store, size, 160, 2, 6, 42, 0.4) for store in ("files", "database") for size in (10, 1000)]
    drawn = ElementTree.fromstring(svg(points))
    texts = [text.text for text in drawn.iter() if text.tag.endswith("text")]
    assert {f"{chart.title} ({chart.unit})" for chart in CHARTS} <= set(texts)
    marks = [mark for mark in drawn.iter() if mark.tag.endswith("circle")]
    assert len(marks) == len(points) * len(CHARTS) + 2  # and the legend's
    places = [(float(mark.attrib["cx"]), float(mark.attrib["cy"])) for mark in marks]
    assert all(0 < x < 360 * 2 and 0 < y < 500 for x, y in places)


def test_what_is_published_of_a_part_is_shown_beside_it() -> None:
    page = PUBLISHED.read_text(encoding="utf-8")
    named = {part for part in PARTS if f"`python -m tests.bench --only {part}`" in page}
    assert named == {part for part in PARTS if list(published(part))} and "storm" in named
    assert page.count("tests.bench --only") == sum(len(list(published(part))) for part in PARTS)
