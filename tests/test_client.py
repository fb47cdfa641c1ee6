"""Asking the running client for its version, over real HTTP on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from recoveryd.client import Client
from recoveryd.forms import forms_of
from recoveryd.sent import NEW, OLD
from recoveryd.settings import OpenCode
from recoveryd.stores.opencode_files import OpencodeFiles
from recoveryd.stores.opencode_sqlite import OpencodeSqlite


@contextmanager
def answering(body: bytes, status: int = 200) -> Iterator[tuple[str, list[str | None]]]:
    """A server that answers each request so; its address, and the credentials that it was given."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization") if self.path == "/global/health" else self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_version_is_asked_once_and_remembered() -> None:
    with answering(b'{"healthy": true, "version": "1.18.33"}') as (url, seen):
        client = Client(OpenCode(server_url=url))
        assert client.version() == client.version() == (1, 18, 33)
    assert seen == [None]


def test_the_password_of_the_file_is_sent(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    with answering(b'{"version": "1.2.1"}') as (url, seen):
        assert Client(OpenCode(server_url=url, password_file=tmp_path / "password")).version() == (1, 2, 1)
    assert seen == ["Basic b3BlbmNvZGU6czNjcmV0"]


@pytest.mark.parametrize("body", [b"", b"[]", b"no JSON", b'{"version": null}', b'{"version": "local"}', b"\xff"])
def test_whoever_else_listens_there_is_no_client(body: bytes) -> None:
    with answering(body) as (url, _):
        assert Client(OpenCode(server_url=url)).version() is None


def test_where_nobody_listens_the_answer_is_none() -> None:
    with answering(b"") as (url, _):
        pass
    assert Client(OpenCode(server_url=url)).version() is None


def test_a_password_file_that_is_missing_is_no_fault_of_a_repair(tmp_path: Path) -> None:
    settings = OpenCode(server_url="http://127.0.0.1:1", password_file=tmp_path / "gone")
    assert Client(settings).version() is None


class _Old(OpencodeSqlite):
    def forms(self) -> tuple[str, ...]:
        return ("old",)


def test_a_plan_has_to_hold_in_both_forms_where_schema_and_client_differ(tmp_path: Path) -> None:
    store = _Old(tmp_path / "opencode.db")
    with answering(b'{"version": "1.18.33"}') as (url, _):
        assert forms_of(store, Client(OpenCode(server_url=url))) == (OLD, NEW)
    with answering(b'{"version": "1.2.1"}') as (url, _):
        assert forms_of(store, Client(OpenCode(server_url=url))) == (OLD,)


def test_a_tree_of_files_is_sent_in_the_old_form_whoever_listens(tmp_path: Path) -> None:
    with answering(b'{"version": "1.18.33"}') as (url, seen):
        assert forms_of(OpencodeFiles(tmp_path), Client(OpenCode(server_url=url))) == (OLD,)
    assert seen == []
