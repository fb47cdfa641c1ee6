"""Where the real Codex comes from: its package for this system, filled by npm on demand."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.install import clients_folder, installed, system_and_machine, version_of

VERSION = version_of("codex")
_TARGETS = {
    ("linux", "x64"): "x86_64-unknown-linux-musl",
    ("linux", "arm64"): "aarch64-unknown-linux-musl",
    ("darwin", "x64"): "x86_64-apple-darwin",
    ("darwin", "arm64"): "aarch64-apple-darwin",
}


def ensure(version: str = VERSION) -> Path:
    """The client's binary, installed by npm if it is missing. Raises `UnavailableError` with the reason."""
    system, machine = system_and_machine()
    package = f"@openai/codex@{version}-{system}-{machine}"
    binary = f"@openai/codex/vendor/{_TARGETS[system, machine]}/bin/codex"
    return installed(clients_folder() / f"codex-{version}", package, binary)
