"""What is captured is exactly what the client sends, and the store is exactly what it was made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.capture import capture
from tests.e2e.harness import Harness
from tests.shapes import SHAPES


@pytest.mark.parametrize("name", ["plain-off", "tools-closed-on", "forged-earlier-on", "open-tool-alone"])
def test_store_and_body_belong_together(harness: Harness, tmp_path: Path, name: str) -> None:
    """The store holds the planted messages, the question and an empty failure; the body ends with the question."""
    shape = SHAPES[name]
    planted = shape.build()
    captured = capture(harness, planted, shape.thinking, tmp_path)
    assert captured.body is not None
    assert captured.body["messages"][-1]["content"][-1]["text"] == "continue"
    assert ("thinking" in captured.body) == shape.thinking
    listed = harness.client.messages(captured.session)
    assert [message["info"]["id"] for message in listed[:-2]] == [message["id"] for message in planted.messages]
    assert [message["info"]["role"] for message in listed[-2:]] == ["user", "assistant"]
    assert listed[-1]["parts"] == []
    if captured.store.is_dir():
        stored = sorted((captured.store / "message" / captured.session).glob("*.json"))
        assert [json.loads(file.read_bytes())["id"] for file in stored] == [m["info"]["id"] for m in listed]


def test_a_crashing_session_has_no_body(harness: Harness, tmp_path: Path) -> None:
    """Nothing was sent, and the next prompt of another session is not refused for it."""
    captured = capture(harness, SHAPES["tool-without-state"].build(), False, tmp_path)
    assert (captured.body, captured.raw) == (None, None)
    assert harness.prompt(harness.plant(SHAPES["plain-off"].build())).accepted
