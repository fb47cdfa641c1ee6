"""A small HTTP server that answers as OpenCode does, or as nobody should; it keeps what it was asked."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from socketserver import BaseRequestHandler, TCPServer, ThreadingTCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from recoveryd.core.model import Failure
from tests.support.trees import Tree

FAILURE = Failure("store", "ses_1", "msg_9", 1_795_000_000_000)
DIRECTORY = "/projects/a b"


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    directory: str | None
    authorization: str | None
    body: Any


@dataclass
class Fake:
    """What a client knows and says: one session, with one failed message; `answers` goes before that, by path."""

    url: str = ""
    version: str = "1.18.33"
    session: str = FAILURE.session
    directory: str = DIRECTORY
    message: str = FAILURE.message
    made: int = FAILURE.time
    status: Any = field(default_factory=dict)
    aborts: int = 1  # so many until it hears one
    accepts: int = 204
    password: str = ""
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    on_prompt: Callable[[Any], object] = lambda body: None
    on_abort: Callable[[], object] = lambda: None
    asked: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        if asked.path in self.answers:
            return self.answers[asked.path]
        if self.password and not asked.authorization:
            return 401, b""
        if asked.path == "/global/health":
            return 200, json.dumps({"healthy": True, "version": self.version}).encode()
        if asked.path == "/session/status":
            return 200, json.dumps(self.status).encode()
        if asked.path == "/tui/show-toast":
            return 200, b"true"
        return self._of_session(asked)

    def _of_session(self, asked: Asked) -> tuple[int, bytes]:
        rest = asked.path.removeprefix(f"/session/{self.session}")
        if rest == asked.path:
            return 404, b'{"name": "NotFoundError"}'
        if rest == "":
            return 200, json.dumps({"id": self.session, "directory": self.directory}).encode()
        if rest == f"/message/{self.message}":
            return 200, json.dumps({"info": {"time": {"created": self.made}}, "parts": []}).encode()
        if rest == "/prompt_async":
            self.on_prompt(asked.body)
            return self.accepts, b""
        if rest == "/abort":
            self.on_abort()
            self.aborts -= 1
            self.status = self.status if self.aborts > 0 else {}
        return (200, b"true") if rest == "/abort" else (404, b"{}")

    def paths(self, method: str = "POST") -> list[str]:
        return [asked.path for asked in self.asked if asked.method == method]


@contextmanager
def listening(fake: Fake | None = None, port: int = 0) -> Iterator[Fake]:
    """The fake on a free port of 127.0.0.1, or on `port`."""
    known = fake or Fake()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            directory = parse_qs(parts.query).get("directory", [None])[0]
            body = json.loads(content) if content else None
            asked = Asked(self.command, parts.path, directory, self.headers.get("Authorization"), body)
            known.asked.append(asked)
            status, answer = known.answer(asked)
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", answer.decode())
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _serving(_Http(("127.0.0.1", port), Handler)) as (_, number):
        known.url = f"http://127.0.0.1:{number}"
        yield known


@contextmanager
def saying(talk: Callable[[socket], object]) -> Iterator[str]:
    """A server that reads a request and then does as `talk` says; its address."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            talk(self.request)

    with _serving(_Tcp(("127.0.0.1", 0), Handler)) as (_, port):
        yield f"http://127.0.0.1:{port}"


class _Quiet(TCPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Who asks hangs up when its time is over, as it should."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Http(_Quiet, ThreadingHTTPServer):
    block_on_close = False


class _Tcp(_Quiet, ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def _serving(server: TCPServer) -> Iterator[tuple[TCPServer, int]]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server, int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def client_with(tree: Tree, session: str) -> Iterator[Fake]:
    """A client that listens and has this session, which was refused."""
    failure = tree.failure(session)
    known = Fake(session=session, directory="/planted", message=failure.message, made=failure.time)
    with listening(known) as fake:
        yield fake
