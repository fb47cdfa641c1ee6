"""What commands leave behind: nothing, where they only read; and no traceback, where nobody can read them."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from recoveryd.cli import main
from recoveryd.settings import paths
from tests.conftest import Run
from tests.support.build import SessionBuilder, write_sqlite
from tests.support.database import OLD, Base
from tests.support.parts import api_error, text, tool
from tests.support.terminal import kept
from tests.support.trees import MISSING, Tree

READING = (
    ("scan",),
    ("scan", "--json"),
    ("scan", "--repair", "--dry-run"),
    ("scan", "--session", "SESSION"),
    ("explain", "--session", "SESSION"),
    ("explain", "too many requests"),
    ("history",),
    ("history", "--stats"),
    ("show", "rnone"),
    ("report", "SESSION"),
    ("report", "rnone"),
    ("status",),
    ("logs",),
    ("metrics",),
    ("stop",),
    ("doctor",),
    ("config", "show"),
    ("config", "check"),
    ("ignore",),
    ("undo", "rnone"),
    ("ledger", "prune", "--keep-days", "0", "--dry-run"),
    ("ledger", "forget", "SESSION", "--dry-run"),
    ("ledger", "export", "rnone"),
)
# Each is a process or three: in the quick tests one stands for all.
ALSO_FULL, ALSO_CLOSED = ("scan", "scan --json", "doctor", "man"), ("scan", "scan --json")
FULL = "recoveryd: The output can't be written: No space left on device."


@pytest.fixture
def stuck(tree: Tree, tmp_path: Path) -> str:
    """A session in a tree of files; a database in WAL mode is beside it, as its client left it."""
    base = Base(tmp_path / "data" / "opencode" / "opencode.db", OLD)
    session = SessionBuilder(1_790_000_000_000)
    session.user("go")
    session.assistant(tool(), text("behind"))
    session.failed("continue", api_error(MISSING, 400))
    write_sqlite(session.planted(), base.path)
    return tree.stuck()


@pytest.mark.parametrize("argv", READING, ids=" ".join)
def test_what_only_reads_creates_no_file_and_no_folder(
    run: Run, stuck: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = kept(tmp_path)
    run(*(stuck if word == "SESSION" else word for word in argv))
    assert kept(tmp_path) == before
    assert not paths.state_dir().exists()


@pytest.mark.live
def test_nor_where_there_is_a_ledger(run: Run, stuck: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads it in the usual way would leave -wal and -shm if it was cut off; a ledger is left as it is."""
    monkeypatch.chdir(tmp_path)
    run("scan", "--repair")
    state = set(kept(paths.state_dir()))
    for argv in READING:
        run(*(stuck if word == "SESSION" else word for word in argv))
        assert set(kept(paths.state_dir())) == state, argv


@pytest.mark.live
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("argv", ["history", *(pytest.param(argv, marks=pytest.mark.slow) for argv in ALSO_FULL)])
def test_a_full_disk_is_one_line(stuck: str, argv: str, buffered: bool) -> None:
    how = [] if buffered else ["-u"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, *how, "-m", "recoveryd", *argv.split()], stdout=full, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr.decode().strip()) == (1, FULL)


@pytest.mark.parametrize("argv", [["--help"], ["help", "scan"], ["--version"]])
def test_help_that_can_not_be_written_is_said(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unbuffered, as in most containers: argparse is silent there."""
    raw = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
    with io.TextIOWrapper(raw, write_through=True) as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        code = main(argv)
    assert (code, capsys.readouterr().err.strip()) == (1, FULL)


@pytest.mark.live
@pytest.mark.parametrize("argv", ["--help", *(pytest.param(argv, marks=pytest.mark.slow) for argv in ALSO_CLOSED)])
def test_a_closed_stream_is_silence(stuck: str, argv: str) -> None:
    program = f"{sys.executable} -m recoveryd {argv}"
    for shell in (f"{program} </dev/null | true", f"{program} <&- >&-", f"{program} <&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", shell], capture_output=True)
        assert (done.stdout, done.stderr) == (b"", b""), shell
        assert done.returncode == (1 if argv.startswith("scan") and "|" not in shell else 0), shell


@pytest.mark.live
def test_a_pipe_that_is_closed_behind_a_text_is_silence() -> None:
    program = f"{sys.executable} -m recoveryd explain -"
    done = subprocess.run(["sh", "-c", f"echo prompt is too long | {program} | true"], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
