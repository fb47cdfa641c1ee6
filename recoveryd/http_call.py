"""One HTTP call that is over when its time is: no redirect, no proxy, no answer without end."""

from __future__ import annotations

import http.client
import io
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

_MOST = 1 << 20  # bytes of an answer


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, and the JSON of the body; None where it is none."""

    status: int
    data: Any

    def object(self) -> Mapping[str, Any]:
        """The JSON object of a call that went well; an empty one for anything else."""
        return self.data if self.status == 200 and isinstance(self.data, dict) else {}


def call(
    url: str,
    method: str,
    path: str,
    *,
    deadline: float,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer | None:
    """Ask `url` + `path`; None when no answer came by `deadline` (`time.monotonic()`). Raises nothing.

    `http.client` follows no redirect and knows no proxy. Its time limit is one for each read, which a server that sends
    a byte now and then stretches for ever: here every read gets what is left of the time.
    """
    try:
        return _call(url, method, path + (f"?{urlencode(query)}" if query else ""), deadline, body, headers or {})
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None  # nobody there, too slow, or no HTTP; a text that is no UTF-8 can't be asked for


def _call(
    url: str, method: str, path: str, deadline: float, body: Mapping[str, Any] | None, headers: Mapping[str, str]
) -> Answer | None:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    left = deadline - time.monotonic()
    if left <= 0:
        return None
    connection = kind(parts.hostname or "", parts.port, timeout=left)
    connection.response_class = _Response.until(deadline)
    sent = {**headers, "Connection": "close"}
    if body is not None:
        sent["Content-Type"] = "application/json"
    try:
        connection.request(method, parts.path.rstrip("/") + path, json.dumps(body) if body is not None else None, sent)
        with connection.getresponse() as response:
            content = response.read(_MOST + 1)
            return Answer(response.status, _json(content) if len(content) <= _MOST else None)
    finally:
        connection.close()


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


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
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
