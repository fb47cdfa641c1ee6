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
    assert refused(tree, bench, made, WORDS) is Outcome.HEALED
    assert len(pictures(tree)) == left


@pytest.mark.parametrize(
    ("answered_by", "heavy", "left"),
    [
        ("gpt-5.2", 9_000, ["old.png"]),
        ("gpt-5.2", 6_000_000, ["old.png"]),  # more than each provider takes, and this one took it
        ("o3-mini", 9_000, ["new.png", "old.png"]),
        ("o3-mini", 6_000_000, ["new.png"]),
    ],
)
def test_a_light_image_is_too_large_beside_a_heavier_one_only_where_that_was_taken(
    tmp_path: Path, bench: Bench, answered_by: str, heavy: int, left: list[str]
) -> None:
    """The words do not say whether bytes or pixels are too many: a tall screenshot has few bytes."""
    tree = Tree(tmp_path)
    made = SessionBuilder(int(time.time() * 1000) - 60_000, model=GPT)
    made.user("look", file(data_url(png(9, 9) + bytes(heavy)), filename="old.png"))
    made.assistant(text("seen"))["modelID"] = answered_by
    made.user("and here", file(data_url(png(3, 2_000)), filename="new.png"))
    refused(tree, bench, made, "The image is too large.")
    assert sorted(pictures(tree)) == left


def refused(tree: Tree, bench: Bench, made: SessionBuilder, words: str) -> Outcome:
    """Let the newest prompt be refused with these words, and heal the session."""
    data = {"message": words, "statusCode": 400, "responseBody": json.dumps({"error": {"message": words}})}
    url = "https://api.openai.com/v1/responses"
    made.assistant(error={"name": "APIError", "data": {**data, "metadata": {"url": url}}})
    write_tree(made.planted(), tree.root)
    return bench.attempt(tree, made.planted().id).outcome


def pictures(tree: Tree) -> list[str]:
    """The names of the images that are stored."""
    stored = [json.loads(path.read_text()) for path in (tree.root / "part").rglob("*.json")]
    return [part["filename"] for part in stored if str(part.get("url")).startswith("data:image/png")]
