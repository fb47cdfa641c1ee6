"""`recoveryd demo`: the real daemon on a throw-away store, and nothing of the user's."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.core.model import Event, Kind, Outcome
from recoveryd.demo.broken_sessions import Example, examples
from recoveryd.demo.demo import Demo, Row
from tests.cli.contract import faults
from tests.support.refused import kind_of, position_of
from tests.support.terminal import headings_without_content, in_terminal

SEEDS = {
    Kind.TOOL_RESULT_MISSING,
    Kind.THINKING_BLOCK_ORDER,
    Kind.THINKING_DISABLED_VIOLATION,
    Kind.THINKING_SIGNATURE_INVALID,
    Kind.THINKING_BLOCK_MODIFIED,
    Kind.THINKING_FINAL_BLOCK,
    Kind.EMPTY_CONTENT,
    Kind.ROLE_ORDER,
    Kind.REASONING_ITEM,  # a thread of Codex
}
COMMAND = [sys.executable, "-m", "recoveryd", "demo"]
BROKEN = [example for example in examples(1_790_000_000_000) if example.error]


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    """An empty home, and a temporary folder to find leftovers in."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "TEST_RECOVERYD_LOCKS")}
    return {**kept, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}


def left_behind(env: Mapping[str, str]) -> list[Path]:
    return [*Path(env["HOME"]).rglob("*"), *Path(env["TMPDIR"]).rglob("*")]


@pytest.mark.slow
def test_json_tells_of_each_session_that_it_was_healed_or_left_alone(env: Mapping[str, str]) -> None:
    """One of each seed kind, two controls, one undo; the home stays empty and the store is gone."""
    done = subprocess.run([*COMMAND, "--json"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert faults("demo", rows) == []
    assert {row["kind"] for row in rows} == SEEDS | {None}
    assert [row["state"] for row in rows if row["kind"]] == ["healed"] * len(SEEDS)
    assert [row["state"] for row in rows if not row["kind"]] == ["untouched"] * 2
    assert [row["undone"] for row in rows].count(True) == 1
    assert all(row["ms"] > 0 and row["ratio"] is not None and row["recovery"] for row in rows if row["kind"])
    assert left_behind(env) == []


@pytest.mark.slow
def test_without_a_terminal_it_is_plain_lines(env: Mapping[str, str]) -> None:
    """No control characters; a settings file and variables of the user's that are broken change nothing."""
    config = Path(env["HOME"], ".config", "recoveryd", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text("no such key = 1")
    done = subprocess.run(COMMAND, env={**env, "RECOVERYD_NONSENSE": "1"}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "\x1b" not in done.stdout
    reads_well(done.stdout)
    assert len([line for line in lines if line.startswith("healed ")]) == len(SEEDS)
    assert len([line for line in lines if line.startswith("untouched ")]) == 2
    assert "byte for byte" in done.stdout
    assert "times the floor" in done.stdout
    assert "recoveryd run" in lines[-1]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 50])
def test_in_a_terminal_every_heading_has_its_content(env: Mapping[str, str], columns: int) -> None:
    shown = in_terminal("demo", whole=True, columns=columns, **env)
    assert shown.code == 0
    reads_well(shown.text)
    assert left_behind(env) == []


def reads_well(text: str) -> None:
    """What a person looks for: the repair as a diff below the words that announce it, and what to do next."""
    assert headings_without_content(text) == []
    (heading,) = re.finditer(r"as\s+`recoveryd\s+show`\s+would:\n", text)
    shown = text[heading.end() :].split("\n\n")[0].splitlines()
    assert shown[0].startswith("--- part/")
    assert '-  "text": "\\n\\n"' in shown and '+  "text": "[user interrupted]",' in shown
    assert "It was undone" in text and "Median" in text
    assert "recoveryd scan" in text.split("Next:")[1]


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_nothing_behind(env: Mapping[str, str], number: int) -> None:
    """Ctrl-C in the midst of it: the throw-away folder goes all the same."""
    heard = partial(signal.signal, number, signal.SIG_DFL)  # who runs the tests in the background has it ignored
    pipe = subprocess.PIPE
    running = subprocess.Popen(COMMAND, env=env, stdout=pipe, stderr=pipe, text=True, preexec_fn=heard)
    deadline = time.monotonic() + 20
    while not list(Path(env["TMPDIR"]).glob("*/state/ledger.db")) and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(number)
    _, said = running.communicate(timeout=20)
    assert running.returncode == 128 + number
    assert "Traceback" not in said
    assert left_behind(env) == []


@pytest.mark.parametrize("example", BROKEN, ids=lambda example: example.title)
def test_the_errors_are_classified_as_what_was_broken(example: Example) -> None:
    assert kind_of(example.error) is example.kind


@pytest.mark.parametrize("example", BROKEN, ids=lambda example: example.title)
def test_a_broken_session_is_stuck_in_the_eyes_of_the_store(tmp_path: Path, example: Example) -> None:
    example.plant(tmp_path)
    store = OpencodeFiles(tmp_path)
    assert store.look(example.id).failure is None
    example.fail(tmp_path, int(time.time() * 1000))
    failure = store.look(example.id).failure
    assert failure is not None
    assert failure.message == example.failed
    assert kind_of(failure.error) is example.kind


def test_positions_in_the_errors_are_those_of_the_request() -> None:
    named = {example.kind: position_of(example.error) for example in BROKEN}
    assert named[Kind.THINKING_BLOCK_MODIFIED] == (3, 0)
    assert named[Kind.THINKING_SIGNATURE_INVALID] == (1, 0)
    assert named[Kind.THINKING_FINAL_BLOCK] == (1, None)


def test_what_is_not_healed_is_a_problem_that_is_named() -> None:
    """A heal of another kind, or any other outcome, is none."""
    (example,) = (e for e in BROKEN if e.kind is Kind.EMPTY_CONTENT)
    run = Demo([Row(example)])
    for kind, outcome in ((Kind.ROLE_ORDER, Outcome.HEALED), (Kind.EMPTY_CONTENT, Outcome.REFUSED)):
        event = Event("r1", "", example.id, "", example.failed, kind, outcome, "What was said.")
        run.take(event)
        assert run.problems() == ["Write the changelog: What was said."]
        assert run.example() is None
    run.take(Event("r1", "", example.id, "", example.failed, example.kind, Outcome.HEALED, "Filled it"))
    assert run.problems() == []
    assert run.example() is run.rows[0]
