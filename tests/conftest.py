"""Where the environment asks for it (CI), a test that needs the real client may not be skipped.

No test in this process speaks to a client that happens to run on the machine.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from recoveryd import client_line, processes

NEEDS_CLIENT = Path(__file__).parent / "e2e"


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


@pytest.fixture(autouse=True)
def _no_client_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "listeners", list)
    monkeypatch.setattr(client_line, "DEFAULT_URL", "http://127.0.0.1:1")
