"""Make one HTTP call that ends in time: no redirect, no proxy, no answer without end."""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from recoveryd.core import json_of

_MOST = 1 << 20  # bytes of an answer

# Whether anything may be said over this connection, told by a deadline (`time.monotonic()`).
Admit = Callable[[socket.socket, float], bool]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an HTTP call to a client: the status, and the JSON of the body; None where it is none."""

    status: int
    data: Any

    def object(self) -> Mapping[str, Any]:
        """Return the JSON object of a call that went well; an empty one for anything else."""
        return self.data if self.status == 200 and isinstance(self.data, dict) else {}


def call(
    url: str,
    method: str,
    path: str,
    *,
    deadline: float,
    admit: Admit,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer | None:
    """Make an HTTP call to a client, at `url` + `path`; None when no answer came by `deadline` (`time.monotonic()`).
    Raises nothing.

    `admit` is asked once there is a connection, before a byte is sent over it.

    `http.client` follows no redirect and knows no proxy. Its time limit is one for each read, which a server that sends
    a byte now and then stretches for ever: here every read gets what is left of the time.
    """
    try:
        connection = _Connection(url, deadline, admit)
        return _call(connection, method, path + (f"?{urlencode(query)}" if query else ""), body, headers or {})
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None  # nobody there, too slow, or no HTTP; a text that is no UTF-8 can't be asked for


def _call(
    connection: _Connection, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
) -> Answer:
    sent = {**headers, "Connection": "close"}
    if body is not None:
        sent["Content-Type"] = "application/json"
    try:
        connection.request(method, connection.base + path, json.dumps(body) if body is not None else None, sent)
        with connection.getresponse() as response:
            content = response.read(_MOST + 1)
            return Answer(response.status, json_of(content) if len(content) <= _MOST else None)
    finally:
        connection.close()


class _Connection(http.client.HTTPConnection):
    """Says nothing, not even hello to a server with TLS, before `admit` was asked about the connection."""

    def __init__(self, url: str, deadline: float, admit: Admit) -> None:
        parts = urlsplit(url)
        self._secured = parts.scheme == "https"
        super().__init__(parts.hostname or "", parts.port or (443 if self._secured else 80))
        self.base = parts.path.rstrip("/")
        self.response_class = _Response.until(deadline)
        self._deadline, self._admit = deadline, admit

    def connect(self) -> None:
        sock = socket.create_connection((self.host, self.port), timeout=_left(self._deadline))
        try:
            if not self._admit(sock, self._deadline):
                raise PermissionError("nothing may be said to who listens there")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the body follows the headers at once
            sock.settimeout(_left(self._deadline))
            context = ssl.create_default_context() if self._secured else None
            self.sock = context.wrap_socket(sock, server_hostname=self.host) if context else sock
        except BaseException:
            sock.close()
            raise


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left


class _Response(http.client.HTTPResponse):
    """Reads from its socket until `deadline`."""

    @classmethod
    def until(cls, deadline: float) -> type[_Response]:
        class Limited(cls):  # type: ignore[misc, valid-type]
            def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
                super().__init__(cast(socket.socket, _Reads(sock, deadline)), *arguments, **named)

        return Limited


class _Reads:
    """All that a response wants of a socket: a file to read from."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        del mode  # "rb"
        return io.BufferedReader(_Timed(self._sock, self._deadline))


class _Timed(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open until it is closed itself
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
