"""Where recoveryd keeps its own files. The XDG variables are honoured; nothing is made by asking."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from recoveryd.core.errors import RecoverydError

_APP = "recoveryd"


def config_file() -> Path:
    """`~/.config/recoveryd/config.toml`, or where the platform and `XDG_CONFIG_HOME` say."""
    return platformdirs.user_config_path(_APP) / "config.toml"


def state_dir() -> Path:
    """`~/.local/state/recoveryd`, or where the platform and `XDG_STATE_HOME` say. See `make_private`."""
    return platformdirs.user_state_path(_APP)


def lock_dir(state: Path) -> Path:
    """Where stores are locked: one place for each user, so that two state folders don't make it two daemons.

    `state`, the state folder in use, where nothing can be written below the home.
    """
    usual = Path.home() / ".local" / "state" / _APP
    there = next(folder for folder in (usual, *usual.parents) if os.path.lexists(folder))
    return usual if os.access(there, os.W_OK) else state


def ledger_file(state: Path) -> Path:
    return state / "ledger.db"


def log_file(state: Path) -> Path:
    return state / "recoveryd.log"


def make_private(folder: Path) -> Path:
    """Make `folder` (0700), or take the permissions of others from the one that is there.

    Raises `RecoverydError` when it can't be made, or belongs to another user: as root in somebody's home (sudo keeps
    some variables) we would leave files behind that its owner can no longer write.
    """
    hint = "Set XDG_STATE_HOME to a folder of your own."
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.stat()
        if seen.st_uid != os.geteuid():
            raise RecoverydError(f"The state folder {folder} belongs to another user (uid {seen.st_uid}).", hint)
        if seen.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise RecoverydError(f"The state folder {folder} can't be made: {error.strerror or error}.", hint) from error
    return folder
