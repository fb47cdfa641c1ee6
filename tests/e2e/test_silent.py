"""Sessions that record no error: ids that started again, on the real client, healed by `run` and by `scan --repair`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.running_turns import RunningTurns
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from tests.e2e import replies
from tests.e2e.daemon import Daemon, healing
from tests.e2e.harness import Harness, Outcome, running, settle
from tests.e2e.install import DATABASE, JSON_STORE, NEWEST, UnavailableError, versions
from tests.e2e.snapshots import Snapshot, changed, said, snapshot, still
from tests.support.build import MODEL, SessionBuilder, raw, tool
from tests.support.old_sessions import MADE, plain, reverted
from tests.support.planted import Planted

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
KIND = "wrapped_ids"


@dataclass(repr=False)
class Played:
    """One client: what was planted, two prompts for each, `recoveryd run`, and a third prompt."""

    version: str
    harness: Harness
    daemon: Daemon
    planted: dict[str, Planted] = field(default_factory=dict)
    ignored: dict[str, list[Outcome]] = field(default_factory=dict)
    entries: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    third: dict[str, Outcome] = field(default_factory=dict)
    untouched: str = ""  # a session that was never prompted
    before: Snapshot = field(default_factory=dict)
    undone: Snapshot = field(default_factory=dict)


@pytest.fixture(scope="module", params=[JSON_STORE, DATABASE])
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    root = tmp_path_factory.mktemp("silent")
    try:
        with running(root / "client", request.param) as harness:
            yield _play(Played(request.param, harness, Daemon(root / "daemon", root / "client" / "data")))
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _play(played: Played) -> Played:
    harness, daemon = played.harness, played.daemon
    for make in MADE:
        planted = make()
        played.planted[planted.session["title"]] = planted
        harness.plant(planted)
        played.ignored[planted.session["title"]] = [harness.prompt(planted.id, words) for words in ("one", "two")]
    # Taken back only now: the revert goes to before the two prompts.
    late = plain("revert late", turns=3)
    played.planted["revert late"] = late
    harness.plant(late)
    played.ignored["revert late"] = [harness.prompt(late.id, words) for words in ("one", "two")]
    target = [message["id"] for message in late.messages if message["role"] == "user"][-1]
    status, _ = harness.client.call("POST", f"/session/{late.id}/revert", {"messageID": target})
    assert status == 200
    played.untouched = harness.plant(plain("never prompted"))
    for planted in played.planted.values():
        settle(harness, planted.id)
    played.before = still(harness.client)
    with daemon:
        found = daemon.wait_settled(planted.id for planted in played.planted.values())
    played.entries = {title: found.get(planted.id, []) for title, planted in played.planted.items()}
    names = [entry["id"] for entries in played.entries.values() for entry in entries]
    assert daemon.codes([["undo", name] for name in names]) == [0] * len(names)
    played.undone = snapshot(harness.client)
    # What the user undid is repaired again only when asked for.
    sessions = [planted.id for planted in played.planted.values()]
    daemon.codes([["scan", "--json", "--repair", "--kind", KIND, "--session", session] for session in sessions])
    for title, planted in played.planted.items():
        played.third[title] = harness.prompt(planted.id, "three")
    return played


def test_two_prompts_are_ignored_and_no_request_is_sent(played: Played) -> None:
    assert len(played.ignored) == len(played.planted) > 1
    for title, outcomes in played.ignored.items():
        assert [outcome.requests for outcome in outcomes] == [[], []], title


def test_each_is_healed_by_the_daemon_once(played: Played) -> None:
    kinds = {title: [(e["kind"], e["outcome"]) for e in entries] for title, entries in played.entries.items()}
    assert kinds == {title: [(KIND, "healed")] for title in played.planted}


def test_undo_brings_back_the_exact_store(played: Played) -> None:
    """Every byte, mode and folder; every row of every table, and its place."""
    assert changed(played.before, played.undone) == {}


def test_the_third_prompt_is_answered_on_the_whole_history_in_its_order(played: Played) -> None:
    for title, outcome in played.third.items():
        assert outcome.accepted and len(outcome.requests) == 1, title
    words = said(played.third["plain"])
    told = ["question 0", "thought 0", "output 0", "answer 0", "question 1", "thought 1", "output 1", "answer 1"]
    assert [w for w in words if w in {*told, "one", "two", "three"}] == [*told, "one", "two", "three"]
    words = said(played.third["500 messages"])
    questions = [f"question {number}" for number in range(250)]
    assert [w for w in words if w in {*questions, "three"}] == [*questions, "three"]


def test_what_was_compacted_or_taken_back_stays_out(played: Played) -> None:
    words = said(played.third["compaction"])
    assert "a summary of it all" in words and "question 0" not in words and words[-3:] == ["one", "two", "three"]
    words = said(played.third["revert staged"])
    assert "question 1" in words and "question 2" not in words and words[-3:] == ["one", "two", "three"]
    words = said(played.third["revert late"])
    assert "question 1" in words and "question 2" not in words and "one" not in words and words[-1] == "three"


def test_an_answer_written_across_the_start_keeps_the_order_of_its_parts(played: Played) -> None:
    words = said(played.third["across"])
    told = ["before", "before it", "behind it"]
    assert [w for w in words if w in told] == told


def test_one_that_was_not_prompted_is_left_alone_by_run_and_healed_by_scan(played: Played) -> None:
    session = played.untouched
    assert played.daemon.history(session) == []
    listed = json.loads(played.daemon.run("scan", "--json").stdout)["stuck"]
    [found] = [finding for finding in listed if finding["session"] == session]
    assert (found["reason"], found["healed"], found["evidence"]["messages_before"]) == (KIND, False, 6)
    _heal_by_scan(played, session)


def test_one_with_a_revert_that_was_not_prompted_is_healed_by_scan(played: Played) -> None:
    planted = reverted("revert, never prompted")
    outcome = _heal_by_scan(played, played.harness.plant(planted))
    words = said(outcome)
    assert "question 1" in words and "question 2" not in words and words[-1] == "go on"


def _heal_by_scan(played: Played, session: str) -> Outcome:
    """Healed, taken back to the exact store, healed again, and prompted."""
    repair = ["scan", "--json", "--repair", "--kind", KIND, "--session", session]
    before = still(played.harness.client)
    assert played.daemon.codes([repair]) == [0]
    [entry] = played.daemon.history(session)
    assert (entry["kind"], entry["outcome"]) == (KIND, "healed")
    assert snapshot(played.harness.client) != before
    assert played.daemon.codes([["undo", entry["id"]]]) == [0]
    assert changed(before, snapshot(played.harness.client)) == {}
    assert played.daemon.codes([repair]) == [0]
    outcome = played.harness.prompt(session, "go on")
    assert outcome.accepted
    return outcome


def test_a_turn_whose_client_was_killed_is_ended_and_the_session_goes_on(
    played: Played, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The last one of these: it kills the client and starts it again."""
    _ended(played.harness, tmp_path_factory.mktemp("killed"))


def test_the_newest_client_is_not_stuck_and_only_what_it_cut_off_is_touched(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("newest")
    try:
        with running(root / "client", NEWEST) as harness:
            session = harness.plant(plain())
            assert [len(harness.prompt(session, words).requests) for words in ("one", "two")] == [1, 1]
            never = harness.plant(plain("never prompted"))
            settle(harness, session)
            before = still(harness.client)
            daemon = Daemon(root / "daemon", root / "client" / "data")
            with daemon:
                time.sleep(2)
            assert daemon.run("scan", "--repair").returncode == 0
            assert daemon.history() == []
            assert changed(before, snapshot(harness.client)) == {}
            assert harness.prompt(never, "three").accepted
            _ended(harness, root)
    except UnavailableError as reason:
        pytest.skip(str(reason))


INTERRUPTED = '[notify]\ndesktop = false\n[opencode]\nserver_url = "http://127.0.0.1:9"\n'


def _ended(harness: Harness, root: Path) -> None:
    """A turn is cut off, shown by `scan`, ended by `run`, put back by `undo`, and ended again by `scan --repair`."""
    client, data = harness.client, harness.client.data.parent
    daemon = Daemon(root / "shown", data, config=f"interrupted_minutes = 0\n{INTERRUPTED}")
    named = f'kinds = ["interrupted_turn"]\ninterrupted_minutes = 0\n{INTERRUPTED}'
    session = client.new_session()["id"]
    _cut_off(harness, session, lambda: _stuck(daemon, session) == [])
    found = json.loads(daemon.run("explain", "--session", session, "--json").stdout)
    told = found["stuck"], found["reason"], len(found["evidence"]["open_tools"])
    assert told == (False, "turn_left_open", 1), "its client goes on from there"
    assert _stuck(daemon, session) == []
    before = still(harness.client)
    assert daemon.codes([["scan", "--repair", "--session", session]]) == [0], "it is off unless it is named"
    assert changed(before, snapshot(harness.client)) == {}
    with Daemon(root / "named", data, config=named) as other:
        [entry] = other.wait_settled([session])[session]
        assert (entry["kind"], entry["outcome"]) == ("interrupted_turn", "healed")
    assert other.codes([["undo", entry["id"]]]) == [0]
    assert changed(before, snapshot(harness.client)) == {}
    assert other.codes([["scan", "--repair", "--session", session]]) == [0]
    client.start()
    parts = [part for message in client.messages(session) for part in message["parts"]]
    [tool] = [part for part in parts if part["type"] == "tool"]
    assert (tool["state"]["status"], tool["state"]["error"]) == ("error", "Tool execution aborted")
    assert tool["state"]["metadata"]["interrupted"] is True
    outcome = harness.prompt(session, "go on")
    assert outcome.accepted and "half a word" in said(outcome)


def _stuck(daemon: Daemon, session: str) -> list[dict[str, Any]]:
    listed = json.loads(daemon.run("scan", "--json", "--session", session).stdout)["stuck"]
    return [dict(finding) for finding in listed]


def _cut_off(harness: Harness, session: str, alive: Callable[[], bool]) -> None:
    """A turn whose client is killed while a tool runs; `alive` has to hold just before."""
    called = replies.tool_use("bash", {"command": "sleep 45", "description": "wait"})
    harness.provider.script.append([replies.text("half a word"), called])
    assert harness.client.prompt_async(session, "begin") == 204
    deadline = time.monotonic() + 30
    while not any(
        (part.get("state") or {}).get("status") == "running"
        for message in harness.client.messages(session)
        for part in message["parts"]
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert alive()
    children = psutil.Process(harness.client.pid).children(recursive=True)
    os.kill(harness.client.pid, signal.SIGKILL)
    harness.client.stop()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    psutil.wait_procs(children, 5)


@pytest.mark.parametrize("version", versions([JSON_STORE, DATABASE]))
def test_what_the_client_fails_on_is_mended_with_and_without_a_prompt(version: str, tmp_path: Path) -> None:
    """A part that is no JSON stops a prompt that names no model before it is stored; a tool without a state, later."""
    try:
        with healing(tmp_path, version) as (harness, daemon):
            store = _store(harness)
            broken, stateless = _failing(raw(b'{"id": "prt_')), _failing(tool(status=""))
            before = len(store.load(harness.plant(broken)).messages)
            assert harness.prompt(broken.id).requests == []
            assert len(store.load(broken.id).messages) == before, "nothing of the prompt is stored"
            harness.prompt(harness.plant(stateless), model=dict(MODEL))  # a slow client may read it once it is mended
            found = daemon.wait_settled([broken.id, stateless.id])
            for session in (broken.id, stateless.id):
                assert [(e["kind"], e["outcome"]) for e in found[session]] == [("unsendable_part", "healed")]
                settle(harness, session)
                assert harness.prompt(session).accepted
            _asked_while_an_answer_is_open(harness, store)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _asked_while_an_answer_is_open(harness: Harness, store: Store) -> None:
    """When the provider is asked, an answer stands in the store, still empty, and the client says that it is busy."""
    session = harness.client.new_session()["id"]
    seen: list[tuple[bool, str | None]] = []

    def look(body: dict[str, Any]) -> None:
        if "go on with it" in json.dumps(body["messages"][-1]):
            found = store.load(session)
            seen.append(
                (
                    bool(store.look(session).running),
                    RunningTurns(10).at_work(store, found, OpencodeServer(OpencodeSettings())),
                )
            )

    harness.provider.reply_when(look)
    assert harness.prompt(session, "go on with it").accepted
    assert seen and all(running and who is not None and "(pid" in who for running, who in seen)
    assert RunningTurns(10).at_work(store, store.load(session), OpencodeServer(OpencodeSettings())) is None


def _store(harness: Harness) -> Store:
    database = harness.client.database
    return OpencodeSqlite(database) if database.exists() else OpencodeFiles(harness.client.storage)


def _failing(part: dict[str, Any]) -> Planted:
    session = SessionBuilder(int(time.time() * 1000) - 60_000)
    session.user("go")
    session.assistant("one", part, "two")
    return session.planted()
