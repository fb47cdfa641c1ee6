"""The wire of the clients with a database: every shape is rebuilt block by block, in the form that the schema tells."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import Form
from tests.e2e.harness import running
from tests.e2e.install import DATABASE, JSON_STORE, NEWEST, UnavailableError, versions
from tests.shapes import SHAPES, is_old
from tests.support.build import MODEL, SessionBuilder
from tests.support.parts import reasoning, text, tool

# A prompt for each shape takes less than a second, and on a machine that is busy three.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60 + 3 * len(SHAPES))]


def plain(value: Any) -> Any:
    """Without the marks of the cache, which say nothing of the content."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "cache_control"}
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("version", versions([DATABASE, NEWEST]))
def test_a_revert_to_a_part_is_rebuilt(version: str, tmp_path: Path) -> None:
    """The parts before it stay, in its message: by what is stored before the client takes the others away, and then."""
    wrong, form = [], "paged" if is_old(version) else "new"
    try:
        with running(tmp_path / "client", version) as harness:
            sends = AnthropicMessages(MODEL["providerID"], MODEL["modelID"], Form.named(form))
            for number in range(10):
                made = SessionBuilder()
                made.user("a question", "and more of it")
                made.assistant(reasoning("hm"), text("looking"), tool(), text("seen"))
                made.assistant("done")
                named = made.messages[number % 2]
                parts = [*(part["id"] for part in made.parts[named["id"]]), "prt_gone"]
                made.session["revert"] = {"messageID": named["id"], "partID": parts[min(number // 2, len(parts) - 1)]}
                planted = made.planted()
                harness.plant(planted)
                store = OpencodeSqlite(harness.client.database)
                before = sends.build(store.load(planted.id))
                harness.provider.force("refused whatever it holds")
                [sent] = harness.prompt(planted.id).requests
                for turns in (before.turns, sends.stored(store.load(planted.id)).turns):
                    rebuilt = [{"role": turn.role, "content": [dict(b.body) for b in turn.blocks]} for turn in turns]
                    if plain((sent.body or {})["messages"]) != rebuilt:
                        wrong.append((number, rebuilt))
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert wrong == []


@pytest.mark.parametrize("version", versions([JSON_STORE, DATABASE, NEWEST]))
def test_messages_of_one_millisecond_are_rebuilt(version: str, tmp_path: Path) -> None:
    """Whatever the order in which they were written; 1.2 reads pages of fifty, and one may end among them."""
    wrong, form = [], "old" if version == JSON_STORE else "paged" if is_old(version) else "new"
    try:
        with running(tmp_path / "client", version) as harness:
            sends = AnthropicMessages(MODEL["providerID"], MODEL["modelID"], Form.named(form))
            for order, behind in [*((order, 1) for order in permutations(range(3))), ((1, 0, 2), 48), ((2, 0, 1), 47)]:
                made = SessionBuilder()
                made.user("go")
                made.assistant("fine")
                tied = [made.user(f"prompt {number}") for number in range(3)]
                for number in range(behind):
                    made.assistant(f"answer {number}")
                for message in tied:
                    message["time"]["created"] = tied[0]["time"]["created"]
                planted = made.planted()
                planted.messages[2:5] = [tied[number] for number in order]
                harness.plant(planted)
                harness.provider.force("refused whatever it holds")
                [sent] = harness.prompt(planted.id).requests
                database = harness.client.database
                store = OpencodeSqlite(database) if database.exists() else OpencodeFiles(harness.client.storage)
                turns = sends.stored(store.load(planted.id)).turns
                rebuilt = [{"role": turn.role, "content": [dict(b.body) for b in turn.blocks]} for turn in turns]
                if plain((sent.body or {})["messages"]) != rebuilt:
                    wrong.append((order, behind))
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert wrong == []


@pytest.mark.parametrize("version", versions([DATABASE, NEWEST]))
def test_every_shape_is_rebuilt(version: str, tmp_path: Path) -> None:
    """The blocks are those of the request that the client sent; where it sent none, a part is to blame for it."""
    wrong, form = [], "paged" if is_old(version) else "new"
    try:
        with running(tmp_path / "client", version) as harness:
            for name, shape in SHAPES.items():
                planted = shape.build()
                harness.plant(planted)
                harness.provider.force("refused whatever it holds")  # an answer would be stored, and change the request
                sent = harness.prompt(planted.id, thinking=shape.thinking).requests
                if not sent:
                    harness.provider.unforce()
                store = OpencodeSqlite(harness.client.database)
                assert store.forms() == (form,)
                sends = AnthropicMessages(MODEL["providerID"], MODEL["modelID"], Form.named(form))
                wire = sends.stored(store.load(planted.id))
                rebuilt = [{"role": turn.role, "content": [dict(b.body) for b in turn.blocks]} for turn in wire.turns]
                body = sent[-1].body if sent else None
                same = bool(wire.unsendable) != bool(sent) and (body is None or plain(body["messages"]) == rebuilt)
                if not same:
                    wrong.append(name)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert wrong == []
    assert len(SHAPES) >= 200
