"""Check what the configuration names outside of itself: whether it is there, and fit for its use. Writes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from recoveryd.clients import Clients, Config
from recoveryd.core import ConfigProblem, is_session_id
from recoveryd.disk import path_exists


def reference_problems(config: Config) -> list[ConfigProblem]:
    """List what is wrong with the things that the configuration names, in the order of its keys."""
    hooks = config.hooks
    asked = [
        ("ignore", _ignored(config)),
        ("hooks", _hook("on_abort", hooks.on_abort)),
        ("hooks", _hook("on_complete", hooks.on_complete)),
        ("metrics", _textfile(config.metrics.textfile)),
        *((client.name, client.config_problems()) for client in Clients(config).all()),
    ]
    return [problem for section, problems in asked for problem in _with_hidden(section, problems)]


def _with_hidden(section: str, problems: Iterable[ConfigProblem]) -> Iterator[ConfigProblem]:
    """Go through problems; what stands in a folder that may not be entered is one."""
    try:
        yield from problems
    except OSError as error:
        says = f"{error.filename} can't be looked at: {(error.strerror or str(error)).lower()}."
        yield ConfigProblem(section, says, "Whose is it, and the folder that it is in? See ls -ld.")


def _ignored(config: Config) -> Iterator[ConfigProblem]:
    for what in config.ignore:
        if not is_session_id(what) and not what.startswith("/"):
            says = f'"{what}" is neither a session\'s id nor an absolute path, so it makes nothing be left alone.'
            yield ConfigProblem("ignore", says, "Write its id as `scan` shows it, or the whole path of a folder.")
        elif what.startswith("/") and path_exists(what) is False:
            says = f"{what} is not there, so only a session that names it so is left alone."
            then = "Correct the path if it is misspelled. Sessions of a folder that was removed hang on it."
            yield ConfigProblem("ignore", says, then)


def _hook(name: str, argv: tuple[str, ...]) -> Iterator[ConfigProblem]:
    key = f"hooks.{name}"
    if not argv:
        return
    program = argv[0]
    path = Path(program)
    if "/" in program and not path.is_absolute():
        yield ConfigProblem(key, f"{program} is no absolute path; ~ has no meaning there.", "Write the whole path.")
    elif shutil.which(program) is None:
        if path.is_absolute() and path.is_file():
            yield ConfigProblem(key, f"{program} can't be run.", f"chmod +x {program}")
        else:
            where = "is not there" if path.is_absolute() else "is in no folder of PATH"
            yield ConfigProblem(key, f"The program {program} {where}.", "Write the whole path of a program that is.")


def _textfile(path: Path | None) -> Iterator[ConfigProblem]:
    if path is None or os.access(path.parent, os.W_OK | os.X_OK):
        return
    says = "can't be written to" if os.access(path.parent, os.F_OK) else "can't be found"
    then = "Make it a folder that you may write to, or name a file in one."
    yield ConfigProblem("metrics.textfile", f"The folder {path.parent} {says}, so no metrics are written.", then)
