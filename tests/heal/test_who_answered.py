"""Which images are taken for refused, where the provider names none, hangs on which model answered the others."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from recoveryd.core import Outcome
from tests.e2e.media import data_url, png
from tests.support.build import SessionBuilder
from tests.support.parts import file, text, tool
from tests.support.plant import write_tree
from tests.support.trees import Bench, Tree

GPT = {"providerID": "openai", "modelID": "gpt-5.2"}
WORDS = "The image data you provided does not represent a valid image."


@pytest.mark.parametrize(
    ("asked", "by_command", "left"),
    [
        (GPT, None, 1),
        ({**GPT, "modelID": "gpt-5.2-codex"}, None, 1),  # of the same maker, as plan and build may have
        ({**GPT, "modelID": "gpt-6.1-sol"}, None, 1),
        ({**GPT, "modelID": "o3-mini"}, None, 0),  # it may have been given words in place of the image
        ({"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}, None, 0),
        ({"providerID": "azure", "modelID": "gpt-5.2"}, None, 0),
        (GPT, "!ls", 0),
        (GPT, "/review", 0),
    ],
)
def test_only_an_answer_of_who_is_asked_clears_an_image(
    tmp_path: Path, bench: Bench, asked: dict[str, str], by_command: str | None, left: int
) -> None:
    tree = Tree(tmp_path)
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=GPT)
    made.user("look", file(data_url(png(4, 4)), filename="old.png"))
    said = tool("task" if by_command == "/review" else "bash") if by_command else text("seen")
    finish = None if by_command == "!ls" else ""
    answer = made.assistant(said, finish=finish, bare=by_command is not None)
    answer |= asked
    made.user("and here", file(data_url(png(4, 5)), filename="new.png"))
    data = {"message": WORDS, "statusCode": 400, "responseBody": json.dumps({"error": {"message": WORDS}})}
    url = "https://api.openai.com/v1/responses"
    made.assistant(error={"name": "APIError", "data": {**data, "metadata": {"url": url}}})
    write_tree(made.planted(), tree.root)
    assert bench.attempt(tree, made.planted().id).outcome is Outcome.HEALED
    stored = "".join(path.read_text() for path in (tree.root / "part").rglob("*.json"))
    assert stored.count("data:image/png") == left
