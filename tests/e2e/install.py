"""Where the real client comes from: a folder of versions, filled by npm on demand."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

DEFAULT_VERSION = "1.1.53"


class UnavailableError(Exception):
    """The client cannot run here; the text says why, for a skip."""


def clients_folder() -> Path:
    """Where the versions of the client are kept, one folder each: TEST_RECOVERYD_CLIENTS, or a cache folder."""
    named = os.environ.get("TEST_RECOVERYD_CLIENTS")
    return Path(named) if named else Path.home() / ".cache" / "recoveryd-tests" / "clients"


def ensure(version: str = DEFAULT_VERSION) -> Path:
    """The client's binary, installed by npm if it is missing. Raises `UnavailableError` with the reason."""
    package = _package()
    folder = clients_folder() / version
    binary = folder / "node_modules" / package / "bin" / "opencode"
    if binary.exists():
        return binary
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError(f"opencode {version} is not installed and npm is missing")
    if os.environ.get("TEST_RECOVERYD_OFFLINE"):
        raise UnavailableError(f"opencode {version} is not installed and TEST_RECOVERYD_OFFLINE is set")
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    done = subprocess.run([*command, f"{package}@{version}"], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode or not binary.exists():
        raise UnavailableError(f"npm could not install {package}@{version}: {done.stderr.strip()[-300:]}")
    return binary


def _package() -> str:
    systems = {"Linux": "linux", "Darwin": "darwin"}
    machines = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    system, machine = systems.get(platform.system()), machines.get(platform.machine().lower())
    if system is None or machine is None:
        raise UnavailableError(f"no client is published for {platform.system()} on {platform.machine()}")
    return f"opencode-{system}-{machine}"
