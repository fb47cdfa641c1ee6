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
    return npm("view", _package(), "dist-tags.latest")


def ensure(version: str = DEFAULT_VERSION) -> Path:
    """The client's binary, installed by npm if it is missing. Raises `UnavailableError` with the reason."""
    package = _package()
    return installed(clients_folder() / version, f"{package}@{version}", f"{package}/bin/opencode")


def installed(folder: Path, package: str, binary: str) -> Path:
    """A file of a package in a folder of its own, where npm puts it if it is missing. Raises `UnavailableError`."""
    path = folder / "node_modules" / binary
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    npm("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), package)
    if not path.exists():
        raise UnavailableError(f"npm installed {package}, and {path} is not there")
    return path


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


def _package() -> str:
    return "-".join(("opencode", *system_and_machine()))
