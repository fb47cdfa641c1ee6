"""The wire is what the client sends: block by block, for every shape and for hundreds of random sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.core.request import Request
from tests.e2e.client import MODEL
from tests.e2e.generate import Generator
from tests.e2e.harness import Harness, running
from tests.e2e.install import UnavailableError
from tests.e2e.odd import ODD
from tests.shapes import SHAPES
from tests.support.build import Planted, SessionBuilder
from tests.support.plant import write_tree

# TEST_RECOVERYD_SESSIONS makes it long; TEST_RECOVERYD_SEED begins elsewhere.
SEED = int(os.environ.get("TEST_RECOVERYD_SEED", "1"))
SESSIONS = int(os.environ.get("TEST_RECOVERYD_SESSIONS", "200"))
SEEDS = range(SEED, SEED + SESSIONS)

# Behind all that is stored, and stored nowhere: a plan that was left, and a compaction that is still to be made.
ADDED = ("<system-reminder>\nYour operational mode has changed", "Provide a detailed prompt for continuing")

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180 + SESSIONS)]


@dataclass(repr=False)
class Sent:
    """A session, the store before and after the prompt, and what the client sent: its messages, or None for nothing."""

    planted: Planted
    before: OpencodeFiles
    after: OpencodeFiles
    messages: list[dict[str, Any]] | None


@dataclass(repr=False)
class Captures:
    harness: Harness
    root: Path

    def send(self, planted: Planted, thinking: bool) -> Sent:
        """Plant a session, prompt it with "continue", and refuse whatever comes."""
        before = self.root / "before"
        write_tree(planted, before)
        self.harness.plant(planted)
        self.harness.provider.force("captured")
        outcome = self.harness.prompt(planted.id, "continue", thinking)
        if not outcome.requests:
            self.harness.provider.unforce()
        after = OpencodeFiles(self.harness.client.storage)
        sent = _messages(outcome.requests[0].raw) if outcome.requests else None
        return Sent(planted, OpencodeFiles(before), after, sent)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captures]:
    root = tmp_path_factory.mktemp("wire")
    try:
        with running(root / "client") as harness:
            yield Captures(harness, root)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _messages(raw: bytes) -> list[dict[str, Any]]:
    """The messages of a request, without what is said of caching, and without what the client adds to the prompt."""
    messages = [{"role": m["role"], "content": _plain(m["content"])} for m in json.loads(raw)["messages"]]
    if messages:
        last = messages[-1]["content"]
        messages[-1]["content"] = [block for block in last if not str(block.get("text")).startswith(ADDED)]
    return messages


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "cache_control"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _rebuilt(request: Request) -> list[dict[str, Any]]:
    return [{"role": turn.role, "content": [dict(block.body) for block in turn.blocks]} for turn in request.turns]


def _compare(sent: Sent, harness: Harness) -> None:
    """Once from the store as it was, with the prompt to come, and once as it is, with the prompt in it."""
    harness.client.wait_idle(sent.planted.id)
    sends = AnthropicMessages("anthropic", MODEL)
    for wire in (
        sends.build(sent.before.load(sent.planted.id)) if sent.planted.messages else None,
        sends.stored(sent.after.load(sent.planted.id)),
    ):
        if wire is None:
            continue
        assert (sent.messages is None) == bool(wire.unsendable), wire.unsendable
        if sent.messages is not None:
            assert _rebuilt(wire) == sent.messages


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_shape_is_rebuilt(captures: Captures, name: str) -> None:
    _compare(captures.send(SHAPES[name].build(), SHAPES[name].thinking), captures.harness)


@pytest.mark.parametrize("name", list(ODD))
def test_an_oddity_is_rebuilt(captures: Captures, name: str) -> None:
    _compare(captures.send(ODD[name](), thinking=False), captures.harness)


@pytest.mark.parametrize(
    ("kind", "name", "many"),
    [
        ("part", "{}.sync-conflict-1.json", 2),
        ("part", "{} (1).json", 2),
        ("part", "{}.json.bak", 0),
        ("message", "{} (1).json", 1),
    ],
)
def test_the_copy_of_a_part_is_sent_too_or_nothing_is(captures: Captures, kind: str, name: str, many: int) -> None:
    """By then the session is left alone (`Client.sends_unknown`). Of the copy of a message nothing is sent."""
    made = SessionBuilder()
    asked = made.user("asked once")
    made.assistant("done")
    harness, planted = captures.harness, made.planted()
    harness.plant(planted)
    folder = Path("part", asked["id"]) if kind == "part" else Path("message", planted.id)
    record = made.parts[asked["id"]][0]["id"] if kind == "part" else asked["id"]
    path = harness.client.storage / folder / f"{record}.json"
    path.with_name(name.format(record)).write_bytes(path.read_bytes())
    sent = harness.prompt(planted.id).requests
    assert b"".join(request.raw for request in sent).count(b"asked once") == many


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_session_is_rebuilt(captures: Captures, seed: int) -> None:
    _compare(captures.send(Generator(seed).session(), thinking=bool(seed % 2)), captures.harness)
