"""What providers usually answer, on the real clients: each records it, and `explain --session` tells it for what it is.

A part of the table; all of it with TEST_RECOVERYD_FULL_CLIENTS, or by `python -m tests.e2e.usual_errors VERSION`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.install import JSON_STORE, NEWEST, UnavailableError
from tests.e2e.usual_errors import play, recorded_by

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

STEP = 1 if os.environ.get("TEST_RECOVERYD_FULL_CLIENTS") else 15


@pytest.mark.parametrize("name", [JSON_STORE, NEWEST, "kilo"])
def test_usual_errors_are_told_for_what_they_are(name: str, tmp_path: Path) -> None:
    try:
        played = play(name, tmp_path, recorded_by(name)[::STEP])
    except UnavailableError as reason:
        pytest.skip(str(reason))
    wrong = [(str(one.row), one.told, one.result.error) for one in played if not one.right]
    assert len(played) > 15
    assert wrong == []
