"""Tell whose a folder is. What root writes in a user's home is root's: that user's own recoveryd could not write to it
any more.
"""

from __future__ import annotations

import os
import pwd
import shlex
from contextlib import suppress
from pathlib import Path

from recoveryd.core import RecoverydError, RefusedError, capital

_ROOT = 0
_UNMAPPED = 65_534  # what a user namespace shows of a user that it has not: the system calls it nobody
_ELSEWHERE = "set XDG_STATE_HOME to a folder of your own"


def check_owner(folder: Path) -> None:
    """Raise RefusedError where this process is root's and `folder`, or what it would be made in, is a user's.

    Below root's own home all is root's, whoever owns what is mounted there, or as that home: a container may have the
    host's folder in its place. A user whom the system does not know, or the container, is nobody who could run it here.
    Raises OSError.
    """
    if os.geteuid() != _ROOT:
        return  # what is another user's keeps us out by itself
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    owner = _owner(there)
    if owner in (_ROOT, _UNMAPPED) or (name := _name(owner)) is None or _in_own_home(folder):
        return
    then = f"{name}'s own recoveryd could not change what root writes"
    raise RefusedError(f"{there} belongs to {name}, and this runs as root: {then}.", f"Run it as {name}, without sudo.")


def foreign(folder: Path) -> RecoverydError | None:
    """Make the error for a folder of our own that is there, but another user's; None where it is not. Raises
    OSError.
    """
    owner, me = _owner(folder), os.geteuid()
    if owner == me:
        return None
    says = f"The state folder {folder} belongs to another user ({_name(owner) or f'uid {owner}'})."
    if owner == _ROOT:  # it was made under sudo, most likely
        back = shlex.join(("sudo", "chown", "-R", _name(me) or str(me), str(folder)))
        return RecoverydError(says, f"`{back}` makes it yours. Or {_ELSEWHERE}.")
    return RecoverydError(says, f"{capital(_ELSEWHERE)}.")


def _in_own_home(folder: Path) -> bool:
    home = Path.home()  # under `sudo -E` that of the user
    return folder.is_relative_to(home) and (_owner(home) == _ROOT or home == _home_of_root())


def _home_of_root() -> Path | None:
    """Return where the system has root's home, whatever `HOME` says."""
    with suppress(KeyError):
        return Path(pwd.getpwuid(_ROOT).pw_dir)
    return None


def _owner(place: Path) -> int:
    return place.stat().st_uid


def _name(uid: int) -> str | None:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return None
