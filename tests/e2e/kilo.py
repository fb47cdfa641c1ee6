"""The real Kilo, run as OpenCode is."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e.client import Client
from tests.e2e.install import ensure_kilo, version_of

VERSION = version_of("kilo")


class Kilo(Client):
    """`kilo serve`, which is OpenCode's server under other names."""

    def __init__(self, root: Path, provider: str) -> None:
        binary = ensure_kilo(VERSION)
        quiet = {f"KILO_DISABLE_{name}": "1" for name in ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS")}
        super().__init__(binary, root, provider, env=quiet)
        self.database = self.root / "data" / "kilo" / "kilo.db"
        config = self.root / "config" / "kilo"
        config.mkdir(parents=True)
        shutil.copy(self.root / "config" / "opencode" / "opencode.json", config / "kilo.json")
