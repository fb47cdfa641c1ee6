"""With the client running: what was refused in the middle of a task goes on by itself, and stops by itself.

The real client is a TUI in a terminal (a server where there is no tmux), the daemon a real `recoveryd run` that finds
it by itself. All scenes are played at once.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.server import OpencodeServer as Running
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from recoveryd.core.model import Entry, Failure
from recoveryd.core.text import clean
from recoveryd.heal.stop_turn import TurnStopper
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings.paths import ledger_file
from tests.e2e.client import Client
from tests.e2e.daemon import Daemon
from tests.e2e.harness import Harness, running
from tests.e2e.install import JSON_STORE, NEWEST, UnavailableError
from tests.e2e.scenes import SHORT, Stage
from tests.e2e.tui import Tui, words
from tests.live.stuck import stopped
from tests.support.build import SessionBuilder, api_error

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
CONFIG = "auto_resume = true\n[notify]\ndesktop = false\n"
PATIENCE = 60.0


@dataclass
class Play:
    """All scenes, played: sessions by name, what the client lists of each, and what the daemon did about it."""

    sessions: dict[str, str] = field(default_factory=dict)
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    history: dict[str, list[Entry]] = field(default_factory=dict)
    requests: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    screens: set[str] = field(default_factory=set)
    seen: bool = False  # whether there was a screen to see
    log: str = ""

    def prompts(self, name: str) -> list[str]:
        return [text(message) for message in self.messages[name] if message["info"]["role"] == "user"]

    def outcomes(self, name: str) -> list[str]:
        """Of each failure, the oldest first. A refusal is looked at again when the client wrote to the session."""
        last = {entry.message: str(entry.outcome) for entry in reversed(self.history[name])}
        return list(last.values())


def text(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")


class Director:
    """Plays the scenes on one client."""

    def __init__(self, harness: Harness, daemon: Daemon, stage: Stage) -> None:
        self.client, self.harness, self.daemon, self.stage = harness.client, harness, daemon, stage
        self.play = Play(seen=isinstance(harness.client, Tui))
        self._over = threading.Event()

    def begin(self, name: str, *, parent: str = "", **fields: Any) -> str:
        """A session whose first prompt names its scene."""
        more = {"parentID": parent} if parent else {}
        session = str(self.client.new_session(title=f"The {name}", **more)["id"])
        self.play.sessions[name] = session
        assert self.client.prompt_async(session, f"scene: {name}.", thinking=True, **fields) == 204
        return session

    def wait(self, what: str, done: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, f"{what}; the log ends:\n{self.daemon.log[-4000:]}"
            time.sleep(0.05)

    def entries(self, name: str) -> list[Entry]:
        with Ledger(ledger_file(self.daemon.state)) as ledger:
            return ledger.history(99, self.play.sessions[name])

    def refused(self, name: str) -> bool:
        last = self.client.messages(self.play.sessions[name])[-1:]
        return bool(last and last[0]["info"].get("error"))

    def healed(self, name: str) -> bool:
        return any(entry.outcome == "healed" for entry in self.entries(name))

    def ended(self, name: str) -> bool:
        last = self.client.messages(self.play.sessions[name])[-1]
        return last["info"].get("finish") == "stop" and self.play.sessions[name] not in self.client.status()

    def watch(self) -> None:
        """Keep every screen that the user got to see."""
        while isinstance(self.client, Tui) and not self._over.wait(0.2):
            self.play.screens.add(words(self.client.screen))

    def run(self) -> Play:
        self.begin("start")
        self.wait("the first scene was not refused", lambda: self.refused("start"))
        watcher = threading.Thread(target=self.watch)
        with self.daemon:
            watcher.start()
            try:
                self.act()
            finally:
                self._over.set()
                watcher.join()
        return self.collected()

    def act(self) -> None:
        model = {"providerID": "anthropic", "modelID": self.client.model}
        for name in ("task", "forever", "thinking"):
            self.begin(name)
        for name in ("limit", "prefill", "prefill forever"):
            self.begin(name, agent="short", model=model)
        self.begin("child", parent=self.play.sessions["task"])
        self.begin("newer")
        self.begin("stopped")
        self.interrupt()
        self.wait(
            "not all went on to their end", lambda: all(map(self.ended, ("task", "thinking", "limit", "prefill")))
        )
        self.wait("not all were given up", lambda: all(map(self.given_up, ("forever", "prefill forever"))))
        self.wait("not all were left alone", lambda: all(map(self.left, ("child", "start", "newer", "stopped"))))
        time.sleep(2.5)  # in which nothing more may happen

    def given_up(self, name: str) -> bool:
        return any(entry.outcome == "gave_up" for entry in self.entries(name))

    def left(self, name: str) -> bool:
        return re.search(rf"{self.play.sessions[name]} r\w+ \w+: not resumed", self.daemon.log) is not None

    def interrupt(self) -> None:
        """Between a repair and its confirmation a second later, the user comes back: the daemon stands still for it."""
        self.wait("newer was not healed", lambda: self.healed("newer"))
        stopped(self.daemon, lambda: self.client.prompt_async(self.play.sessions["newer"], "my own words"))
        self.wait("stopped was not healed", lambda: self.healed("stopped"))
        stopped(self.daemon, lambda: self.stop(self.play.sessions["stopped"]))

    def stop(self, session: str) -> None:
        """A prompt, and its end by the hand of the user."""
        self.client.prompt_async(session, "and mine")
        self.wait("the turn did not begin", lambda: session in self.client.status())
        time.sleep(0.2)
        assert self.client.abort(session)

    def collected(self) -> Play:
        play = self.play
        for name, session in play.sessions.items():
            play.messages[name] = self.client.messages(session)
            play.history[name] = self.entries(name)
            marked = [r for r in self.harness.provider.main if r.body and f"scene: {name}." in str(r.body["messages"])]
            play.requests[name] = [request.body or {} for request in marked]
        play.log = self.daemon.log
        return play


@pytest.fixture(scope="module", params=[JSON_STORE, NEWEST])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Harness, Play]]:
    root = tmp_path_factory.mktemp("resume")
    scenes = Stage()
    kind: type[Client] = Tui if Tui.available() else Client
    try:
        with running(root / "client", request.param, config=SHORT, client=kind) as harness:
            harness.provider.force_when(scenes.judge)
            harness.provider.reply_when(scenes.reply)
            daemon = Daemon(root / "daemon", root / "client" / "data", config=CONFIG)
            try:
                play = Director(harness, daemon, scenes).run()
                yield harness, play
            finally:
                scenes.hold.set()
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def play(stage: tuple[Harness, Play]) -> Play:
    return stage[1]


def test_a_task_that_was_refused_goes_on_to_its_end(play: Play) -> None:
    """No hand is on it: one repair, one prompt as the user asked for it, and the answer."""
    assert play.outcomes("task") == ["healed"]
    assert play.prompts("task") == ["scene: task.", "continue"]
    own, ours = [m["info"] for m in play.messages["task"] if m["info"]["role"] == "user"]
    for key in ("agent", "model", "variant"):
        assert ours.get(key) == own.get(key)
    assert text(play.messages["task"][-1]) == "finished"
    assert play.requests["task"][-1]["thinking"]["type"] == "enabled"


def test_what_we_say_is_marked(play: Play) -> None:
    [ours] = [m for m in play.messages["task"] if text(m) == "continue"]
    [recovery] = play.history["task"]
    assert ours["parts"][0]["metadata"] == {"recoveryd": {"recovery": recovery.id, "resume": True}}


def test_it_stops_by_itself(play: Play) -> None:
    """A provider that refuses for ever: three tries, one notice."""
    assert play.outcomes("forever") == ["healed"] * 3 + ["gave_up"]
    assert play.prompts("forever") == ["scene: forever.", *["continue"] * 3]
    assert play.history["forever"][0].detail.startswith("The session was repaired 3 times and is refused again.")


def test_after_a_second_refusal_thinking_is_turned_off(play: Play) -> None:
    """The first repair takes the thinking out; refused again, the session goes on without it, and is answered."""
    assert play.outcomes("thinking") == ["healed", "not_understood"]
    assert play.prompts("thinking") == ["scene: thinking.", "continue", "continue"]
    assert [bool(body.get("thinking")) for body in play.requests["thinking"]] == [True, True, True, False]
    assert text(play.messages["thinking"][-1]) == "finished"


@pytest.mark.parametrize("name", ["prefill", "limit"])
def test_what_a_prompt_clears_is_prompted_and_not_edited(play: Play, name: str) -> None:
    """What the client says at the limit is refused as that, or as a turn of the model's that lacks its thinking."""
    assert play.outcomes(name) == ["refused"]
    told = {(entry.kind, entry.edits, "the limit of its agent short" in entry.detail) for entry in play.history[name]}
    assert told == {("assistant_prefill", 0, True)}
    assert play.prompts(name) == [f"scene: {name}.", "continue"]
    assert text(play.messages[name][-1]) == "finished"
    assert {m["info"]["agent"] for m in play.messages[name] if m["info"]["role"] == "user"} == {"short"}


def test_what_a_prompt_does_not_clear_is_given_up(play: Play) -> None:
    assert play.outcomes("prefill forever") == ["refused"] * 3 + ["gave_up"]
    assert play.prompts("prefill forever") == ["scene: prefill forever.", *["continue"] * 3]
    given_up = play.history["prefill forever"][0]
    assert given_up.detail.startswith("The session was told to go on 3 times and is refused again.")
    assert "raise or remove the limit of its agent short" in given_up.detail and "/fork" not in given_up.detail


def test_what_was_refused_before_the_start_is_healed_and_left_to_its_user(play: Play) -> None:
    assert play.outcomes("start") == ["healed"]
    assert play.prompts("start") == ["scene: start."]
    assert "not resumed: it was refused before recoveryd was started" in play.log


def test_a_subagent_is_healed_and_told_under_the_title_of_its_root(play: Play) -> None:
    assert play.outcomes("child") == ["healed"]
    assert play.prompts("child") == ["scene: child."]
    assert {entry.title for entry in play.history["child"]} == {"The task"}


def test_a_newer_prompt_is_not_talked_over(play: Play) -> None:
    assert play.outcomes("newer") == ["healed"]
    assert play.prompts("newer") == ["scene: newer.", "my own words"]
    assert text(play.messages["newer"][-1]) == "finished"


def test_what_its_user_stopped_stays_stopped(play: Play) -> None:
    assert play.outcomes("stopped") == ["healed"]
    assert play.prompts("stopped") == ["scene: stopped.", "and mine"]
    assert play.messages["stopped"][-1]["info"]["error"]["name"] == "MessageAbortedError"
    assert re.search(rf"{play.sessions['stopped']} r\w+ healed: not resumed: its user stopped it", play.log)


def test_the_user_of_the_tui_sees_what_was_done(play: Play) -> None:
    if not play.seen:
        pytest.skip("tmux is not installed")
    assert any("OpenCode session healed: The " in s and "Undo: recoveryd undo r" in s for s in play.screens)
    # The last notices stay for some seconds; those before give way to the client's own errors.
    assert any("OpenCode session given up: The " in s and "3 times and is refused again." in s for s in play.screens)


def test_a_toast_is_plain_text_on_the_screen(stage: tuple[Harness, Play]) -> None:
    client, play = stage[0].client, stage[1]
    if not isinstance(client, Tui):
        pytest.skip("tmux is not installed")
    failure = _entry_failure(client, play, "start")
    title, body = clean("Session <b>healed</b>: \x1b[31mred \u202eabc", 80), clean("what\u0007 was done", 300)
    assert Running(OpencodeSettings(server_url=client.url)).toast(
        failure, str(client.directory), title, body, "success"
    )
    deadline = time.monotonic() + PATIENCE
    while "Session <b>healed</b>: [31mred abc what was done" not in words(client.screen):
        assert time.monotonic() < deadline, client.screen
        time.sleep(0.1)


def test_the_daemon_had_no_trouble(play: Play) -> None:
    assert "fault of recoveryd" not in play.log and "could not be resumed" not in play.log


def _entry_failure(client: Client, play: Play, name: str) -> Failure:
    """The failure that a scene's recovery was about."""
    message = play.history[name][0].message
    made = next(m["info"]["time"]["created"] for m in play.messages[name] if m["info"]["id"] == message)
    return Failure(_store(client).id, play.sessions[name], message, made)


def _store(client: Client) -> Store:
    return OpencodeSqlite(client.database) if client.database.exists() else OpencodeFiles(client.storage)


def _failed(store: Store, session: str) -> Failure:
    deadline = time.monotonic() + PATIENCE
    while (failure := store.look(session).failure) is None:
        assert time.monotonic() < deadline, "nothing was refused"
        time.sleep(0.05)
    return failure


def _running(client: Client, session: str) -> None:
    """Wait until words of the turn are in the store."""
    deadline = time.monotonic() + PATIENCE
    while not (listed := client.messages(session)) or text(listed[-1]) != "half":
        assert time.monotonic() < deadline, "the turn did not begin"
        time.sleep(0.05)


def test_a_newer_turn_that_runs_is_not_killed(stage: tuple[Harness, Play]) -> None:
    """The failure is looked at while the user has long gone on: the client shows the session busy."""
    client = stage[0].client
    session, store = str(client.new_session()["id"]), _store(client)
    client.prompt_async(session, "scene: busy.")
    failure = _failed(store, session)
    client.wait_idle(session)
    client.prompt_async(session, "again")
    _running(client, session)
    assert not TurnStopper(print).stop(
        store, Running(OpencodeSettings(server_url=client.url)), store.load(session), failure
    )
    assert client.status()[session]["type"] == "busy"
    assert "error" not in client.messages(session)[-1]["info"]
    client.abort(session)


def test_a_turn_that_hangs_behind_its_own_failure_is_stopped(stage: tuple[Harness, Play]) -> None:
    """No way was found to make a client hang so: the failure is written into its store beside a turn that stands."""
    harness = stage[0]
    client = harness.client
    session, store = str(client.new_session()["id"]), _store(client)
    client.prompt_async(session, "scene: hung.")
    _running(client, session)
    failed = SessionBuilder(int(time.time() * 1000), directory=str(client.directory))
    failed.session.update(client.call("GET", f"/session/{session}")[1])
    failed.assistant(error=api_error("not today", 400))
    harness.plant(failed.planted())
    failure = _failed(store, session)
    assert TurnStopper(print).stop(
        store, Running(OpencodeSettings(server_url=client.url)), store.load(session), failure
    )
    assert session not in client.status()
    stopped = next(m for m in client.messages(session) if text(m) == "half")
    assert stopped["info"]["error"]["name"] == "MessageAbortedError"
