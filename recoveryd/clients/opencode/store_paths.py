"""Tell where OpenCode keeps its data and its settings, and which of its files are databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from recoveryd.clients.opencode.records import CHANNELS
from recoveryd.disk import real_path


def data_folders(env: Mapping[str, str], configured: Sequence[Path] = ()) -> list[Path]:
    """List OpenCode's data folders, resolved, each once: its own place first (the same on macOS), then those
    configured.
    """
    folders = [data_home(env) / "opencode", *(path.expanduser() for path in configured)]
    return list(dict.fromkeys(map(real_path, folders)))


def data_home(env: Mapping[str, str]) -> Path:
    """Return the folder below which OpenCode keeps its data: `XDG_DATA_HOME`, else `~/.local/share`."""
    return _home(env, "XDG_DATA_HOME", ".local/share")


def config_home(env: Mapping[str, str]) -> Path:
    """Return the folder below which OpenCode keeps its settings: `XDG_CONFIG_HOME`, else `~/.config`."""
    return _home(env, "XDG_CONFIG_HOME", ".config")


def _home(env: Mapping[str, str], variable: str, usual: str) -> Path:
    base = Path(env.get(variable, ""))
    return base if base.is_absolute() else Path(env.get("HOME") or Path.home()) / usual


def databases(folder: Path) -> list[Path]:
    """List the databases that OpenCode may keep its sessions in: `opencode.db`, and `opencode-<channel>.db` of builds
    that name theirs.

    Any other name is a copy that somebody made, or is named by `OPENCODE_DB` or the configuration.
    """
    names = ["opencode.db", *(f"opencode-{channel}.db" for channel in CHANNELS)]
    return [folder / name for name in names]


def data_folder_of(env: Mapping[str, str]) -> Path | None:
    """Return the data folder of an OpenCode that runs with this environment; None when it does not say."""
    told = env.get("HOME") or Path(env.get("XDG_DATA_HOME", "")).is_absolute()
    return data_home(env) / "opencode" if told else None


def is_data_folder_of(data: Path, store: Path) -> bool:
    """Whether an OpenCode with this data folder keeps its sessions in a store, which may be linked to from there.
    Raises OSError.
    """
    if store.parent == real_path(data) or store == real_path(data / "storage"):
        return True
    return any(real_path(path) == store for path in data.glob("opencode*.db") if path.is_symlink())
