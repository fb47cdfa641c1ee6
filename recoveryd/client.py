"""The running client over HTTP, on this machine alone. All of it is optional: a plain TUI does not listen at all."""

from __future__ import annotations

import base64
import http.client
import json
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

from recoveryd.settings import OpenCode

DEFAULT_URL = "http://127.0.0.1:4096"
_TIMEOUT_S = 0.5
_REMEMBERED_S = 30.0  # clients do not change their version that often
_MOST = 1 << 16  # bytes of an answer


class Client:
    """Asks the client that listens at the configured address, or at the usual one."""

    def __init__(self, settings: OpenCode) -> None:
        self._url = urlsplit(settings.server_url or DEFAULT_URL)
        self._password_file = settings.password_file
        self._version: tuple[float, tuple[int, ...] | None] = (float("-inf"), None)

    def version(self) -> tuple[int, ...] | None:
        """Of the running client, (1, 18, 33); None when none answers. Takes half a second at most."""
        asked, version = self._version
        if time.monotonic() - asked > _REMEMBERED_S:
            version = self._ask_version()
            self._version = time.monotonic(), version
        return version

    def _ask_version(self) -> tuple[int, ...] | None:
        try:
            answer = json.loads(self._get("/global/health"))
            return tuple(int(number) for number in answer["version"].split("-")[0].split("."))
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _get(self, path: str) -> bytes:
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._url.hostname or "127.0.0.1", self._url.port, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", path, headers=self._headers())
            return connection.getresponse().read(_MOST)
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        password = _read(self._password_file) or os.environ.get("OPENCODE_SERVER_PASSWORD", "")
        if not password:
            return {}
        return {"Authorization": "Basic " + base64.b64encode(f"opencode:{password}".encode()).decode()}


def _read(path: Path | None) -> str:
    return path.read_text().strip() if path is not None else ""
