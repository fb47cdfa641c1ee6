"""The user's own commands: what they get, and that nothing they do changes anything."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loguru import logger

from recoveryd.core.model import Event, Kind, Outcome
from recoveryd.settings import Hooks
from recoveryd.tell.callbacks import Callbacks
from recoveryd.tell.hooks import Commands, event_document, run_hook

EVENT = Event(
    "r1", "/s", "ses_1", "A title \udc80", "msg_1", Kind.EMPTY_CONTENT, Outcome.HEALED, "Filled 1 gap", ("placeholder",)
)


KEEPS = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"


@pytest.fixture
def log() -> Iterator[list[str]]:
    lines: list[str] = []
    sink = logger.add(lambda message: lines.append(str(message)), format="{message}")
    yield lines
    logger.remove(sink)


def python(code: str, *more: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *more)


def test_a_command_gets_the_event_as_json_on_stdin_and_no_content(tmp_path: Path) -> None:
    out = tmp_path / "got"
    commands = Commands(Hooks(on_complete=python(KEEPS, str(out))))
    assert commands.callbacks.on_complete is not None
    commands.callbacks.on_complete(EVENT)
    commands.close(10)
    got = json.loads(out.read_text())
    assert got == {**event_document(EVENT)}
    assert (got["event"], got["session"], got["kind"], got["outcome"]) == (
        "complete",
        "ses_1",
        "empty_content",
        "healed",
    )
    assert "changes" not in got


def test_on_abort_has_ended_when_the_repair_begins(tmp_path: Path) -> None:
    out = tmp_path / "got"
    hooks = Hooks(on_abort=python(KEEPS, str(out)))
    callbacks = Commands(hooks).callbacks
    assert callbacks.on_complete is None
    assert callbacks.on_abort is not None
    callbacks.on_abort("ses_1")
    assert json.loads(out.read_text()) == {"event": "abort", "session": "ses_1"}


def test_there_is_no_shell(tmp_path: Path) -> None:
    out = tmp_path / "got"
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    assert run_hook("on_complete", python(code, str(out), "$(id); `id` | cat"), {}, 10)
    assert out.read_text() == "$(id); `id` | cat"


def test_what_it_prints_is_in_the_log_made_safe(log: list[str]) -> None:
    code = "import sys; print('done \\x1b[31mred\\u202e'); print('wrong', file=sys.stderr); print('y' * 9999)"
    assert run_hook("on_complete", python(code), {}, 10)
    text = "".join(log)
    assert "on_complete: done [31mred" in text
    assert "on_complete: wrong" in text
    assert "\x1b" not in text and "\u202e" not in text
    assert max(len(line) for line in log) < 400


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("/nowhere/command",), "could not be started"),
        (("nul\0",), "could not be started"),
        (python("raise SystemExit(3)"), "ended with 3"),
        (python("import os; os.kill(os.getpid(), 9)"), "ended by signal 9"),
    ],
)
def test_one_that_fails_is_said_and_changes_nothing(argv: tuple[str, ...], said: str, log: list[str]) -> None:
    assert not run_hook("on_abort", argv, {}, 10)
    assert said in "".join(log)


@pytest.mark.live
def test_one_that_hangs_is_killed_with_its_children(tmp_path: Path, log: list[str]) -> None:
    pid = tmp_path / "pid"
    code = (
        "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']);"
        "open(sys.argv[1], 'w').write(str(p.pid)); time.sleep(60)"
    )
    before = time.monotonic()
    assert not run_hook("on_complete", python(code, str(pid)), {}, 1.0)
    assert time.monotonic() - before < 5
    assert "did not end in 1 seconds" in "".join(log)
    until(lambda: not _runs(int(pid.read_text())))


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc")
def test_a_child_it_leaves_behind_holds_nothing_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = "import subprocess, sys; p = subprocess.Popen(['sleep', '60']); open(sys.argv[1], 'w').write(str(p.pid))"
    before = time.monotonic()
    assert run_hook("on_complete", python(code, str(pid)), {}, 10)
    assert time.monotonic() - before < 5
    os.kill(int(pid.read_text()), 9)


def test_a_slow_one_holds_up_neither_the_daemon_nor_its_end(tmp_path: Path, log: list[str]) -> None:
    pid = tmp_path / "pid"
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    commands = Commands(Hooks(on_complete=python(code, str(pid))))
    on_complete = commands.callbacks.on_complete
    assert on_complete is not None
    before = time.monotonic()
    for _ in range(1003):
        on_complete(EVENT)
    until(lambda: pid.exists() and pid.read_text())
    commands.close(0.2)
    assert time.monotonic() - before < 10
    until(lambda: not _runs(int(pid.read_text())))
    until(lambda: not any(thread.name == "hooks" for thread in threading.enumerate()))
    assert "wait for it already" in "".join(log)
    assert "recoveryd is stopping" in "".join(log)


def test_callbacks_one_after_the_other() -> None:
    said: list[str] = []

    def fails(_: object) -> None:
        said.append("first")
        raise RuntimeError

    both = Callbacks(on_abort=fails).then(Callbacks(on_abort=said.append, on_complete=lambda e: said.append(e.id)))
    assert both.on_abort is not None and both.on_complete is not None
    both.on_abort("ses_1")
    both.on_complete(EVENT)
    assert said == ["first", "ses_1", "r1"]


def test_a_disk_with_no_room_for_one_event_does_not_end_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    out, full = tmp_path / "got", [OSError(28, "No space left on device")]
    real = tempfile.TemporaryFile

    def temporary() -> object:
        if full:
            raise full.pop()
        return real()

    monkeypatch.setattr(tempfile, "TemporaryFile", temporary)
    commands = Commands(Hooks(on_complete=python(KEEPS, str(out))))
    assert commands.callbacks.on_complete is not None
    commands.callbacks.on_complete(EVENT)
    commands.callbacks.on_complete(EVENT)
    commands.close(10)
    assert json.loads(out.read_text())["id"] == "r1"
    assert "No space left" in "".join(log)
