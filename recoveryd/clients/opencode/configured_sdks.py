"""Which SDK the user's own configuration of OpenCode gives a provider: of a custom one nothing else tells it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

_FILES = ("config.json", "opencode.json", "opencode.jsonc")  # in the order in which the client merges them
_LARGEST = 1024 * 1024  # bytes of a configuration
# What never ends is one token up to the end of the text: else each quote in it would be tried anew, for hours.
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*(?:"|\\?\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]])', re.DOTALL)
_PROTOCOLS = {
    "@ai-sdk/anthropic": "anthropic.messages",
    "@ai-sdk/google-vertex/anthropic": "anthropic.messages",
    "@ai-sdk/amazon-bedrock": "bedrock.converse",
    "@openrouter/ai-sdk-provider": "openrouter.chat",
    "@ai-sdk/github-copilot": "copilot.chat",
    "@ai-sdk/google": "google.generate",
    "@ai-sdk/google-vertex": "google.vertex",
    "@ai-sdk/openai": "openai.responses",
    "@ai-sdk/azure": "openai.responses",
    "@ai-sdk/openai-compatible": "openai.chat",
    "@ai-sdk/mistral": "mistral.chat",
}


def protocol_of(provider: str, directory: str = "", root: str = "") -> str:
    """Tell what is spoken to a provider by the configuration of a client that was started in `directory`; "" where that
    does not say.

    `root`: where its project ends, which the client stores with each answer; "" to look for it. What the variables of
    the client's own shell say is known only as far as they are ours, too. Never raises.
    """
    found = ""
    for packages in _merged(directory, root):
        found = packages.get(provider, found)
    return _PROTOCOLS.get(found, "")


def _merged(directory: str, root: str) -> Iterator[Mapping[str, str]]:
    """Go through what each configuration says, in the order in which the client merges them: a later one wins."""
    own = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opencode"
    named, content = os.environ.get("OPENCODE_CONFIG"), os.environ.get("OPENCODE_CONFIG_CONTENT")
    around = _around(directory, root)
    files = [own / name for name in _FILES]
    files += [Path(named)] if named else []
    files += [folder / name for folder in reversed(around) for name in _FILES[1:]]
    files += [folder / ".opencode" / name for folder in (*around, Path.home()) for name in _FILES[1:]]
    more = os.environ.get("OPENCODE_CONFIG_DIR")
    files += [Path(more) / name for name in _FILES[1:]] if more else []
    for path in files:
        try:
            stat = path.stat()
            if S_ISREG(stat.st_mode):
                yield _packages(str(path), stat.st_mtime_ns, stat.st_size)
        except (OSError, ValueError, RecursionError):
            continue
    with suppress(ValueError, RecursionError):
        yield _named(content or "{}")


def _around(directory: str, root: str) -> list[Path]:
    """List the folders from the session's own up to the root of its project; none where it is not told."""
    if not directory.startswith("/"):
        return []
    folders = [Path(directory), *Path(directory).parents]
    if not root:
        root = next((str(folder) for folder in folders if _is_project(folder)), "/")
    end = next((at for at, folder in enumerate(folders) if folder == Path(root)), None)
    return folders[: end + 1] if end is not None else folders[:1]


def _is_project(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:
        return False


@lru_cache(maxsize=32)
def _packages(path: str, mtime_ns: int, size: int) -> Mapping[str, str]:
    """Read the SDK of each provider that a configuration names. It is read again once it changed."""
    del mtime_ns
    return _named(Path(path).read_text(encoding="utf-8", errors="replace")) if size <= _LARGEST else {}


def _named(text: str) -> Mapping[str, str]:
    config = json.loads(_plain(text))
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
