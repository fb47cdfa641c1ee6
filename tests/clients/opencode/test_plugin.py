"""The plugin's two halves: its JavaScript in a real process with a client of the test's, and the mailbox between."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients import Caller, Prompt
from recoveryd.clients.opencode import plugin_mailbox
from recoveryd.clients.opencode.plugin_file import OpencodePlugin
from recoveryd.clients.opencode.processes import Listener
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.server_address import LocalServers
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core import Failure
from recoveryd.disk import private_files
from recoveryd.service import base
from recoveryd.settings import paths
from recoveryd.tell import NOT_AGAIN
from tests.conftest import Run
from tests.support.trees import EMPTY, Tree, blank_answer

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not shutil.which("node"), reason="node is not installed, which comes with npm"),
]
DRIVER = Path(__file__).with_name("plugin_driver.mjs")
FAILURE = Failure("/store", "ses_1", "msg_1", 7)


class Loaded:
    """The plugin in a process of node. A context manager."""

    def __init__(self, root: Path, how: str = "", command: tuple[str, ...] = ("/bin/false",)) -> None:
        config = root / "config"
        config.mkdir(exist_ok=True)
        state = private_files.make_folder(root / "state" / "recoveryd")
        self.mailbox = private_files.make_folder(state / "plugin")
        file = root / "recoveryd.mjs"
        given = {"GIVEN": "yes", **{name: os.environ[name] for name in os.environ if name.startswith("XDG_")}}
        file.write_text(OpencodePlugin("opencode", config, ()).text(Caller(command, given, state)))
        self.directory = root
        self.process = subprocess.Popen(
            ["node", str(DRIVER), str(file), str(root), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._said() == "loaded"

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def do(self, **what: Any) -> Any:
        assert self.process.stdin is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)
        return self._said()

    def _said(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def names(self) -> list[str]:
        return [name for name, _ in self.do(does="calls")]

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, seconds: float = 20.0) -> Any:
        [one] = plugin_mailbox.loaded("opencode", self.mailbox)
        deadline, query = time.monotonic() + seconds, {"directory": "/d"}
        return plugin_mailbox.ask(one.key, method, path, deadline=deadline, query=query, body=body, place=self.mailbox)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Loaded]]:
    monkeypatch.setattr("recoveryd.settings.paths.state_dir", lambda: tmp_path / "state" / "recoveryd")
    with ExitStack() as stack:
        yield lambda *given, **named: stack.enter_context(Loaded(tmp_path, *given, **named))


def test_what_it_is_asked_it_has_the_client_do_and_tells_no_word_of_a_conversation(load: Callable[..., Loaded]) -> None:
    there = load()
    answers = [
        there.ask("GET", "/global/health"),
        there.ask("GET", "/session/status"),
        there.ask("GET", "/session/ses_1"),
        there.ask("GET", "/session/ses_1/message/msg_1"),
        there.ask("POST", "/session/ses_1/abort"),
        there.ask("POST", "/tui/show-toast", {"message": "healed"}),
        there.ask("POST", "/session/ses_1/prompt_async", {"parts": []}),
    ]
    assert [(answer.status, answer.data) for answer in answers] == [
        (200, {"version": "1.18.33"}),
        (200, {"ses_1": {"type": "busy"}}),
        (200, {"id": "ses_1", "directory": str(there.directory), "ran": False}),
        (200, {"info": {"time": {"created": 7}}}),
        (200, None),
        (200, None),
        (204, None),
    ]
    calls = there.do(does="calls")
    assert calls[2] == ["session", {"path": {"id": "ses_1"}, "query": {"directory": "/d"}}]
    assert calls[5] == ["toast", {"query": {"directory": "/d"}, "body": {"message": "healed"}}]
    assert [path.suffix for path in there.mailbox.iterdir()] == [".json"], "no question or answer is left"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/session/ses_1/message"), ("DELETE", "/session/ses_1"), ("GET", "/session/../config"), ("GET", "/file")],
)
def test_it_calls_nothing_else(load: Callable[..., Loaded], method: str, path: str) -> None:
    there = load()
    assert there.ask(method, path).status == 501
    assert there.names() == []


def test_what_came_too_late_is_never_done(load: Callable[..., Loaded]) -> None:
    """A prompt that nobody waits for any more would be one too many."""
    there = load()
    [one] = plugin_mailbox.loaded("opencode", there.mailbox)
    late = {"version": 1, "until": 1, "method": "POST", "path": "/session/ses_1/abort", "query": {}, "body": None}
    private_files.write(there.mailbox / f"{one.key}.late.ask", json.dumps(late).encode())
    assert there.ask("GET", "/session/status").status == 200
    assert not list(there.mailbox.glob("*.late.*"))
    assert there.names() == ["status"]


def test_it_says_nothing_on_the_screen_however_often_it_is_asked(load: Callable[..., Loaded]) -> None:
    """What a TUI's process prints stands across its screen; node warns of the eleventh listener, say."""
    there = load()
    for _ in range(15):
        assert there.ask("GET", "/session/status").status == 200
    assert there.process.communicate(timeout=20) == ("", "")
    assert list(there.mailbox.iterdir()) == []


def test_it_is_loaded_once_for_each_folder_and_gone_with_the_client(load: Callable[..., Loaded]) -> None:
    there = load("many folders")
    assert len(plugin_mailbox.loaded("opencode", there.mailbox)) == 16
    assert there.process.communicate(timeout=20) == ("", "")
    assert list(there.mailbox.iterdir()) == []


def test_it_waits_for_its_folder(load: Callable[..., Loaded]) -> None:
    """recoveryd may have gone, or not be there yet: nothing is made for it, and it is found again."""
    there = load()
    shutil.rmtree(there.mailbox)
    private_files.make_folder(there.mailbox)
    deadline = time.monotonic() + 30
    while not plugin_mailbox.loaded("opencode", there.mailbox):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert there.ask("GET", "/session/status").status == 200


def test_a_client_that_changed_is_not_broken_and_it_is_said_what_is_missing(load: Callable[..., Loaded]) -> None:
    there = load("changed")
    [one] = plugin_mailbox.loaded("opencode", there.mailbox)
    assert "session.abort" in one.missing
    assert "tui.showToast" not in one.missing
    assert there.ask("GET", "/session/status").status == 500
    assert there.do(does="config", config={})["command"].keys() == {"recoveryd"}


def test_a_call_that_fails_is_no_answer_where_it_may_have_done_something(load: Callable[..., Loaded]) -> None:
    there = load("throws")
    assert there.ask("GET", "/session/ses_1").status == 500
    assert there.ask("POST", "/session/ses_1/abort", seconds=0.5) is None
    assert there.ask("GET", "/session/status").status == 200


def test_loaded_twice_for_a_folder_it_is_there_once(load: Callable[..., Loaded]) -> None:
    there = load("twice")
    assert len(plugin_mailbox.loaded("opencode", there.mailbox)) == 1
    assert plugin_mailbox.loaded("kilo", there.mailbox) == []


def test_what_a_client_that_was_killed_leaves_is_no_client_and_goes(load: Callable[..., Loaded]) -> None:
    there = load()
    there.process.kill()
    there.process.communicate()
    assert plugin_mailbox.loaded("opencode", there.mailbox) == []
    plugin_mailbox.prune(there.mailbox)
    assert list(there.mailbox.iterdir()) == []


@pytest.mark.parametrize("wrong", ["mode of the folder", "mode", "link", "no JSON", "another process", "too long"])
def test_a_sign_of_life_that_is_not_ours_alone_is_none(load: Callable[..., Loaded], wrong: str) -> None:
    there = load()
    [file] = there.mailbox.glob("*.json")
    there.process.kill()
    there.process.communicate()
    said = json.loads(file.read_text())
    said["pid"], name = os.getpid(), f"{os.getpid()}-0123456789ab.json"
    file.unlink()
    file = there.mailbox / name
    private_files.write(file, json.dumps(said | {"started": time.time() * 1000}).encode())
    assert len(plugin_mailbox.loaded("opencode", there.mailbox)) == 1
    if wrong == "mode of the folder":
        there.mailbox.chmod(0o755)
    elif wrong == "mode":
        file.chmod(0o644)
    elif wrong == "link":
        file.rename(there.mailbox / "elsewhere")
        file.symlink_to(there.mailbox / "elsewhere")
    elif wrong == "another process":
        private_files.write(file, json.dumps(said | {"started": 1}).encode())
    else:
        private_files.write(file, b"{" if wrong == "no JSON" else b" " * 100_000 + b"{}")
    assert plugin_mailbox.loaded("opencode", there.mailbox) == []


def test_a_number_of_any_length_breaks_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    said = {"version": 1, "plugin": "", "client": "opencode", "pid": os.getpid(), "directory": "/"}
    life = json.dumps(said | {"started": 10**400})
    private_files.write(tmp_path / f"{os.getpid()}-0123456789ab.json", life.encode())
    assert len(plugin_mailbox.loaded("opencode", tmp_path)) == 1


def recoveryd(root: Path, listed: object) -> tuple[str, ...]:
    """A program that notes how it is called, lists these recoveries, and undoes."""
    program = root / "program"
    lists = f"cat <<'END'\n{json.dumps(listed)}\nEND\n"
    undoes = """;; *) echo '{"undone": true}' ;;"""
    program.write_text(f'#!/bin/sh\necho "$GIVEN $*" >> {root}/asked\ncase $* in *history*) {lists}{undoes} esac\n')
    program.chmod(0o755)
    return (str(program),)


HEALED = {"id": "r1", "time": 1, "outcome": "healed", "detail": "Closed the open turn"}


@pytest.mark.parametrize(
    ("words", "asked", "shown"),
    [
        ("", ["history"], "Closed the open turn (r1)"),
        ("undo", ["history", "--quiet undo --json r1"], "Undone (r1)"),
    ],
)
def test_the_command_tells_or_undoes_and_asks_no_model(
    load: Callable[..., Loaded], tmp_path: Path, words: str, asked: list[str], shown: str
) -> None:
    gave_up = HEALED | {"id": "r2", "outcome": "gave_up", "detail": "Refused again"}
    there = load(command=recoveryd(tmp_path, [gave_up, HEALED]))
    there.do(does="config", config={})
    assert there.do(does="command", command="recoveryd", words=words) == "stopped"
    lines = (tmp_path / "asked").read_text().splitlines()
    assert all(line.startswith("yes ") for line in lines), "with the environment of the installation"
    assert [part in line for part, line in zip(asked, lines, strict=True)] == [True] * len(asked)
    [(name, toast)] = there.do(does="calls")
    assert name == "toast"
    assert shown in toast["body"]["message"]


def test_what_a_forced_undo_wrote_over_is_told_as_kept(load: Callable[..., Loaded], tmp_path: Path) -> None:
    """As `recoveryd history` lists it: the forced undo was not undone."""
    undone = HEALED | {"outcome": "undone", "overwritten": False}
    kept = undone | {"id": "r2", "detail": "Forced undo of r1.", "overwritten": True}
    there = load(command=recoveryd(tmp_path, [kept, undone]))
    there.do(does="config", config={})
    assert there.do(does="command", command="recoveryd", words="") == "stopped"
    [(_, toast)] = there.do(does="calls")
    first, second = toast["body"]["message"].split("\n\n")
    assert first.endswith(", kept: Forced undo of r1. (r2)")
    assert second.endswith(", undone: Closed the open turn (r1)")


def test_the_command_of_the_installation_does_it(load: Callable[..., Loaded], tree: Tree, run: Run) -> None:
    """The program itself, on a session that was healed: what was done is told, and taken back."""
    session = tree.stuck(blank_answer, EMPTY)
    before = tree.files()
    assert run("scan", "--repair")[0] == 0
    there = load(command=base.command())
    there.do(does="config", config={})
    for words in ("", "undo", "undo"):
        assert there.do(does="command", command="recoveryd", words=words, session=session) == "stopped"
    told, undone, nothing = [toast["body"] for _, toast in there.do(does="calls")]
    assert "To take the newest back" in told["message"] and "healed" in told["message"]
    assert (undone["variant"], undone["message"][:6]) == ("success", "Undone")
    assert undone["message"].endswith(f" {NOT_AGAIN}.")
    assert nothing["message"] == "There is no repair of this session to take back."
    assert tree.files() == before


def test_under_a_dry_run_nothing_is_said_to_be_undone(load: Callable[..., Loaded], tree: Tree, run: Run) -> None:
    session = tree.stuck(blank_answer, EMPTY)
    assert run("scan", "--repair")[0] == 0
    before = tree.files()
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text("dry_run = true\n")
    there = load(command=base.command())
    there.do(does="config", config={})
    assert there.do(does="command", command="recoveryd", words="undo", session=session) == "stopped"
    [(_, toast)] = there.do(does="calls")
    assert (toast["body"]["variant"], tree.files()) == ("warning", before)
    assert toast["body"]["message"].startswith("Nothing was undone") and "`dry_run`" in toast["body"]["message"]


def test_continue_is_sent_as_the_user_would_type_it(load: Callable[..., Loaded]) -> None:
    there = load()
    there.do(does="config", config={})
    said = there.do(does="command", command="recoveryd", words="continue")
    assert said == [{"type": "text", "text": "continue"}]


def test_other_commands_and_one_of_that_name_that_is_the_users_own_are_left_alone(load: Callable[..., Loaded]) -> None:
    there = load()
    own = {"command": {"recoveryd": {"template": "mine"}}}
    assert there.do(does="config", config=own) == own
    for command in ("recoveryd", "init"):
        assert there.do(does="command", command=command, words="")[0]["text"] == "the template"


def servers(monkeypatch: pytest.MonkeyPatch, *found: Listener) -> None:
    monkeypatch.setattr(LocalServers, "found", lambda self: list(found))


def test_a_client_that_does_not_listen_shows_toasts_is_prompted_and_aborted(
    load: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = load()
    servers(monkeypatch)
    server = OpencodeServer(OpencodeSettings())
    folder = str(there.directory)
    assert server.has(FAILURE, folder)
    assert server.toast(FAILURE, folder, "healed", "how", "success")
    assert server.abort(FAILURE, folder, lambda: True)
    assert server.prompt(FAILURE, folder, Prompt(), "continue", "r1", lambda: None)[0] == "busy"
    assert server.versions("/store", "ses_1", folder) == ((1, 18, 33),)
    assert not server.has(Failure("/store", "ses_1", "msg_1", 8), folder), "that of a copy of the store"
    assert there.names().count("toast") == 1


@pytest.mark.parametrize("which", [0, 1])
def test_of_two_in_a_folder_the_one_that_ran_the_session_is_prompted(
    load: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    both = [load("idle"), load("idle")]
    servers(monkeypatch)
    both[which].do(does="event", session="ses_1")
    server = OpencodeServer(OpencodeSettings())
    assert server.prompt(FAILURE, str(both[0].directory), Prompt(), "continue", "r1", lambda: None)[0] == "sent"
    assert [one.names().count("prompt") for one in both] == [which == 0, which == 1]


@pytest.mark.parametrize("configured", [None, "http://localhost:4097"])
def test_one_that_listens_too_is_not_told_twice(
    load: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch, configured: str | None
) -> None:
    there = load()
    by_port = Listener("http://127.0.0.1:4097", str(there.directory), pid=there.process.pid)
    servers(monkeypatch, by_port)
    reached = LocalServers(OpencodeSettings(server_url=configured)).reached()
    assert [one.url for one in reached] == [configured or by_port.url]
    servers(monkeypatch)
    urls = [one.url for one in LocalServers(OpencodeSettings(server_url=configured)).reached()]
    assert [url for url in urls if url.startswith("plugin:")]


def test_nothing_is_made_or_asked_where_no_plugin_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recoveryd.settings.paths.state_dir", lambda: tmp_path / "state" / "recoveryd")
    assert plugin_mailbox.loaded("opencode") == []
    plugin_mailbox.prune()
    assert plugin_mailbox.ask("1-0123456789ab", "GET", "/session/status", deadline=time.monotonic() + 1) is None
    assert list(tmp_path.iterdir()) == []
