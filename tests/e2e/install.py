"""Where the real client comes from: a folder of versions, filled by npm on demand."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from recoveryd.clients.opencode.versions import TESTED, spelled

JSON_STORE, DATABASE, *_, NEWEST = map(spelled, TESTED)  # tables since 1.2; another form of the requests since 1.14
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


def newest() -> str:
    """Ask npm for the newest published version. Raises `UnavailableError` with the reason."""
    return _npm("view", _package(), "dist-tags.latest")


def ensure(version: str = DEFAULT_VERSION) -> Path:
    """The client's binary, installed by npm if it is missing. Raises `UnavailableError` with the reason."""
    package = _package()
    folder = clients_folder() / version
    binary = folder / "node_modules" / package / "bin" / "opencode"
    if binary.exists():
        return binary
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    _npm("install", *options, f"{package}@{version}")
    if not binary.exists():
        raise UnavailableError(f"npm installed {package}@{version}, and {binary} is not there")
    return binary


def _npm(*words: str) -> str:
    """What npm answers."""
    npm, asked = shutil.which("npm"), f"npm {' '.join(words)}"
    if npm is None:
        raise UnavailableError(f"npm is missing: {asked}")
    if os.environ.get("TEST_RECOVERYD_OFFLINE"):
        raise UnavailableError(f"TEST_RECOVERYD_OFFLINE is set: {asked}")
    done = subprocess.run([npm, *words], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise UnavailableError(f"{asked} failed: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()


def _package() -> str:
    systems = {"Linux": "linux", "Darwin": "darwin"}
    machines = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    system, machine = systems.get(platform.system()), machines.get(platform.machine().lower())
    if system is None or machine is None:
        raise UnavailableError(f"no client is published for {platform.system()} on {platform.machine()}")
    return f"opencode-{system}-{machine}"
