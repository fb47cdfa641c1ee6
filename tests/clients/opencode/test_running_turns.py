"""Who has a store: real processes of this user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from recoveryd.clients.opencode import processes
from recoveryd.clients.opencode.processes import Listener, first_process_using
from recoveryd.clients.opencode.running_turns import PROVIDER_S, RunningTurns
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.core.model import Session
from tests.support.build import SessionBuilder, tool
from tests.support.database import OLD, Base
from tests.support.fake_client import Fake, listening
from tests.support.trees import Tree

WAITS = "print('up', flush=True); sys.stdin.read()"


@contextmanager
def process(*argv: str, **env: str) -> Iterator[int]:
    """A process that says when it is up."""
    given = {"PATH": os.environ["PATH"], **env}
    running = subprocess.Popen(argv, env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert running.stdout is not None and running.stdout.readline() == b"up\n"
        yield running.pid
    finally:
        running.kill()
        running.communicate()


@pytest.fixture
def client(tmp_path: Path) -> str:
    """A program that is called like the client."""
    path = tmp_path / "bin" / "opencode"
    path.parent.mkdir()
    shutil.copy(shutil.which("sh") or "/bin/sh", path)
    return str(path)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "data")


WAIT = ("-c", "echo up; read -r _; true")


def test_nobody_has_a_store_that_is_only_there(tree: Tree, tmp_path: Path) -> None:
    assert first_process_using(tree.store) is None
    assert first_process_using(Base(tmp_path / "db" / "opencode.db", OLD).store) is None


def test_a_client_whose_data_are_here_has_the_tree(tree: Tree, client: str) -> None:
    with process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)) as pid:
        assert first_process_using(tree.store) == f"a running OpenCode (pid {pid})"
    assert first_process_using(tree.store) is None


def test_one_whose_data_are_elsewhere_has_not(tree: Tree, client: str, tmp_path: Path) -> None:
    with process(client, *WAIT, HOME=str(tmp_path / "other")):
        assert first_process_using(tree.store) is None
    with process(client, *WAIT, HOME="", XDG_DATA_HOME="relative"):
        assert first_process_using(tree.store) is not None, "where its data are is not known"


def test_a_client_that_another_program_started_is_none_of_a_test_s(tree: Tree, client: str) -> None:
    """Several tests run at once, each with clients of its own; one whose data may be anywhere may have any store."""
    starts = """exec 3<&0; "$0" -c 'echo $$; read -r _; true' <&3 &"""
    with subprocess.Popen(["/bin/sh", "-c", starts, client], env={}, stdin=-1, stdout=-1) as shell:
        assert shell.wait() == 0 and shell.stdout is not None
        other = psutil.Process(int(shell.stdout.readline()))
        assert (other.name(), other.environ().get("HOME")) == ("opencode", None)
        assert first_process_using(tree.store) is None


def test_whoever_has_the_database_open_has_it(tmp_path: Path) -> None:
    base = Base(tmp_path / "opencode.db", OLD)
    code = f"import sys; held = open({str(base.path)!r}, 'rb'); {WAITS}"
    with process(sys.executable, "-c", code) as pid:
        assert first_process_using(base.store) == f"a process that has it open (pid {pid})"
    assert first_process_using(base.store) is None


def test_where_no_process_can_be_looked_into_one_of_them_may_have_it(
    tree: Tree, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the user namespace of `install --strict`: names and arguments are all that can be seen there."""

    def denied(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    shown, name = [os.getppid()], psutil.Process.name  # whatever else runs on this machine
    monkeypatch.setattr(psutil, "process_iter", lambda: map(psutil.Process, shown))
    monkeypatch.setattr(psutil.Process, "name", lambda p: "editor" if p.pid == os.getppid() else name(p))
    base = Base(tmp_path / "db" / "opencode.db", OLD)
    assert first_process_using(base.store) is None
    monkeypatch.setattr(psutil.Process, "environ", denied)
    monkeypatch.setattr(psutil.Process, "open_files", denied)
    assert first_process_using(base.store) == "one of the processes, none of which can be looked into,"
    assert first_process_using(tree.store) is None, "a tree is a client's, and those have names"
    with process(client, *WAIT, HOME=str(tmp_path / "other")) as pid:
        shown.append(pid)
        assert first_process_using(tree.store) == f"a process that can't be looked into (pid {pid})"


def test_a_turn_may_be_under_way_while_it_is_young_or_held(tree: Tree, client: str) -> None:
    session = SessionBuilder(int(time.time() * 1000) - 60_000)
    session.user("go")
    tree._builders[session.session["id"]] = session
    name = tree._write(session)
    young = RunningTurns(10).under_way(tree.store, name)
    assert young is not None and "0 minutes ago" in young
    later = RunningTurns(10, lambda: time.time() + 11 * 60)
    assert later.under_way(tree.store, name) is None
    with process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)):
        held = RunningTurns(10, lambda: time.time() + 11 * 60).under_way(tree.store, name)
        assert held is not None and "a running OpenCode" in held


@pytest.fixture
def idle() -> OpencodeServer:
    """A client of a machine on which nobody listens."""
    return OpencodeServer(OpencodeSettings(server_url="http://127.0.0.1:9"))


def opened(tree: Tree, *content: Any, asked: bool = False) -> Session:
    """A session whose last answer is open; `asked`: another prompt stands behind it."""
    session = SessionBuilder(int(time.time() * 1000) - 60_000)
    session.user("go")
    session.assistant(*content, completed=False, bare=True)
    if asked:
        session.user("and then?")
    tree._builders[session.session["id"]] = session
    return tree.store.load(tree._write(session))


def test_a_client_that_has_the_store_may_wait_for_its_provider(tree: Tree, client: str, idle: OpencodeServer) -> None:
    """For as long as a provider may keep silent; a tool may run for ever."""
    bare, tool_runs = opened(tree), opened(tree, tool(status="running"), asked=True)
    now, later = RunningTurns(10), RunningTurns(10, lambda: time.time() + PROVIDER_S + 1)
    assert now.at_work(tree.store, bare, idle) is None, "nobody has the store"
    with process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)) as pid:
        said = now.at_work(tree.store, bare, idle)
        assert said is not None and f"(pid {pid})" in said
        assert now.at_work(tree.store, tool_runs, idle) is not None
        assert later.at_work(tree.store, bare, idle) is None
        assert later.at_work(tree.store, tool_runs, idle) is not None
    assert now.at_work(tree.store, tool_runs, idle) is None


@pytest.mark.parametrize(
    ("end", "works"),
    [
        (lambda s: None, True),
        (lambda s: s.assistant("an answer"), False),
        (lambda s: s.user("a prompt"), True),
    ],
)
def test_an_answer_is_open_until_a_newer_one_ends(
    tree: Tree, client: str, idle: OpencodeServer, end: Callable[[SessionBuilder], object], works: bool
) -> None:
    session = opened(tree)
    made = tree._builders[session.id]
    end(made)
    with process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)):
        found = RunningTurns(10).at_work(tree.store, tree.store.load(tree._write(made)), idle)
    assert (found is not None) is works


def test_a_prompt_alone_has_not_been_sent(tree: Tree, client: str, idle: OpencodeServer) -> None:
    """The client stores an answer, still empty, before it asks (seen on 1.1.53 and 1.2.1)."""
    session = SessionBuilder(int(time.time() * 1000) - 60_000)
    session.user("go")
    tree._builders[session.session["id"]] = session
    name = tree._write(session)
    with process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)):
        assert RunningTurns(10).at_work(tree.store, tree.store.load(name), idle) is None


@pytest.mark.parametrize(
    ("status", "works"), [({}, False), ({"SES": {"type": "busy"}}, True), ({"SES": {"type": "retry"}}, True)]
)
def test_one_that_listens_says_whether_it_is_at_work(
    tree: Tree, client: str, monkeypatch: pytest.MonkeyPatch, status: dict[str, Any], works: bool
) -> None:
    session = opened(tree)
    said = {name.replace("SES", session.id): value for name, value in status.items()}
    with (
        listening(Fake(status=said)) as fake,
        process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)) as pid,
    ):
        monkeypatch.setattr(processes, "listeners", lambda: [Listener(fake.url, "/home", pid=pid)])
        found = RunningTurns(10).at_work(tree.store, session, OpencodeServer(OpencodeSettings()))
        assert {asked.directory for asked in fake.asked} >= {"/planted"}
        assert works or {asked.directory for asked in fake.asked} == {"/planted", "/home"}
        with process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)):
            second = RunningTurns(10).at_work(tree.store, session, OpencodeServer(OpencodeSettings()))
    assert (found is not None) is works
    assert second is not None, "another one has the store, and does not listen"
