"""The real Codex CLI with a home of its own, on loopback, against a fake provider: single prompts, and its server."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.client import PASSED_ON
from tests.e2e.codex.rollout import MODEL

_PATIENCE = 90.0  # seconds until a call of the client counts as a hang; nothing is measured by it
_CONFIG = """\
model = "{model}"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
{extra}
[model_providers.fake]
name = "fake"
base_url = "{url}"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


@dataclass(frozen=True)
class Turn:
    """What a prompt came to: the client's events as it prints them, and what it says on its error output."""

    code: int
    events: list[dict[str, Any]]
    said: str

    @property
    def thread(self) -> str:
        """The id of the thread."""
        return next(str(e["thread_id"]) for e in self.events if e.get("type") == "thread.started")

    @property
    def answer(self) -> str | None:
        """The last words of the model; None where it said none."""
        items = [e["item"] for e in self.events if e.get("type") == "item.completed"]
        return next((str(i["text"]) for i in reversed(items) if i.get("type") == "agent_message"), None)

    @property
    def error(self) -> str | None:
        """The words of the failure; None where the turn ended well."""
        failed = next((e for e in self.events if e.get("type") == "turn.failed"), None)
        if failed is not None:
            return str(failed["error"]["message"])
        return None if any(e.get("type") == "turn.completed" for e in self.events) else self.said or "no turn ended"


class Codex:
    """`codex` with its home and its project below `root`; a call is a process of its own. `extra`: top-level TOML."""

    def __init__(self, binary: Path, root: Path, provider_url: str, *, model: str = MODEL, extra: str = "") -> None:
        self.binary, self.root = binary, root.resolve()
        self.home = self.root / "codex"
        self.directory = self.root / "project"
        for folder in (self.home, self.directory, self.root / "home"):
            folder.mkdir(parents=True, exist_ok=True)
        config = _CONFIG.format(model=model, url=provider_url, extra=extra)
        (self.home / "config.toml").write_text(config)
        self.env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.env |= {"HOME": str(self.root / "home"), "CODEX_HOME": str(self.home), "FAKE_KEY": "none"}

    def exec(self, prompt: str, *options: str) -> Turn:
        """A prompt in a new thread."""
        return self._exec("exec", "--skip-git-repo-check", "--json", *options, prompt)

    def resume(self, thread: str, prompt: str, *options: str) -> Turn:
        """A prompt in a thread that is stored."""
        return self._exec("exec", "resume", "--skip-git-repo-check", "--json", *options, thread, prompt)

    def _exec(self, *words: str) -> Turn:
        done = subprocess.run(
            [str(self.binary), *words],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
        lines = done.stdout.decode(errors="replace").splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return Turn(done.returncode, events, done.stderr.decode(errors="replace")[-2000:])

    def rollout(self, thread: str) -> Path:
        """The file of a thread."""
        return next(self.home.glob(f"sessions/**/rollout-*-{thread}.jsonl"))

    @contextmanager
    def server(self) -> Iterator[Server]:
        """`codex app-server`, ready to be asked, until the end of the block."""
        log = (self.root / "app-server.log").open("ab")
        process = subprocess.Popen(
            [str(self.binary), "app-server"],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            yield Server(process)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout, log):
                if pipe is not None:
                    pipe.close()


class RpcError(Exception):
    """The server answered a call with an error."""


class Server:
    """JSON-RPC over the pipes of `codex app-server`, one call at a time. What it asks of us is declined."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.notices: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()
        self.call("initialize", clientInfo={"name": "recoveryd_tests", "title": "tests", "version": "1"})
        self._send({"method": "initialized"})

    def call(self, method: str, **params: Any) -> Any:
        """The result of a call. `RpcError`: with the server's words."""
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise RpcError(str(message["error"]))
                return message["result"]

    def turn(self, thread: str, prompt: str) -> dict[str, Any]:
        """A prompt in a thread that is loaded: the turn as it ended."""
        started = self.call("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}])
        turn = started["turn"]["id"]
        while True:
            for notice in self.notices:
                if notice["method"] == "turn/completed" and notice["params"]["turn"]["id"] == turn:
                    return dict(notice["params"]["turn"])
            self._next()

    def wait(self, method: str) -> None:
        """Go on once such a notice has come."""
        while not any(notice["method"] == method for notice in self.notices):
            self._next()

    def read(self, thread: str) -> list[dict[str, Any]]:
        """The turns of a stored thread."""
        return list(self.call("thread/read", threadId=thread, includeTurns=True)["thread"]["turns"])

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        message = self._incoming.get(timeout=_PATIENCE)
        if message is None:
            raise RpcError("the server has gone")
        if "method" in message and "id" in message:
            self._send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})
        elif "method" in message:
            self.notices.append(message)
        return message

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._incoming.put(json.loads(line))
        self._incoming.put(None)
