"""Which stores of OpenCode this user has."""

from __future__ import annotations

from collections.abc import Mapping

from recoveryd.clients.opencode import store_paths
from recoveryd.clients.opencode.files import store as files
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.sqlite import store as sqlite
from recoveryd.clients.store import Store


def find_stores(settings: OpencodeSettings, env: Mapping[str, str]) -> list[Store]:
    """List the databases, then the trees of files: OpenCode's own and those of `settings`, also what is not there yet.

    `data_dirs` are data folders of OpenCode (`.../opencode`), or their `storage` folders.
    """
    folders = [f.parent if f.name == "storage" else f for f in store_paths.data_folders(env, settings.data_dirs)]
    folders = list(dict.fromkeys(folders))
    return [
        *sqlite.find_stores(folders, settings.databases, env),
        *files.find_stores(settings.data_dirs, env),
    ]
