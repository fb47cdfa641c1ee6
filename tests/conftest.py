"""What all tests share: a command line with a home of its own; and where CI asks for it, no test with the client is
skipped. No test in this process speaks to a client that happens to run on the machine."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from loguru import logger

from recoveryd.cli import main
from recoveryd.clients.opencode import processes, server_address
from recoveryd.heal import lifecycle
from recoveryd.settings import paths
from tests.support.trees import Tree

Run = Callable[..., tuple[int, str, str]]  # a command line; its exit code, stdout and stderr
NEEDS_CLIENT = Path(__file__).parent / "e2e"
SLOW = [Path(__file__).parent / name for name in ("bench", "e2e", "fuzz", "live", "soak")]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where slow tests are not asked for, don't even read their folders."""
    return True if collection_path in SLOW and "not slow" in config.option.markexpr else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what stands in the folders of long tests."""
    for item in items:
        if any(folder in item.path.parents for folder in SLOW):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip below tests/e2e becomes a failure under TEST_RECOVERYD_REQUIRED."""
    report = yield
    if report.skipped and os.environ.get("TEST_RECOVERYD_REQUIRED") and NEEDS_CLIENT in item.path.parents:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and here it may not be: {report.longrepr}"
    return report


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A home of its own, with the client's store where the client keeps it."""
    for name in ("DATA", "STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    return Tree(tmp_path / "data")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is folded to COLUMNS, without colours."""
    for name, value in (
        ("FORCE_COLOR", "1"),
        ("TERM", "dumb"),
        ("LINES", "50"),
    ):  # without LINES, COLUMNS is not heeded
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(tree: Tree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(lifecycle, "CONFIRM_S", 0.05)

    def call(*argv: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            code = main(argv)
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture(autouse=True)
def _no_client_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "listeners", list)
    monkeypatch.setattr(server_address, "DEFAULT_URL", "http://127.0.0.1:1")


@pytest.fixture(autouse=True)
def _locks_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Not in the home of whoever runs the tests."""
    place = tmp_path_factory.getbasetemp() / "locks"
    monkeypatch.setattr(paths, "lock_dir", lambda state: place)


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged from INFO on."""
    logged: list[str] = []
    sink = logger.add(lambda text: logged.append(str(text).rstrip("\n")), level="INFO", format="{level} {message}")
    yield logged
    logger.remove(sink)
