"""What the user told the daemon to leave alone: a pause, and sessions and folders. Files in the state folder.

They are read again before each recovery, so a daemon that runs obeys at once. The configuration may name sessions and
folders, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recoveryd.core import RecoverydError
from recoveryd.disk import private_files
from recoveryd.settings.schema import BaseConfig


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of all repairs: from and until when, in seconds since the epoch; without `until` it lasts until it is
    ended. `since` None: its file can't be read.
    """

    since: float | None
    until: float | None = None

    @property
    def ending(self) -> str:
        """ " until 2026-08-14 11:19", or nothing."""
        return "" if self.until is None else time.strftime(" until %Y-%m-%d %H:%M", time.localtime(self.until))


def pause(state_dir: Path, now: float, seconds: float | None = None) -> Pause:
    """Begin a pause, or go on with one, for so many `seconds` or until it is ended. Raises RecoverydError when the file
    can't be written.
    """
    before = paused(state_dir, now)
    since = now if before is None or before.since is None else min(before.since, now)
    made = Pause(since, None if seconds is None else now + seconds)
    _write(_pause(state_dir), {"since": made.since, "until": made.until})
    return made


def unpause(state_dir: Path) -> bool:
    """End the pause. Returns whether there was a file of one, be it of one that was over."""
    try:
        _pause(state_dir).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _trouble(_pause(state_dir), error) from error
    return True


def paused(state_dir: Path, now: float) -> Pause | None:
    """Return the pause that holds now, or None. A file that can't be understood counts as one."""
    path = _pause(state_dir)
    try:
        said = json.loads(path.read_bytes())
        found = Pause(_moment(said["since"]), None if said["until"] is None else _moment(said["until"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Pause(None)
    return found if found.until is None or now < found.until else None


def _moment(told: str | float) -> float:
    """Read seconds since the epoch. ValueError, OverflowError: no calendar has such a time."""
    seconds = float(told)
    if not 0 <= seconds < 1e11:
        raise ValueError(told)
    return seconds


def why_held(config: BaseConfig, state_dir: Path, now: float) -> str | None:
    """Tell why the user's pause or configuration has the daemon write to no store now, not even to finish what a crash
    cut off; None when it may.
    """
    pause = paused(state_dir, now)
    return config.idle or (None if pause is None else f"it is paused{pause.ending} (`recoveryd unpause` ends it)")


def ignore_file(state_dir: Path) -> Path:
    """Return the file of what `recoveryd ignore` was told."""
    return state_dir / "ignore.json"


def ignored(state_dir: Path) -> tuple[str, ...]:
    """List the sessions and folders of `recoveryd ignore`, in the order in which they were named."""
    try:
        said = json.loads(ignore_file(state_dir).read_bytes())
        if not isinstance(said, list):
            raise ValueError("it holds no list")
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        hint = "Nothing is repaired until it can be: mend it, or remove it and name again what is to be left alone."
        why = getattr(error, "strerror", None) or error
        raise RecoverydError(f"{ignore_file(state_dir)} can't be read: {why}.", hint) from error
    return tuple(str(item) for item in said)


def ignored_mark(state_dir: Path) -> str:
    """Return what differs once other sessions or folders are ignored, or it can't be read any more."""
    try:
        return repr(ignored(state_dir))
    except RecoverydError as error:
        return error.message


def ignore(state_dir: Path, what: str) -> bool:
    """Add a session or folder to those that are left alone. Returns whether it is new there."""
    with _alone(state_dir):
        known = ignored(state_dir)
        if what not in known:
            _write(ignore_file(state_dir), [*known, what])
    return what not in known


def unignore(state_dir: Path, what: str) -> bool:
    """Take a session or folder off the list of `ignore`. Returns whether it was there."""
    if what not in ignored(state_dir):
        return False
    with _alone(state_dir):
        known = ignored(state_dir)
        if what in known:
            _write(ignore_file(state_dir), [item for item in known if item != what])
    return what in known


@contextmanager
def _alone(state_dir: Path) -> Iterator[None]:
    """Let no other process change what is ignored meanwhile: one of two changes at once would be lost."""
    try:
        with private_files.alone(state_dir):
            yield
    except OSError as error:
        raise _trouble(ignore_file(state_dir), error) from error


def _pause(state_dir: Path) -> Path:
    return state_dir / "pause.json"


def _write(path: Path, data: Any) -> None:
    """Replace the whole file at once: a daemon may read it at any moment."""
    try:
        private_files.write(path, json.dumps(data).encode())
    except OSError as error:
        raise _trouble(path, error) from error


def _trouble(path: Path, error: OSError) -> RecoverydError:
    return RecoverydError(f"{path} can't be written: {error.strerror or error}.", "Check its folder and the disk.")
