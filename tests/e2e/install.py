"""Where the real client comes from: a folder of versions, filled by npm on demand."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

TESTED: dict[str, list[str]] = json.loads((Path(__file__).parents[2] / "recoveryd" / "tested.json").read_text())
JSON_STORE, DATABASE, *_, NEWEST = TESTED["opencode"]  # tables since 1.2; another form of the requests since 1.14
DEFAULT_VERSION = JSON_STORE


class UnavailableError(Exception):
    """The client cannot run here; the text says why, for a skip."""


def clients_folder() -> Path:
    """Where the versions of the client are kept, one folder each: TEST_RECOVERYD_CLIENTS, or a cache folder."""
    named = os.environ.get("TEST_RECOVERYD_CLIENTS")
    return Path(named) if named else Path.home() / ".cache" / "recoveryd-tests" / "clients"


def versions(default: Sequence[str]) -> list[str]:
    """The versions to test: those in TEST_RECOVERYD_VERSIONS, or where it is not set these."""
    named = os.environ.get("TEST_RECOVERYD_VERSIONS")
    return named.split(",") if named else list(default)


def version_of(client: str) -> str:
    """The one version of a client other than OpenCode to test: that in TEST_RECOVERYD_<CLIENT>, or the newest known."""
    return os.environ.get(variable_of(client)) or TESTED[client][-1]


def variable_of(client: str) -> str:
    """The environment variable that names the versions of a client to test."""
    return "TEST_RECOVERYD_VERSIONS" if client == "opencode" else f"TEST_RECOVERYD_{client.upper()}"


def newest(client: str = "opencode") -> str:
    """Ask npm for the newest published version. Raises `UnavailableError` with the reason."""
    return npm("view", "@openai/codex" if client == "codex" else package(client), "dist-tags.latest")


def package(client: str = "opencode") -> str:
    """The npm package that has a client's binary for this computer. Raises `UnavailableError`."""
    names = {"opencode": "opencode", "kilo": "@kilocode/cli", "claude_code": "@anthropic-ai/claude-code"}
    return "-".join((names[client], *system_and_machine()))


def ensure_kilo(version: str) -> Path:
    """Kilo's binary, installed by npm if it is missing. Raises `UnavailableError` with the reason."""
    name = package("kilo")
    return installed(clients_folder() / f"kilo-{version}", f"{name}@{version}", f"{name}/bin/kilo")


def ensure(version: str = DEFAULT_VERSION) -> Path:
    """The client's binary, installed by npm if it is missing. Raises `UnavailableError` with the reason."""
    name = package()
    return installed(clients_folder() / version, f"{name}@{version}", f"{name}/bin/opencode")


def installed(folder: Path, asked: str, binary: str) -> Path:
    """A file of a package in a folder of its own, where npm puts it if it is missing. Raises `UnavailableError`."""
    path = folder / "node_modules" / binary
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        if not path.exists():
            npm("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), asked)
    if not path.exists():
        raise UnavailableError(f"npm installed {asked}, and {path} is not there")
    return path


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder while another worker may want to fill it, too."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def npm(*words: str) -> str:
    """What npm answers."""
    program, asked = shutil.which("npm"), f"npm {' '.join(words)}"
    if program is None:
        raise UnavailableError(f"npm is missing: {asked}")
    if os.environ.get("TEST_RECOVERYD_OFFLINE"):
        raise UnavailableError(f"TEST_RECOVERYD_OFFLINE is set: {asked}")
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise UnavailableError(f"{asked} failed: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()


def system_and_machine() -> tuple[str, str]:
    """Of this computer, as packages are named after them: ("linux", "x64"). Raises `UnavailableError`."""
    systems = {"Linux": "linux", "Darwin": "darwin"}
    machines = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    system, machine = systems.get(platform.system()), machines.get(platform.machine().lower())
    if system is None or machine is None:
        raise UnavailableError(f"no client is published for {platform.system()} on {platform.machine()}")
    return system, machine
