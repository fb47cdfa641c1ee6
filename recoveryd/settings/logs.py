"""The log: lines on stderr for a person or the journal, and a small file in the state folder.

Conversations are logged at DEBUG alone; that is for the callers to keep. What is logged may come from a session's files
all the same (titles, ids, errors of a provider), so no character of it can start a line or colour one.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from loguru import logger

from recoveryd.core import RecoverydError, shown
from recoveryd.disk import dangling_link, is_full, private_files

if TYPE_CHECKING:
    from loguru import Record

_FILE = "{time:YYYY-MM-DD HH:mm:ss.SSS} {level} {message}"
_PERSON = "<dim>{time:HH:mm:ss}</dim> <level>{level: <7}</level> {message}"
_SYSLOG = {"CRITICAL": 2, "ERROR": 3, "WARNING": 4, "SUCCESS": 5, "INFO": 6}  # sd-daemon(3); 7 is debug
_ROTATE, _KEEP = "2 MB", 3
# Loud or untrusted below these: watchdog reports each event, desktop-notifier a traceback for each toast without a bus.
_QUIETER = {"watchdog": logging.WARNING, "asyncio": logging.WARNING, "desktop_notifier": 99, "dbus_fast": logging.ERROR}
# watchdog's word for an event that came while its watch was being taken away; whoever took it away looks again.
_HARMLESS = "called when the thread is inactive"


def setup(
    level: str = "INFO", log_file: Path | None = None, stream: TextIO | None = None, shown: str | None = None
) -> None:
    """Set the log up: send all that the process logs, the standard library's and its warnings too, to `stream` (stderr)
    and `log_file`.

    `shown`: another level for `stream` than for the file. The file is 0600 and rotated. One that can't be opened is
    told on `stream`, and nothing else is lost.
    """
    stream = stream or sys.stderr
    with suppress(OSError):  # what waits to be written to a disk that has just filled up
        logger.remove()
    logger.configure(patcher=_clean)
    form = _journal_format if _is_journal(stream) else _PERSON
    logger.add(stream, level=shown or level, format=form, backtrace=False, diagnose=False)
    if log_file is not None:
        _add_file(log_file, level)
    _bridge(min(level, shown or level, key=lambda name: logger.level(name).no))


def _add_file(path: Path, level: str) -> None:
    room = _Room(path)
    try:
        logger.add(
            path,
            level=level,
            filter=room,
            format=_FILE,
            backtrace=False,
            diagnose=False,  # its default prints variables, secrets among them
            rotation=_ROTATE,
            retention=_KEEP,
            encoding="utf-8",
            errors="backslashreplace",
            watch=True,  # it may be removed, and another daemon puts a full one aside
            opener=_opened,
        )
        path.chmod(0o600)
        room.look()
    except OSError as error:
        _tell_unwritten(path, error.strerror or str(error))


def _tell_unwritten(path: Path, why: str) -> None:
    logger.warning("The log file {} can't be written ({}); this is all there is.", path, why)


class _Room:
    """A filter of the log's file: while its disk, or a quota of it, is full, or not mounted (its folder is a symlink to
    there), which is told once, no line goes there.

    Else loguru would tell each as a failure on stderr, with its stack.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._why = path, ""

    def __call__(self, record: Record) -> bool:
        del record
        return self.look()

    def look(self) -> bool:
        full = "no room is left on its disk, or in your quota"
        before, self._why = self._why, dangling_link(self._path.parent)
        if is_full(self._path.parent, by_write=True):
            self._why = full
        if self._why and not before:
            _tell_unwritten(self._path, self._why)
        return not self._why


def _opened(name: str, flags: int) -> int:
    """Open the log for its owner alone, in a folder for its owner alone: loguru makes one that is gone for all."""
    with suppress(RecoverydError):
        private_files.make_folder(Path(name).parent)
    return os.open(name, flags, 0o600)


def _clean(record: Record) -> None:
    message = shown(record["message"], keep="\t\n", instead=_escaped)
    record["message"] = message.replace("\n", "\n    ")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _is_journal(stream: TextIO) -> bool:
    """Whether systemd connected the stream to the journal, as it says in `JOURNAL_STREAM` (systemd.exec(5))."""
    try:
        seen = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{seen.st_dev}:{seen.st_ino}"


def _journal_format(record: Record) -> str:
    return f"\\<{_SYSLOG.get(record['level'].name, 7)}>{{message}}\n{{exception}}"  # \\<: no colour


class _Bridge(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        level = record.levelname if record.levelname in _SYSLOG and _HARMLESS not in said else "DEBUG"
        logger.opt(exception=record.exc_info).log(level, said)


def _bridge(level: str) -> None:
    logging.basicConfig(handlers=[_Bridge()], level=level, force=True)
    for name, least in _QUIETER.items():
        logging.getLogger(name).setLevel(least)
    logging.captureWarnings(capture=True)
    # Up to 0.9 MB of text each, about its own bookkeeping.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog(\.|$)")
    warnings.filterwarnings("ignore", category=RuntimeWarning, message=r"Callback with id ")
