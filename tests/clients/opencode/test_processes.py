"""Finding clients by real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from recoveryd.clients.opencode.processes import Listener, is_client, listeners

# Two sockets: one of every address, one that only its own address reaches; and their ports.
LISTENS = """
import socket, sys
made = []
for host in ("0.0.0.0", "127.0.0.2"):
    made.append(socket.socket())
    made[-1].bind((host, 0))
    made[-1].listen()
print(*(s.getsockname()[1] for s in made), flush=True)
sys.stdin.read()
"""


@contextmanager
def running(name: str, folder: Path) -> Iterator[list[int]]:
    """A process started under this name, that listens; its ports."""
    with subprocess.Popen(
        [name, "-c", LISTENS], executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
    ) as process:
        assert process.stdout is not None
        try:
            yield [int(port) for port in process.stdout.readline().split()]
        finally:
            process.kill()


@pytest.mark.parametrize("error", [psutil.AccessDenied(1), PermissionError("no")])
def test_whose_data_can_not_be_told_may_have_any_store(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise error

    monkeypatch.setattr(psutil.Process, "environ", refused)
    with running("opencode", tmp_path) as (port, _):
        [client] = [listener for listener in listeners() if str(port) in listener.url]
    assert client.data == "" and client.may_have("/anywhere/opencode/storage")


def test_a_store_is_of_the_data_folder_that_it_lies_in_or_that_leads_to_it(tmp_path: Path) -> None:
    data, far = tmp_path / "share" / "opencode", tmp_path / "disk" / "sessions.db"
    data.mkdir(parents=True)
    far.parent.mkdir()
    far.touch()
    client = Listener("http://127.0.0.1:1", data=str(data))
    assert [client.may_have(str(data / name)) for name in ("storage", "opencode.db", "other.db")] == [True] * 3
    assert not client.may_have(str(far)) and not client.may_have(str(tmp_path / "other" / "opencode" / "storage"))
    (data / "opencode.db").symlink_to(far)
    assert client.may_have(str(far))


def urls() -> set[str]:
    return {found.url for found in listeners()}


@pytest.mark.live
def test_a_client_is_found_where_it_listens_on_loopback(tmp_path: Path) -> None:
    with running("opencode", tmp_path) as (everywhere, other):
        found = listeners()
        [client] = [listener for listener in found if listener.url == f"http://127.0.0.1:{everywhere}"]
        assert client.home == os.path.realpath(tmp_path) and psutil.pid_exists(client.pid)
        assert not any(str(other) in listener.url for listener in found)
    assert f"http://127.0.0.1:{everywhere}" not in urls()


def test_other_programs_are_not(tmp_path: Path) -> None:
    with running("opencode-helper", tmp_path) as (port, _):
        assert f"http://127.0.0.1:{port}" not in urls()


def test_another_users_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running("opencode", tmp_path) as (port, _):
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        assert f"http://127.0.0.1:{port}" not in urls()


@pytest.mark.parametrize("error", [psutil.AccessDenied(1), psutil.NoSuchProcess(1), PermissionError("no")])
def test_what_cannot_be_looked_at_is_passed_over(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise error

    with running("opencode", tmp_path):
        monkeypatch.setattr(psutil.Process, "net_connections", refused)
        assert listeners() == []


@pytest.mark.parametrize(
    ("name", "argv", "expected"),
    [
        ("opencode", ["opencode"], True),
        ("opencode", [], True),
        (".opencode", ["/usr/lib/node_modules/opencode-ai/bin/.opencode", "--port", "4096"], True),
        ("opencode-cli", ["/Applications/OpenCode.app/Contents/MacOS/opencode-cli", "serve"], True),
        ("bun", ["opencode", "serve"], True),
        ("node", ["node", "/usr/bin/opencode"], False),
        ("opencode-helper", ["opencode-helper"], False),
        ("vim", ["vim", "opencode"], False),
        ("", [], False),
    ],
)
def test_the_rule_for_names(name: str, argv: list[str], expected: bool) -> None:
    assert is_client(name, argv) is expected
