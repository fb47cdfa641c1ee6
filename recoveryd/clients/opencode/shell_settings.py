"""Find what a shell tells OpenCode, and a service would not know: other folders, a password."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from recoveryd.clients.client import ShellSettings
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.stores import find_stores
from recoveryd.core import RecoverydError

PASSWORD = "OPENCODE_SERVER_PASSWORD"  # noqa: S105 the name of a variable
USERNAME = "OPENCODE_SERVER_USERNAME"
_PASSWORD_FILE = "opencode-password"  # noqa: S105


def missing_settings(
    here: OpencodeSettings, service: OpencodeSettings, env: Mapping[str, str], state: Path
) -> ShellSettings:
    """Compare OpenCode's section of the configuration as this shell has it (`here`, and `env`) with that of the
    service. See `Client`.
    """
    bare = {"HOME": env.get("HOME") or str(Path.home())}

    def found(dirs: list[Path], databases: list[Path]) -> set[str]:
        more = {"data_dirs": (*service.data_dirs, *dirs), "databases": (*service.databases, *databases)}
        return {store.id for store in find_stores(service.model_copy(update=more), bare)}

    stores = find_stores(here, env)
    dirs = [s.home for s in stores if not s.watch_files and s.id not in found([], [])]
    databases = [s.root for s in stores if s.watch_files and s.id not in found(dirs, [])]
    password, username, file = _text(env, PASSWORD), _text(env, USERNAME), state / _PASSWORD_FILE
    values = {"password_file": str(file)} if password and not service.password_file else {}
    if username and (values or service.password_file) and not service.username:
        values = {"username": username, **values}
    lists = {"data_dirs": tuple(map(str, dirs)), "databases": tuple(map(str, databases))}
    return ShellSettings(lists, values, {file: (PASSWORD, password)} if password else {})


def _text(env: Mapping[str, str], name: str) -> str:
    text = env.get(name, "")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecoverydError(f"What {name} holds is not UTF-8.", "Unset it, or use plain letters.") from error
    return text
