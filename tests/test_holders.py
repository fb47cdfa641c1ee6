"""Who has a store: real processes of this user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from recoveryd.holders import Holders, holder
from tests.build import SessionBuilder
from tests.database import OLD, Base
from tests.trees import Tree

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
    assert holder(tree.store) is None
    assert holder(Base(tmp_path / "db" / "opencode.db", OLD).store) is None


def test_a_client_whose_data_are_here_has_the_tree(tree: Tree, client: str) -> None:
    with process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)) as pid:
        assert holder(tree.store) == f"a running OpenCode (pid {pid})"
    assert holder(tree.store) is None


def test_one_whose_data_are_elsewhere_has_not(tree: Tree, client: str, tmp_path: Path) -> None:
    with process(client, *WAIT, HOME=str(tmp_path / "other")):
        assert holder(tree.store) is None
    with process(client, *WAIT, HOME="", XDG_DATA_HOME="relative"):
        assert holder(tree.store) is not None, "where its data are is not known"


def test_whoever_has_the_database_open_has_it(tmp_path: Path) -> None:
    base = Base(tmp_path / "opencode.db", OLD)
    code = f"import sys; held = open({str(base.path)!r}, 'rb'); {WAITS}"
    with process(sys.executable, "-c", code) as pid:
        assert holder(base.store) == f"a process that has it open (pid {pid})"
    assert holder(base.store) is None


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
    assert holder(base.store) is None
    monkeypatch.setattr(psutil.Process, "environ", denied)
    monkeypatch.setattr(psutil.Process, "open_files", denied)
    assert holder(base.store) == "one of the processes, none of which can be looked into,"
    assert holder(tree.store) is None, "a tree is a client's, and those have names"
    with process(client, *WAIT, HOME=str(tmp_path / "other")) as pid:
        shown.append(pid)
        assert holder(tree.store) == f"a process that can't be looked into (pid {pid})"


def test_a_turn_may_be_under_way_while_it_is_young_or_held(tree: Tree, client: str) -> None:
    session = SessionBuilder(int(time.time() * 1000) - 60_000)
    session.user("go")
    tree._builders[session.session["id"]] = session
    name = tree._write(session)
    young = Holders(10).under_way(tree.store, name)
    assert young is not None and "0 minutes ago" in young
    later = Holders(10, lambda: time.time() + 11 * 60)
    assert later.under_way(tree.store, name) is None
    with process(client, *WAIT, XDG_DATA_HOME=str(tree.root.parent.parent)):
        held = Holders(10, lambda: time.time() + 11 * 60).under_way(tree.store, name)
        assert held is not None and "a running OpenCode" in held
