"""`recoveryd logs`: what the log's files hold, by session, and what is written from then on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

import recoveryd.cli.logs as command
from recoveryd.disk import private_files
from recoveryd.settings import paths
from tests.conftest import Run
from tests.support.trees import Tree

OLD = "2026-01-01 10:00:00.000 INFO watching\n2026-01-01 10:00:01.000 INFO ses_a r1 healed: done\n"
NEW = (
    "2026-01-02 10:00:00.000 ERROR ses_b r2 failed\n    Traceback\n      more of it\n"
    "2026-01-02 10:00:01.000 INFO about ses_ab\n2026-01-02 10:00:02.000 INFO ses_a r3 \x1b[31mred\n"
)


@pytest.fixture
def log(tree: Tree) -> Path:
    """With one that was put aside when it was full."""
    folder = private_files.make_folder(paths.state_dir())
    (folder / "recoveryd.2026-01-01_12-00-00_000000.log").write_text(OLD)
    (folder / "recoveryd.log").write_text(NEW)
    return folder / "recoveryd.log"


@pytest.mark.usefixtures("log")
def test_all_of_it_in_order(run: Run) -> None:
    assert run("logs") == (0, (OLD + NEW).replace("\x1b", "\ufffd"), "")
    assert run("logs", "-n", "1")[1].startswith("2026-01-02 10:00:02.000")
    assert run("logs", "-n", "0")[1] == ""


@pytest.mark.usefixtures("log")
def test_what_is_about_a_session(run: Run) -> None:
    """Entries with all of their lines; an id is no piece of another one."""
    _, out, _ = run("logs", "--session", "ses_a")
    assert [line.split()[4] for line in out.splitlines()] == ["r1", "r3"]
    assert "more of it" in run("logs", "--session", "ses_b")[1]
    assert run("logs", "--session", "ses_ab", "--lines", "9")[1].count("\n") == 1
    code, out, err = run("logs", "--session", "ses_none")
    assert (code, out) == (0, "") and "nothing about ses_none" in err


@pytest.mark.usefixtures("tree")
def test_there_is_none(run: Run) -> None:
    code, out, err = run("logs")
    assert (code, out) == (0, "") and str(paths.log_file(paths.state_dir())) in err
    assert not paths.state_dir().exists()


@pytest.mark.usefixtures("tree")
def test_whoever_waits_for_the_first_line_is_told_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`logs -f` before anything was logged said nothing at all."""
    monkeypatch.setattr(command, "_new", lambda *_: iter([b"2026-01-01 10:00:00.000 INFO watching\n"]))
    code, out, err = run("logs", "-f")
    assert (code, out.endswith("INFO watching\n")) == (0, True)
    assert f"The log says nothing yet; what comes is shown ({paths.log_file(paths.state_dir())})." in err


@pytest.mark.usefixtures("tree")
def test_a_file_stands_where_its_folder_should(run: Run) -> None:
    """It was a traceback."""
    paths.state_dir().parent.mkdir(parents=True, exist_ok=True)
    paths.state_dir().write_text("")
    code, out, err = run("logs")
    assert (code, out) == (1, "") and "can't be read: Not a directory." in err


@pytest.fixture
def follower(log: Path) -> Iterator[Iterator[str]]:
    """What `logs -f -n 1 --session ses_a` prints, line by line; ended, and after a minute in any case."""
    words = [sys.executable, "-m", "recoveryd", "logs", "-f", "-n", "1", "--session", "ses_a"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        clock = Timer(60, process.kill)
        clock.start()
        try:
            assert process.stdout is not None
            yield iter(process.stdout)
        finally:
            clock.cancel()
            process.kill()


@pytest.mark.live
def test_it_goes_on_through_a_change_of_files(log: Path, follower: Iterator[str]) -> None:
    assert "r3" in next(follower)
    with log.open("a") as file:
        file.write("2026-01-03 10:00:00.000 INFO ses_b r4\n2026-01-03 10:00:00.000 INFO ses_a r5\n")
    assert "r5" in next(follower)
    with log.open("a") as file:
        file.write("2026-01-03 10:00:00.000 INFO ses_a r6\n")
        log.rename(log.with_name("recoveryd.2026-01-03_12-00-00_000000.log"))
    log.write_text("2026-01-04 10:00:00.000 INFO ses_a r7\n")
    assert ["r6" in next(follower), "r7" in next(follower)] == [True, True]
