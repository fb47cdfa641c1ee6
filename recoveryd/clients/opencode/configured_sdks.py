"""Which SDK the user's own configuration of OpenCode gives a provider: of a custom one nothing else tells it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

_FILES = ("config.json", "opencode.json", "opencode.jsonc")  # in the order in which the client merges them
_LARGEST = 1024 * 1024  # bytes of a configuration
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_PROTOCOLS = {
    "@ai-sdk/anthropic": "anthropic.messages",
    "@ai-sdk/google-vertex/anthropic": "anthropic.messages",
    "@ai-sdk/amazon-bedrock": "bedrock.converse",
    "@openrouter/ai-sdk-provider": "openrouter.chat",
    "@ai-sdk/github-copilot": "copilot.chat",
    "@ai-sdk/google": "google.generate",
    "@ai-sdk/google-vertex": "google.generate",
    "@ai-sdk/openai": "openai.responses",
    "@ai-sdk/azure": "openai.responses",
    "@ai-sdk/openai-compatible": "openai.chat",
    "@ai-sdk/mistral": "mistral.chat",
}


def protocol_of(provider: str) -> str:
    """Tell what is spoken to a provider by the client's global configuration; "" where that does not say. Never
    raises.
    """
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opencode"
    found = ""
    for name in _FILES:
        path = folder / name
        try:
            stat = path.stat()
            packages = _packages(str(path), stat.st_mtime_ns, stat.st_size)
        except (OSError, ValueError, RecursionError):
            continue
        found = packages.get(provider, found)
    return _PROTOCOLS.get(found, "")


@lru_cache(maxsize=8)
def _packages(path: str, mtime_ns: int, size: int) -> Mapping[str, str]:
    """Return the SDK of each provider that a configuration names. It is read again once it changed."""
    del mtime_ns
    if size > _LARGEST:
        return {}
    config = json.loads(_plain(Path(path).read_text(encoding="utf-8", errors="replace")))
    providers = config.get("provider") if isinstance(config, dict) else None
    found: dict[str, str] = {}
    for name, settings in providers.items() if isinstance(providers, dict) else ():
        package: Any = settings.get("npm") if isinstance(settings, dict) else None
        if isinstance(package, str):
            found[name] = package
    return found


def _plain(text: str) -> str:
    """Return JSON without the comments and the last commas that the client allows."""
    for _ in range(2):  # a comma may stand before a comment
        text = _TOKEN.sub(lambda token: token[0] if token[0].startswith('"') else "", text)
    return text
