"""What tests write of a thread by hand has the form of what the real client writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.codex.provider import call, thought, words
from tests.e2e.codex.rollout import MODEL, SOL
from tests.e2e.codex.rollout import Rollout as Planted
from tests.e2e.codex.world import World, running
from tests.e2e.install import UnavailableError
from tests.support.rollouts import Rollout, message

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

Forms = dict[tuple[str, str, str], list[set[str]]]  # of each kind of line, the fields of each such line
_NOTES = ("metadata", "internal_chat_message_metadata_passthrough")  # what they hold differs from line to line


@pytest.mark.parametrize("model", [MODEL, SOL])
def test_lines_that_tests_write_have_the_fields_of_real_ones(tmp_path: Path, model: str) -> None:
    try:
        with running(tmp_path / "client", lenient=True) as world:
            real = forms(world.codex.rollout(worked(world, model)).read_bytes())
    except UnavailableError as reason:
        pytest.skip(str(reason))
    made = Rollout(tmp_path / "made")
    made.healthy()
    made.compacted([message("user", "do it")])
    made.reviews()
    made.is_reviewed()
    built = forms(made.bytes()) if model == MODEL else {}
    planted = Planted(tmp_path, model=model)
    planted.turn("do it")
    planted.reasoning("gAAAA")
    planted.call()
    planted.answer("done")
    planted.compacted([message("user", "do it")])
    planted.end()
    by_hand = forms(b"\n".join(planted.lines))
    assert built.keys() | by_hand.keys() <= real.keys()
    for kind, lines in real.items():
        unknown = set[str]().union(*built.get(kind, ()), *by_hand.get(kind, ())) - set[str]().union(*lines)
        assert not unknown, (kind, "a real line has no such field")
        missing = _in_all(lines) - _in_all(built.get(kind, lines))
        assert not missing, (kind, "each real line has these fields")


def worked(world: World, model: str) -> str:
    """A thread with a tool, an answer and a compaction, each written by the client."""
    world.provider.script("").extend([[thought(), call("exec_command", cmd="echo")], [words("done")]])
    thread = world.codex.exec("do it", "-m", model).thread
    with world.codex.server() as server:
        server.call("thread/resume", threadId=thread)
        server.call("thread/compact/start", threadId=thread)
        server.wait("turn/completed")
        server.notices.clear()
        target = {"type": "custom", "instructions": "look at it"}
        server.call("review/start", threadId=thread, target=target, delivery="inline")
        server.wait("turn/completed")
    return thread


def forms(raw: bytes) -> Forms:
    found: Forms = {}
    for line in map(json.loads, raw.splitlines()):
        payload = line["payload"]
        item = payload.get("item") or {}
        kind = line["type"], payload.get("type", ""), payload.get("role", item.get("type", ""))
        found.setdefault(kind, []).append(set(fields(line)))
    return found


def _in_all(lines: list[set[str]]) -> set[str]:
    return lines[0].intersection(*lines[1:])


def fields(value: dict[str, Any], below: str = "", deep: int = 3) -> list[str]:
    """The names of all that an object holds, with the names of what holds them."""
    inner = [(name, one) for name, one in value.items() if isinstance(one, dict) and deep and name not in _NOTES]
    return [f"{below}{name}" for name in value] + [
        name for at, one in inner if at in ("payload", "item") for name in fields(one, f"{below}{at}.", deep - 1)
    ]
