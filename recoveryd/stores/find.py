"""All stores of this user: where the client usually keeps them, and where the configuration says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from recoveryd.stores import opencode_files
from recoveryd.stores.base import Store


def find_stores(data_dirs: Sequence[Path], env: Mapping[str, str] | None = None) -> list[Store]:
    """Each store once, also those that are not there yet. `env` is the process's own when None."""
    return [*opencode_files.find_stores(data_dirs, os.environ if env is None else env)]
