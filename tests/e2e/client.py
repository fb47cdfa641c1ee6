"""The real client, run as a server with a home of its own, on loopback, against a fake provider."""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.support.build import BINDS

MODEL = "claude-sonnet-4-5"
WIDE = "claude-opus-4-1"  # takes a million tokens, by the settings
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "TEST_RECOVERYD_LOCKS")


@dataclass(frozen=True)
class PromptResult:
    """What a prompt came to: the HTTP status, the assistant's message and parts, and the error that it records."""

    status: int
    info: dict[str, Any] | None
    parts: list[dict[str, Any]]
    error: dict[str, Any] | None


class Client:
    """`opencode serve` under `root` (all of its folders are there), as a context manager.

    `directory` is the project that sessions belong to. `config` is merged over the configuration that points the
    client at the provider; `password` turns basic authentication on; `context`: the tokens that its settings give the
    model.
    """

    def __init__(
        self,
        binary: Path,
        root: Path,
        provider_url: str,
        *,
        config: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        password: str | None = None,
        model: str = MODEL,
        context: int = 200_000,
    ) -> None:
        self.binary, self.root, self.password, self.model = binary, root.resolve(), password, model
        self.directory = self.root / "project"
        self.data = self.root / "data" / "opencode"
        self.storage = self.data / "storage"
        self.database = self.data / "opencode.db"
        self.log = self.root / "server.log"
        self.port = 0
        self._env = self._environment(env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        for folder in (self.directory, self.data, self.root / "config" / "opencode"):
            folder.mkdir(parents=True, exist_ok=True)
        settings = {**_settings(provider_url, model, context), **(config or {})}
        (self.root / "config" / "opencode" / "opencode.json").write_text(json.dumps(settings, indent=1))

    def _environment(self, extra: dict[str, str]) -> dict[str, str]:
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        env["HOME"] = str(self.root / "home")
        for name in ("data", "config", "state", "cache"):
            env[f"XDG_{name.upper()}_HOME"] = str(self.root / name)
        for name in ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD"):
            env[f"OPENCODE_DISABLE_{name}"] = "1"
        if self.password:
            env["OPENCODE_SERVER_PASSWORD"] = self.password
        (self.root / "home").mkdir(parents=True, exist_ok=True)
        return {**env, **extra}

    def __enter__(self) -> Client:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None, "the client is not running"
        return self._process.pid

    def start(self, timeout: float = 60.0) -> None:
        """Start the server and wait until it is healthy; raises `RuntimeError` with the end of its log."""
        self.port = free_port()
        self._output = self.log.open("ab")
        command = [str(self.binary), "serve", "--port", str(self.port), "--hostname", "127.0.0.1"]
        self._process = subprocess.Popen(
            command, cwd=self.directory, env=self._env, stdout=self._output, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if self.call("GET", "/global/health", timeout=5)[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the client did not become healthy: {self.log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        """End the server: by request, and after 5 s by force. May be called twice."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(5)
        if self._output is not None:
            self._output.close()
        self._process = self._output = None

    def call(self, method: str, path: str, body: Any = None, timeout: float = 60.0, **query: str) -> tuple[int, Any]:
        """One HTTP request for this project: the status, and the JSON (or else the text) of the answer."""
        query = {"directory": str(self.directory), **query}
        request = urllib.request.Request(f"{self.url}{path}?{urllib.parse.urlencode(query)}", method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if self.password:
            secret = base64.b64encode(f"opencode:{self.password}".encode()).decode()
            request.add_header("Authorization", f"Basic {secret}")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, _json(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _json(error.read())

    def new_session(self, title: str | None = None, **fields: Any) -> dict[str, Any]:
        """A new session. With a title of its own the client does not ask the provider for one."""
        status, session = self.call("POST", "/session", {"title": title or f"test {secrets.token_hex(4)}", **fields})
        if status != 200:
            raise RuntimeError(f"no session: {status} {session}")
        return dict(session)

    def prompt(
        self, session: str, text: str = "continue", thinking: bool = False, timeout: float = 60.0, **fields: Any
    ) -> PromptResult:
        """Prompt a session and wait for the end of the turn. Further fields go into the request as they are."""
        body: dict[str, Any] = {"parts": [{"type": "text", "text": text}], **fields}
        if thinking:
            body["variant"] = "high"
        status, answer = self.call("POST", f"/session/{session}/message", body, timeout)
        if not isinstance(answer, dict) or "info" not in answer:
            return PromptResult(status, None, [], answer if isinstance(answer, dict) else None)
        return PromptResult(status, answer["info"], answer.get("parts") or [], answer["info"].get("error"))

    def prompt_async(self, session: str, text: str = "continue", thinking: bool = False, **fields: Any) -> int:
        """Prompt a session and return at once with the HTTP status (204 is good)."""
        body: dict[str, Any] = {"parts": [{"type": "text", "text": text}], **fields}
        if thinking:
            body["variant"] = "high"
        return self.call("POST", f"/session/{session}/prompt_async", body)[0]

    def messages(self, session: str) -> list[dict[str, Any]]:
        """The session's messages as the client lists them, `{info, parts}` each."""
        status, listed = self.call("GET", f"/session/{session}/message")
        if status != 200:
            raise RuntimeError(f"no messages: {status} {listed}")
        return list(listed)

    def status(self) -> dict[str, Any]:
        """The sessions that are not idle, by id."""
        return dict(self.call("GET", "/session/status")[1])

    def wait_idle(self, session: str, timeout: float = 30.0) -> None:
        """Wait until the client says that nothing runs in this session."""
        deadline = time.monotonic() + timeout
        while session in self.status():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{session} is still busy")
            time.sleep(0.02)

    def abort(self, session: str) -> bool:
        """Abort the turn that runs in a session; true if the client accepted it."""
        return self.call("POST", f"/session/{session}/abort")[0] == 200

    def version(self) -> str:
        """The client's version as it tells it."""
        return str(self.call("GET", "/global/health")[1]["version"])


def _settings(provider_url: str, model: str, context: int) -> dict[str, Any]:
    limit = {"context": context, "output": min(32_000, context // 3)}
    modalities = {"input": ["text", "image", "pdf"], "output": ["text"]}
    described = {
        "reasoning": True,
        "tool_call": True,
        "attachment": True,
        "temperature": True,
        "limit": limit,
        "modalities": modalities,
    }
    return {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "model": f"anthropic/{model}",
        "small_model": f"anthropic/{model}",
        "permission": {"*": "allow"},
        "provider": {
            "anthropic": {
                "npm": "@ai-sdk/anthropic",
                "options": {"baseURL": provider_url, "apiKey": "x"},
                "models": {
                    **{name: {**described, "name": name} for name in (model, BINDS["modelID"])},
                    WIDE: {**described, "name": WIDE, "limit": {**limit, "context": 1_000_000}},
                },
            }
        },
    }


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
