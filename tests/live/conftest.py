"""A data folder, and a daemon on it that the test starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data home, with an empty JSON tree in it."""
    for name in ("session", "message", "part"):
        (tmp_path / "data" / "opencode" / "storage" / name).mkdir(parents=True)
    return tmp_path / "data"


@pytest.fixture
def daemon(tmp_path: Path, data: Path) -> Iterator[Daemon]:
    """Not started; ended in any case."""
    made = Daemon(tmp_path / "daemon", data)
    try:
        yield made
    finally:
        made.__exit__()
