"""The real Claude Code, by npm, in a home of its own."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.install import UnavailableError, clients_folder, installed, package, version_of
from tests.e2e.provider import Forced, Provider, Request
from tests.support.transcript import Transcript

VERSION = version_of("claude_code")
MOST_IMAGES = 20  # as Bedrock, and some gateways
GONE_URL, GONE_FILE = "http://127.0.0.1:9/gone.png", "file_gone"
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "IS_SANDBOX": "1",
}


def ensure(version: str = VERSION) -> Path:
    """The client's binary. Raises `UnavailableError` with the reason."""
    if platform.system() != "Linux":
        raise UnavailableError(f"no Claude Code is installed here on {platform.system()}")
    name = package("claude_code")
    return installed(clients_folder() / f"claude-code-{version}", f"{name}@{version}", f"{name}/claude")


def out_of_reach(body: dict[str, Any]) -> Forced | None:
    """What the provider says of an address, a file or a tool that is gone, and of too many images."""
    asked = json.dumps(body["messages"])
    images = asked.count('{"type": "image", ')
    if images > MOST_IMAGES:
        return Forced(f"too many images and documents: {images} + 0 > {MOST_IMAGES}")
    offered = {tool.get("name") for tool in body.get("tools") or ()}
    for tool in re.findall(r'\{"type": "tool_reference", "tool_name": "([^"]*)"', asked):
        if tool not in offered:
            return Forced(f"Tool reference '{tool}' not found in available tools")
    if f'"url": "{GONE_URL}"' in asked:
        return Forced("Unable to download the file. Please verify the URL and try again.")
    return Forced(f"File not found: {GONE_FILE}") if f'"file_id": "{GONE_FILE}"' in asked else None


@dataclass(frozen=True)
class Asked:
    """One prompt: the requests that it caused, and whether the client took the last answer for one."""

    requests: list[Request]
    answered: bool
    output: str


@dataclass(frozen=True)
class ClaudeCode:
    """The client in `home`, and the provider that it talks to."""

    binary: Path
    home: Path
    provider: Provider

    @property
    def folder(self) -> Path:
        """Where it works."""
        path = self.home / "work"
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def projects(self) -> Path:
        return self.home / ".claude" / "projects"

    @property
    def env(self) -> dict[str, str]:
        base = self.provider.url.removesuffix("/v1")
        own = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "ANTHROPIC_BASE_URL": base}
        return {**own, "ANTHROPIC_API_KEY": "sk-ant-fake", **_QUIET}

    def new(self) -> Transcript:
        """A session of this client's folder, yet to be written."""
        return Transcript(cwd=str(self.folder))

    def prompt(self, session: str, text: str = "continue", folder: Path | None = None, *, model: str = "") -> Asked:
        """Go on with a stored session, in its own folder or another one. `model`: another one than its own newest."""
        before = len(self.provider.requests)
        asked = ("--model", model) if model else ()
        done = subprocess.run(
            self.command("-p", text, "--output-format", "json", "--resume", session, *asked),
            env=self.env,
            cwd=folder or self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Asked(self.provider.requests[before:], done.returncode == 0, done.stdout + done.stderr)

    def command(self, *arguments: str) -> list[str]:
        return [str(self.binary), *arguments]


def sent(request: Request) -> list[tuple[str, dict[str, Any]]]:
    """Role and block of all that came of stored lines: without what the client adds on its own."""
    found: list[tuple[str, dict[str, Any]]] = []
    for message in (request.body or {})["messages"]:
        content = message["content"]
        blocks: Sequence[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] != "system":
            found += [(message["role"], _plain(block)) for block in blocks if not _reminds(block)]
    return found


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _reminds(block: dict[str, Any]) -> bool:
    return str(block.get("text")).startswith(
        ("<system-reminder>", "The user sent a new message while you were working:")
    )
