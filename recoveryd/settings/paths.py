"""Where recoveryd keeps its own files. The XDG variables are honoured; nothing is made by asking."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import platformdirs

from recoveryd.core import RecoverydError

_APP = "recoveryd"


def check_home() -> None:
    """Raise RecoverydError where nobody knows the home of this user: all that is looked for is below it."""
    try:
        Path.home()
    except RuntimeError:
        says = f"There is no home folder: HOME is not set, and the system knows no user {os.getuid()}."
        raise RecoverydError(says, "Set HOME to the folder in which your clients keep their files.") from None


def config_file() -> Path:
    """Return `~/.config/recoveryd/config.toml`, or where the platform and `XDG_CONFIG_HOME` say."""
    return platformdirs.user_config_path(_APP) / "config.toml"


def config_in(command: Sequence[str]) -> Path | None:
    """Return the configuration that a command line of recoveryd names; None where it names none."""
    return next((Path(after) for word, after in pairwise(command) if word == "--config"), None)


def state_dir() -> Path:
    """Return `~/.local/state/recoveryd`, or where `XDG_STATE_HOME` says. Made by `private_files.make_folder`."""
    return platformdirs.user_state_path(_APP)


def lock_dir(state: Path) -> Path:
    """Return the folder of the locks of stores: one for each user, so that two state folders don't make it two daemons.

    `state`, the state folder in use, where nothing can be written below the home.
    """
    home = Path.home() if os.environ.get("TEST_RECOVERYD_LOCKS") else _home()
    usual = home / ".local" / "state" / _APP
    there = next(folder for folder in (usual, *usual.parents) if os.path.lexists(folder))
    return usual if os.access(there, os.W_OK) else state


def _home() -> Path:
    """Return the home of the user of this process, whatever the environment says; HOME where the system knows no such
    user.
    """
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return Path.home()


def ledger_file(state: Path) -> Path:
    """Return the path of the ledger in a state folder."""
    return state / "ledger.db"


def log_file(state: Path) -> Path:
    """Return the path of the log in a state folder."""
    return state / "recoveryd.log"
