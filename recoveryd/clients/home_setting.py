"""What a shell has to set for a client to work on another folder than the one that it takes by itself."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from recoveryd.disk import real_path


def home_setting(variable: str, homes: Sequence[Path], own: str) -> str:
    """Return what stands before a command of a client (`CODEX_HOME=/work/codex `), so that it finds what is in one of
    `homes`; "" where that is its `own` folder, as it is called below the user's.
    """
    if not homes or real_path(Path.home() / own) in homes:
        return ""
    return f"{variable}={shlex.quote(str(homes[0]))} "
