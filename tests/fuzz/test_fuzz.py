"""The short form of `python -m tests.fuzz`, what it would catch, the memory that one session can cost, and bombs."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.core.model import Event, Kind, Outcome
from recoveryd.tell.event_words import headline
from recoveryd.tell.failure_words import remedy
from tests.fuzz.memory import BOUND_MIB, peak
from tests.fuzz.run import run
from tests.support.build import SessionBuilder, api_error, write_tree
from tests.support.cases import notice
from tests.support.refused import kind_of


def test_hostile_sessions_break_nothing(tmp_path: Path) -> None:
    report = run(72, 7, tmp_path)
    assert report.broken == []
    assert report.inputs == 72 == sum(report.tally.outcomes.values())
    assert report.tally.outcomes["healed, undone"] > 10  # it comes as far as that
    assert report.tally.outcomes["not read"] > 2
    assert list(tmp_path.iterdir()) == []


def test_what_breaks_is_found_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two faults put in: an exception of the program's own, and an undo that puts nothing back."""

    def fault(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("recoveryd.heal.undo._write", lambda *_, **__: None)
    monkeypatch.setattr("tests.fuzz.drive.read_error", fault)
    report = run(60, 7, tmp_path)
    assert any("ZeroDivisionError" in line for line in report.broken)
    assert any("is not as it was" in line for line in report.broken)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("case", "outcome", "least"),
    [
        ("file of 100 MB", "failed", 0),
        ("file of 60 MB, of 20 million lists", "failed", 60),
        ("file of 60 MB", "healed", 120),
    ],
)
def test_the_memory_for_one_session_is_bounded(tmp_path: Path, case: str, outcome: str, least: float) -> None:
    mib, _, became = peak(case, tmp_path)
    assert became == outcome
    assert least < mib < BOUND_MIB


@pytest.mark.parametrize("unit", ["messages.1.content.", "\\", "[", '{"a":', "tool_use ids were found "])
def test_a_bomb_goes_all_the_way_from_the_store_to_the_report_at_once(tmp_path: Path, unit: str) -> None:
    """A million characters cost what some passes over them do: a ratio to one, in this process. It is read anew."""
    session = SessionBuilder(int(time.time() * 1000) - 60_000)
    session.user("go")
    session.assistant("fine")
    took, floor = [], []
    for run_ in range(3):
        floor.append(_floor())
        session.failed("continue", api_error(f"{unit * (1_000_000 // len(unit))}{run_}", 400))
        write_tree(session.planted(), tmp_path)
        start = time.process_time()
        failure = OpencodeFiles(tmp_path).look(session.session["id"]).failure
        assert failure is not None
        kind = kind_of(failure.error)
        event = Event("r1", "s", failure.session, "", failure.message, kind, Outcome.NOT_UNDERSTOOD, remedy(kind))
        toast = notice(event)
        assert all([headline(event), toast.title, toast.body])
        took.append(time.process_time() - start)
    assert min(took) < 150 * min(floor)  # what is quadratic takes 100,000
    assert kind in (None, *Kind)


def _floor() -> float:
    """Seconds of the processor to parse a million characters of JSON and to pass over them with one pattern."""
    text = json.dumps({"text": "a b" * 333_333})
    start = time.process_time()
    assert re.search("c d", json.loads(text)["text"]) is None
    return time.process_time() - start
