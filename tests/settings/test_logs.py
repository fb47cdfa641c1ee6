"""The log: who can read it, what is not in it, and that no text can forge a line."""

from __future__ import annotations

import io
import logging
import os
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from loguru import logger

from recoveryd.core.version import __version__
from recoveryd.daemon.daemon import Daemon
from recoveryd.settings import logs, paths
from tests.conftest import Run


class Terminal(io.StringIO):
    """A stream that keeps what was written to it."""

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Puts back what `setup` changes in the process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logs._QUIETER}
    with warnings.catch_warnings():
        yield
    logging.captureWarnings(capture=False)
    logger.remove()
    logger.configure(patcher=None)
    logger.add(sys.stderr)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, usual in levels.items():
        logging.getLogger(name).setLevel(usual)


@pytest.fixture
def err() -> Terminal:
    return Terminal()


def test_lines_go_to_the_stream_and_to_a_private_file(tmp_path: Path, err: Terminal) -> None:
    path = tmp_path / "recoveryd.log"
    logs.setup("INFO", path, err)
    logger.info("watching {}", "/store")
    logger.debug("not shown")
    (line,) = err.lines()
    assert line[8:] == " INFO    watching /store"
    (line,) = path.read_text().splitlines()
    assert line.endswith(" INFO watching /store")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "note"), [((), ""), (("--dry-run",), ": nothing is written (dry run)")], ids=["", "dry run"]
)
def test_a_run_logs_that_it_starts_and_that_it_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], note: str
) -> None:
    monkeypatch.setattr(Daemon, "run", lambda *_, **__: None)
    assert run("run", *words)[0] == 0
    first, last = (line.partition(" INFO ")[2] for line in paths.log_file(paths.state_dir()).read_text().splitlines())
    assert (first, last) == (f"recoveryd {__version__} starts (pid {os.getpid()}){note}", "recoveryd ends")


def test_a_run_that_ends_by_a_fault_says_so_in_the_log_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object, **__: object) -> None:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(Daemon, "run", fault)
    assert run("run")[0] == 1
    log = paths.log_file(paths.state_dir()).read_text()
    assert " ERROR recoveryd ends by a fault of its own\n" in log
    assert log.endswith("RuntimeError: nobody thought of this\n")


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path, err: Terminal) -> None:
    path = tmp_path / "recoveryd.log"
    path.write_text("old\n")
    path.chmod(0o644)
    logs.setup("INFO", path, err)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "old\n"


def test_the_file_is_rotated_and_few_are_kept(tmp_path: Path, err: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_ROTATE", "1 KB")
    logs.setup("INFO", tmp_path / "recoveryd.log", err)
    for _ in range(20):
        logger.info("x" * 600)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 1 + 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_setting_up_twice_logs_once(tmp_path: Path, err: Terminal) -> None:
    logs.setup("INFO", tmp_path / "a.log", Terminal())
    logs.setup("WARNING", tmp_path / "b.log", err)
    logger.info("quiet")
    logger.warning("once")
    assert len(err.lines()) == 1
    assert (tmp_path / "a.log").read_text() == ""
    assert (tmp_path / "b.log").read_text().count("once") == 1


def test_a_file_that_can_not_be_written_is_said_and_costs_nothing_else(tmp_path: Path, err: Terminal) -> None:
    logs.setup("INFO", tmp_path, err)
    logger.info("on")
    first, second = err.lines()
    assert f"The log file {tmp_path} can't be written (Is a directory)" in first
    assert second.endswith("on")


def test_on_a_full_disk_that_is_said_once_and_the_file_goes_on_once_there_is_room(
    tmp_path: Path, err: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, room = tmp_path / "recoveryd.log", {"f_bavail": 0, "f_bfree": 0}
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_blocks=9999, f_frsize=4096, **room))
    logs.setup("INFO", path, err)
    logger.info("one")
    room.update(f_bavail=9999, f_bfree=9999)
    logger.info("two")
    room.update(f_bavail=0, f_bfree=0)
    logger.info("three")
    logger.info("four")
    told = "recoveryd.log can't be written (no room is left on its disk, or in your quota); this is all there is."
    lines = err.lines()
    assert [told in line for line in lines] == [True, False, False, False, True, False]
    assert [line.split()[-1] for line in lines if told not in line] == ["one", "two", "three", "four"]
    assert [line.split()[-1] for line in path.read_text().splitlines()] == ["two"]


def open_full() -> io.FileIO:
    return io.FileIO("/dev/full", "w")


def test_a_quota_that_is_used_up_is_said_once_and_is_no_traceback(
    tmp_path: Path, err: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sizes of the disk do not tell it."""
    path = tmp_path / "recoveryd.log"
    logs.setup("INFO", path, err)
    with monkeypatch.context() as used_up:
        used_up.setattr("tempfile.TemporaryFile", lambda **_: open_full())
        logger.info("one")
        logger.info("two")
    logger.info("three")
    told = "recoveryd.log can't be written (no room is left on its disk, or in your quota); this is all there is."
    lines = err.lines()
    assert [told in line for line in lines] == [False, True, False, False]
    assert [line.split()[-1] for line in lines if told not in line] == ["one", "two", "three"]
    assert [line.split()[-1] for line in path.read_text().splitlines()] == ["three"]
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python says what was not written, too
def test_it_is_set_up_anew_where_what_is_left_of_a_line_can_not_be_written(
    tmp_path: Path, err: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recoveryd.log"
    monkeypatch.setattr(logs, "_opened", lambda *_: os.open("/dev/full", os.O_WRONLY))
    path.touch()
    logs.setup("INFO", path, Terminal())
    logger.info("the disk fills up in the middle of this")
    monkeypatch.undo()
    logs.setup("INFO", path, err)
    logger.info("on")
    assert [line.split()[-1] for line in (*err.lines(), *path.read_text().splitlines())] == ["on", "on"]


def test_no_text_can_start_a_line_or_colour_one(tmp_path: Path, err: Terminal) -> None:
    path = tmp_path / "recoveryd.log"
    logs.setup("INFO", path, err)
    logger.info("title {}", "a\n12:00:00 ERROR b\r\x1b[31m\u202e\x9b {level} <red> \ud83d")
    for text in (err.getvalue(), path.read_text()):
        first, second = text.splitlines()
        assert first.endswith("title a")
        assert second == "    12:00:00 ERROR b\\r\\x1b[31m\\u202e\\x9b {level} <red> \\ud83d"


def test_an_exception_shows_no_variables(err: Terminal) -> None:
    logs.setup("INFO", None, err)

    def fail(secret: str) -> None:
        raise ValueError("{odd} format")

    try:
        fail("hunter" + "2")
    except ValueError:
        logger.exception("session {}: a fault", "ses_1")
    assert "ValueError: {odd} format" in err.getvalue()
    assert "hunter2" not in err.getvalue()


def test_the_standard_library_logs_here_too(err: Terminal) -> None:
    logs.setup("INFO", None, err)
    logging.getLogger("some.library").warning("%s and {braces}", "percent")
    logging.getLogger("some.library").debug("not shown")
    logging.getLogger("watchdog.observers").info("event for /private/path")
    logging.getLogger("watchdog.observers").warning("limit reached")
    logging.getLogger("desktop_notifier.backends").error("Notification failed")
    assert [line[8:] for line in err.lines()] == [" WARNING percent and {braces}", " WARNING limit reached"]


def test_an_event_for_a_watch_that_was_just_taken_away_is_no_error(err: Terminal) -> None:
    logs.setup("INFO", None, err)
    library = logging.getLogger("watchdog.observers.inotify")
    library.error("InotifyEmitter.queue_events() called when the thread is inactive")
    library.error("anything else")
    assert [line[8:] for line in err.lines()] == [" ERROR   anything else"]


def test_at_debug_the_events_of_watchdog_stay_out(err: Terminal) -> None:
    logs.setup("DEBUG", None, err)
    logging.getLogger("watchdog.observers").debug("in-event")
    logging.getLogger("some.library").debug("shown")
    assert [line[8:] for line in err.lines()] == [" DEBUG   shown"]


def test_warnings_are_lines_and_those_of_watchdog_are_none(err: Terminal) -> None:
    logs.setup("INFO", None, err)
    warnings.simplefilter("always", UserWarning)
    warnings.warn_explicit("x" * 1000, RuntimeWarning, "inotify_c.py", 1, module="watchdog.observers.inotify_c")
    warnings.warn_explicit("Callback with id '1' does not exist", RuntimeWarning, "threading.py", 1, module="threading")
    assert err.lines() == []
    warnings.warn("mind this", UserWarning, stacklevel=1)
    assert "UserWarning: mind this" in err.getvalue()


@pytest.mark.live
def test_the_journal_gets_priorities_instead_of_times(tmp_path: Path) -> None:
    code = (
        "import os, sys; s = os.fstat(2); os.environ['JOURNAL_STREAM'] = f'{s.st_dev}:{s.st_ino}';"
        "from recoveryd.settings import logs; from loguru import logger; logs.setup('DEBUG');"
        "logger.debug('d'); logger.info('i'); logger.warning('w'); logger.error('e')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr.splitlines() == ["<7>d", "<6>i", "<4>w", "<3>e"]


def test_the_log_file_is_not_inherited_by_commands(tmp_path: Path, err: Terminal) -> None:
    path = tmp_path / "recoveryd.log"
    logs.setup("INFO", path, err)
    logger.info("open now")
    fds = [fd for fd in Path("/proc/self/fd").iterdir() if fd.resolve() == path.resolve()]
    assert fds
    assert not any(os.get_inheritable(int(fd.name)) for fd in fds)


def test_the_screen_may_have_another_level_than_the_file(tmp_path: Path) -> None:
    for shown, seen in (("DEBUG", ["a", "b", "c"]), ("WARNING", ["c"]), (None, ["b", "c"])):
        err, path = io.StringIO(), tmp_path / f"{shown}.log"
        logs.setup("INFO", path, err, shown)
        logger.debug("a")
        logger.info("b")
        logger.warning("c")
        assert [line.split()[-1] for line in err.getvalue().splitlines()] == seen
        assert [line.split()[-1] for line in path.read_text().splitlines()] == ["b", "c"]


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_logged_once_the_file_was_removed_is_in_a_new_one(tmp_path: Path, err: Terminal, what: str) -> None:
    path = tmp_path / "state" / "recoveryd.log"
    logs.setup("INFO", path, err)
    logger.info("before")
    path.unlink()
    if what == "folder":
        path.parent.rmdir()
    logger.info("after")
    assert path.read_text().split()[-1] == "after"
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
