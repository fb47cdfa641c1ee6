"""What the real client records of an answer is what tests/data has, and the product is held to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.codex.client import Codex
from tests.e2e.codex.install import ensure
from tests.e2e.codex.world import at_once
from tests.e2e.install import UnavailableError
from tests.support.fake_api import ApiHandler, FakeApi

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CASES: dict[str, dict[str, Any]] = {
    case["case"]: case for case in json.loads((Path(__file__).parents[2] / "data" / "codex_errors.json").read_text())
}
PLAYED = [name for name, case in CASES.items() if "status" in case]


class _Handler(ApiHandler):
    def do_GET(self) -> None:
        """Nothing is listed here."""
        self.send(404, "application/json", b"{}")

    def do_POST(self) -> None:
        """Answer as the case says that the path begins with."""
        self.body()
        case = CASES[self.path.split("/")[1]]
        kind = "text/event-stream" if case["status"] == 200 else "application/json"
        self.send(case["status"], kind, case["body"].encode())


class _Answers(FakeApi):
    handler = _Handler


def test_the_real_client_records_of_each_answer_what_the_tests_have(tmp_path: Path) -> None:
    try:
        binary = ensure()
    except UnavailableError as reason:
        pytest.skip(str(reason))
    with _Answers() as answers:

        def recorded(name: str) -> object:
            codex = Codex(binary, tmp_path / name, f"{answers.address}/{name}/v1")
            lines = codex.rollout(codex.exec("hello").thread).read_text().replace(f"{answers.address}/{name}", "URL")
            events = [line["payload"] for line in map(json.loads, lines.splitlines()) if line["type"] == "event_msg"]
            return next(event["error"] for event in events if event["type"] == "task_complete")

        found = dict(zip(PLAYED, at_once(recorded, PLAYED), strict=True))
    expected = {
        name: json.loads(json.dumps(CASES[name]["error"]).replace("http://127.0.0.1:1", "URL")) for name in PLAYED
    }
    assert found == expected
