"""The real Kilo, run as OpenCode is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.e2e.client import Client
from tests.e2e.install import ensure_kilo, version_of

VERSION = version_of("kilo")


class Kilo(Client):
    """`kilo serve`, which is OpenCode's server under other names.

    `gateway`: a model of Kilo's own gateway, for which `provider` stands then; "" for a model of Anthropic's, or what
    `config` names. `env` comes on top of its environment.
    """

    def __init__(
        self,
        root: Path,
        provider: str,
        gateway: str = "",
        *,
        config: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        binary = ensure_kilo(VERSION)
        quiet = {f"KILO_DISABLE_{name}": "1" for name in ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS")}
        if gateway:
            del quiet["KILO_DISABLE_MODELS_FETCH"]  # only the gateway's own list tells its models
            quiet |= {"KILO_API_URL": provider, "KILO_API_KEY": "x", "EVENT_SERVICE_URL": "ws://127.0.0.1:9"}
        super().__init__(binary, root, provider, config=config, env={**quiet, **(env or {})})
        self.database = self.root / "data" / "kilo" / "kilo.db"
        folder = self.root / "config" / "kilo"
        folder.mkdir(parents=True)
        settings = self.root / "config" / "opencode" / "opencode.json"
        if gateway:
            named = {"model": f"kilo/{gateway}", "small_model": f"kilo/{gateway}"}
            settings.write_text(json.dumps({"autoupdate": False, "permission": {"*": "allow"}, **named}))
        shutil.copy(settings, folder / "kilo.json")
