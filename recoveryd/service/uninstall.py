"""Remove what stays of recoveryd when its service goes: all but the ledger and the list of `ignore`, or these too."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recoveryd.core import BusyError, RecoverydError, command_line
from recoveryd.disk import watchers
from recoveryd.ledger import Ledger, Upkeep, is_there
from recoveryd.service import shell_settings
from recoveryd.service.base import Say, how_to_end
from recoveryd.settings import overrides, paths


def count_recoveries(state: Path) -> int | None:
    """Count, before an uninstall, the recoveries in the ledger; None of a ledger that can't be read."""
    file = paths.ledger_file(state)
    try:
        if not is_there(file):
            return 0
        with Ledger(file) as ledger:
            return len(Upkeep(ledger).ended())
    except RecoverydError:
        return None


def while_no_service(state: Path) -> None:
    """Let nothing be uninstalled while a service runs whose manager can't be reached, but raise `BusyError`: once its
    unit is gone, `stop` does not end it any more.
    """
    for holder in watchers(paths.lock_dir(state)):
        if holder.doing == "service":
            says = f"recoveryd runs as a service ({holder}), which can't be ended from here, so nothing is removed."
            raise BusyError(says, f"{how_to_end(holder.pid)} Then run `{command_line('uninstall')}` again.")


def while_alone(state: Path) -> None:
    """Let nothing be uninstalled while any recoveryd runs, but raise `BusyError`: its files can't be taken from it."""
    for holder in watchers(paths.lock_dir(state)):
        by_hand = f"End that one: Ctrl-C in its terminal, or `kill {holder.pid}`."
        end = how_to_end(holder.pid) if holder.doing == "service" else by_hand
        raise BusyError(
            f"recoveryd still runs ({holder}), so its own files stay for now: {state}",
            f"{end} Then run `{command_line('uninstall')}` again.",
        )


@contextmanager
def removing(*command: str) -> Iterator[None]:
    """Raise what the system does not let be removed as a RecoverydError. For a whole `command`; `uninstall` by
    default.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None:  # of no file: nobody reads what is told
            raise
        says = f"{error.filename} can't be removed: {error.strerror or error}."
        hint = f"Check the permissions of its folder, and run `{command_line(*command or ('uninstall',))}` again."
        raise RecoverydError(says, hint) from error


def remove_locks(state: Path) -> Path:
    """Remove at uninstall the files of the locks of stores. Returns their folder, which may be one of its own."""
    place = paths.lock_dir(state)
    for file in (*place.glob("*.run.json"), *place.glob("*.daemon.json"), *place.glob("*.lock")):
        file.unlink()
    return place


def remove_state(state: Path, config: Path, say: Say) -> Path | None:
    """Remove at uninstall the state folder, but what a configuration goes on naming, what is to be ignored, and a
    ledger that holds something. Returns that ledger.
    """
    noted = shell_settings.take_out_shell_settings(state, say)
    ledger = paths.ledger_file(state)
    kept = count_recoveries(state) != 0  # one that can't be read now may hold some
    there = sorted(path for path in state.iterdir() if not path.is_dir()) if state.is_dir() else []
    named = {path: one for one in {*noted, config} for path in there if shell_settings.is_named_in_config(one, path)}
    elsewhere = bool((noted - {paths.config_file()}) & {*named.values()})  # nothing else tells the next uninstall of it
    names = []
    for path in there:
        ours = path.name.startswith(ledger.name)
        # On macOS the configuration is in the same folder. The note alone knows of one that is elsewhere.
        if path == paths.config_file() or (ours and kept) or (path.name == shell_settings.NOTE and elsewhere):
            continue
        if path in named:
            say(f"left: {path}, which {named[path]} names")
            continue
        if path == overrides.ignore_file(state) and _names_something(state):
            say(f"left: {path}: what it names goes on being ignored once recoveryd is installed again")
            continue
        path.unlink()
        names.append(path.name)
    if names:
        say(f"removed: the log and what else was in {state} ({', '.join(names)})")
    return ledger if kept else None


def _names_something(state: Path) -> bool:
    """Whether `recoveryd ignore` was told of anything; a file that can't be read counts as that."""
    try:
        return bool(overrides.ignored(state))
    except RecoverydError:
        return True


def remove_everything(state: Path, config: Path, used: Path, say: Say) -> None:
    """Remove at uninstall, with --purge, the ledger, the log and the configuration; another one that was `used`, and is
    not named now, loses only what `install` wrote there.
    """
    if used != config:
        shell_settings.take_out_shell_settings(state, say)
        if used.exists():
            say(f"left: {used}, the configuration that it ran with")
    if config.exists() or config.is_symlink():
        config.unlink()
        say(f"removed: {config}")
    if state.is_dir():
        remove_folder(state.resolve())
        say(f"removed: {state}, with the ledger and the log")


def remove_folder(folder: Path) -> None:
    """Remove a folder of recoveryd's own with all that is in it. Raises OSError with the whole path of the file."""
    shutil.rmtree(folder, onerror=_whole_path)


def _whole_path(_: object, path: str, info: tuple[Any, BaseException, Any]) -> None:
    """Raise what `rmtree` ran into with the whole path of the file: the system was given its name alone."""
    if isinstance(info[1], OSError):
        info[1].filename = path
    raise info[1]


def remove_empty_folders(folders: Iterable[Path]) -> None:
    """Remove at uninstall the folders of recoveryd that nothing is left in."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
