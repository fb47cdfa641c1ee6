"""The SQLite store beside the real client that has the database open: what is told, read, edited and put back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recoveryd.api import recover
from recoveryd.clients import Config
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.core.model import Edit
from tests.e2e.harness import Harness, Outcome, running, settle
from tests.e2e.install import DATABASE, NEWEST, UnavailableError
from tests.support.build import SessionBuilder, text
from tests.support.parts import aborted, reasoning

pytestmark = pytest.mark.e2e
PATIENCE = 10.0  # seconds; it comes within a few milliseconds
HOUR = 3_600_000


@pytest.fixture(scope="module", params=[DATABASE, NEWEST])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    try:
        with running(tmp_path_factory.mktemp("client"), str(request.param)) as started:
            yield started
    except UnavailableError as reason:
        pytest.skip(str(reason))


def fresh(store: OpencodeSqlite) -> set[str]:
    return {session for session, _ in store.fresh({}, int(time.time() * 1000) - HOUR)}


def refused(client: Harness) -> str:
    """A session whose answer is blank, which the provider refuses."""
    session = SessionBuilder()
    session.user("go")
    session.assistant(text(" \n\t"))
    planted = client.plant(session.planted())
    outcome = client.prompt(planted)
    assert not outcome.accepted
    return planted


def test_the_store_is_found_and_live_and_tells_what_the_client_sends(client: Harness) -> None:
    store = OpencodeSqlite(client.client.database)
    assert store.live() is None
    assert store.forms() == (("paged",) if client.client.version().startswith("1.2.") else ("new",))


def test_a_failure_is_told_without_a_look_at_all_sessions(client: Harness) -> None:
    store = OpencodeSqlite(client.client.database)
    other = client.client.new_session()["id"]
    client.prompt(other)
    settle(client, other)
    fresh(store)
    broken = refused(client)
    told: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    while store.look(broken).failure is None or broken not in told:
        assert time.monotonic() < deadline
        told |= fresh(store)
    assert told == {broken}
    failure = store.look(broken).failure
    assert failure is not None
    assert (failure.message, failure.provider) == (client.client.messages(broken)[-1]["info"]["id"], "anthropic")


def test_what_is_loaded_is_what_the_client_lists(client: Harness) -> None:
    broken = refused(client)
    settle(client, broken)
    listed = client.client.messages(broken)
    session = OpencodeSqlite(client.client.database).load(broken)
    assert [message.data for message in session.messages] == [message["info"] for message in listed]
    assert [[part.data for part in m.parts] for m in session.messages] == [m["parts"] for m in listed]


def test_a_stopped_answer_is_still_sent_after_its_repair(client: Harness, tmp_path: Path) -> None:
    """The client sends no stopped answer of thinking alone: so a blank text beside it gets words, and does not go."""
    store = OpencodeSqlite(client.client.database)
    made = SessionBuilder()
    made.user("go")
    made.assistant(reasoning("why"), text(" "), error=aborted())
    made.user("next")
    made.assistant("fine")
    stopped = client.plant(made.planted())
    first = client.prompt(stopped)
    settle(client, stopped)
    assert not first.accepted
    assert _answers(first) == [["why", " "], ["fine"]]
    before = store.load(stopped)
    blank = next(part for part in before.messages[1].parts if part.type == "text")
    aside = store.changes(before, [Edit(blank.message_id, blank.id, None, "x")])
    store.apply(aside)
    client.provider.force("captured")
    assert _answers(client.prompt(stopped)) == [["fine"]]
    settle(client, stopped)
    store.apply([change.reversed() for change in reversed(aside)])
    client.prompt(stopped)
    settle(client, stopped)
    event = recover(stopped, Config(), state_dir=tmp_path / "state", stores=[store])
    assert event is not None
    assert event.actions == ("placeholder",)
    healed = client.prompt(stopped)
    assert healed.accepted
    assert _answers(healed)[:2] == [["why", "[user interrupted]"], ["fine"]]


def _answers(outcome: Outcome) -> list[list[str]]:
    """The texts and the thinking of each answer in the last request."""
    body = outcome.requests[-1].body
    assert body is not None
    said = [m["content"] for m in body["messages"] if m["role"] == "assistant"]
    return [[str(block.get("thinking", block.get("text"))) for block in content] for content in said]


def test_an_edit_heals_while_the_server_runs_and_is_taken_back_to_the_very_row(client: Harness) -> None:
    store = OpencodeSqlite(client.client.database)
    broken = refused(client)
    settle(client, broken)
    before = store.load(broken)
    blank = next(
        part
        for message in before.messages
        for part in message.parts
        if part.type == "text" and message.role == "assistant"
    )
    added = {"type": "text", "text": "[user interrupted]", "synthetic": True}
    edits = [
        Edit(blank.message_id, blank.id, None, "x"),
        Edit(blank.message_id, blank.id + "0", added, "x"),
    ]
    changes = store.changes(before, edits)
    store.apply(changes)
    listed = client.client.messages(broken)
    assert "[user interrupted]" in [part.get("text") for part in listed[1]["parts"]]
    store.apply([change.reversed() for change in reversed(changes)])
    assert store.load(broken) == before
    assert not client.prompt(broken).accepted
    settle(client, broken)
    store.apply(store.changes(store.load(broken), edits))
    assert client.prompt(broken).accepted
    assert len(client.client.messages(broken)) == len(before.messages) + 4
