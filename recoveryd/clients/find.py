"""All stores of this user: where the client usually keeps them, and where the configuration says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from recoveryd.clients.base import Store
from recoveryd.clients.opencode import places
from recoveryd.clients.opencode.files import store as opencode_files
from recoveryd.clients.opencode.sqlite import store as opencode_sqlite


def find_stores(
    data_dirs: Sequence[Path], databases: Sequence[Path] = (), env: Mapping[str, str] | None = None
) -> list[Store]:
    """Each store once, also those that are not there yet. `env` is the process's own when None.

    `data_dirs` are data folders of OpenCode (`.../opencode`) beside its own, or their `storage` folders.
    """
    env = os.environ if env is None else env
    folders = [f.parent if f.name == "storage" else f for f in places.data_folders(env, data_dirs)]
    folders = list(dict.fromkeys(folders))
    found: list[Store] = [
        *opencode_sqlite.find_stores(folders, databases, env),
        *opencode_files.find_stores(data_dirs, env),
    ]
    return list({_identity(store.root): store for store in reversed(found)}.values())[::-1]


def _identity(root: Path) -> object:
    """What two paths to one store have in common, say through a bind mount."""
    try:
        here = root.stat()
    except OSError:
        return root
    return here.st_dev, here.st_ino
