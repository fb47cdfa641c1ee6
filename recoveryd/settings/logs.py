"""The log: lines on stderr for a person or the journal, and a small file in the state folder.

Conversations are logged at DEBUG alone; that is for the callers to keep. What is logged may come from a session's files
all the same (titles, ids, errors of a provider), so no character of it can start a line or colour one.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO

from recoveryd.core import shown as printable

_SYSLOG = {"CRITICAL": 2, "ERROR": 3, "WARNING": 4, "INFO": 6}  # sd-daemon(3); 7 is debug
_COLOURS = {"CRITICAL": "1;41", "ERROR": "1;31", "WARNING": "1;33", "INFO": "1"}
_FULL, _KEEP = 2_000_000, 3  # bytes of a file, and how many full ones
# Loud or untrusted below these: watchdog reports each event, desktop-notifier a traceback for each toast without a bus.
_QUIETER = {"watchdog": logging.WARNING, "asyncio": logging.WARNING, "desktop_notifier": 99, "dbus_fast": logging.ERROR}
# watchdog's word for an event that came while its watch was being taken away; whoever took it away looks again.
_HARMLESS = "called when the thread is inactive"
_UNWRITABLE = "The log file %s can't be written (%s); this is all there is."

logger = logging.getLogger(__name__)


def setup(
    level: str = "INFO", log_file: Path | None = None, stream: TextIO | None = None, shown: str | None = None
) -> None:
    """Send all of the process's log, the standard library's and its warnings too, to `stream` (stderr) and `log_file`.

    `shown`: another level for `stream` than for the file. The file is 0600 and rotated. One that can't be written to
    is told on `stream`, and nothing else is lost.
    """
    stream = stream or sys.stderr
    on_stream = logging.StreamHandler(stream)
    on_stream.setFormatter(_JournalLines() if _is_journal(stream) else _ScreenLines(coloured=_has_colours(stream)))
    on_stream.setLevel(shown or level)
    on_stream.addFilter(_is_news)
    logging.basicConfig(handlers=[on_stream], level=on_stream.level, force=True)
    if log_file is not None:
        _add_file(log_file, level)
    for name, least in _QUIETER.items():
        logging.getLogger(name).setLevel(least)
    logging.captureWarnings(capture=True)
    # Up to 0.9 MB of text each, about its own bookkeeping.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog(\.|$)")
    warnings.filterwarnings("ignore", category=RuntimeWarning, message=r"Callback with id ")


def _add_file(path: Path, level: str) -> None:
    try:
        handler = _PrivateFile(path)
        path.chmod(0o600)
    except OSError as error:
        logger.warning(_UNWRITABLE, path, error.strerror or error)
        return
    handler.setLevel(level)
    handler.addFilter(_is_news)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(min(root.level, handler.level))


def _is_news(record: logging.LogRecord) -> bool:
    return _HARMLESS not in record.getMessage()


class _PrivateFile(RotatingFileHandler):
    """A file that its user alone can read, and `_KEEP` full ones beside it: `recoveryd.1.log` is the newest of them."""

    def __init__(self, path: Path) -> None:
        self._failed = False
        super().__init__(path, maxBytes=_FULL, backupCount=_KEEP, encoding="utf-8", errors="backslashreplace")
        self.setFormatter(_FileLines())

    def _open(self) -> Any:
        def private(name: str, flags: int) -> int:
            return os.open(name, flags, 0o600)

        return open(self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors, opener=private)

    def rotation_filename(self, default_name: str) -> str:
        full, _, number = default_name.rpartition(".")
        stem, suffix = os.path.splitext(full)  # noqa: PTH122 - the handler's names are texts
        return f"{stem}.{number}{suffix}"

    def handleError(self, record: logging.LogRecord) -> None:
        """Tell the first time that the disk is full, say: each line is on the stream anyway."""
        del record
        if not self._failed:
            self._failed = True
            logger.warning(_UNWRITABLE, self.baseFilename, sys.exc_info()[1])


class _Lines(logging.Formatter):
    """Formats a record as one entry: what follows its first line is indented, and no character has an effect."""

    def format(self, record: logging.LogRecord) -> str:
        said = printable(record.getMessage(), keep="\t\n", instead=_escaped).replace("\n", "\n    ")
        trace = ""
        if record.exc_info:
            trace = "\n" + printable(self.formatException(record.exc_info), keep="\t\n", instead=_escaped)
        return self.begin(record) + said + trace

    def begin(self, record: logging.LogRecord) -> str:
        """Write what stands before the message."""
        raise NotImplementedError


class _FileLines(_Lines):
    def begin(self, record: logging.LogRecord) -> str:
        return f"{self.formatTime(record, '%Y-%m-%d %H:%M:%S')}.{int(record.msecs):03d} {record.levelname} "


class _ScreenLines(_Lines):
    def __init__(self, *, coloured: bool) -> None:
        super().__init__()
        self._coloured = coloured

    def begin(self, record: logging.LogRecord) -> str:
        time, level = self.formatTime(record, "%H:%M:%S"), f"{record.levelname:7}"
        if not self._coloured:
            return f"{time} {level} "
        return f"\x1b[2m{time}\x1b[0m \x1b[{_COLOURS.get(record.levelname, '1;34')}m{level}\x1b[0m "


class _JournalLines(_Lines):
    def begin(self, record: logging.LogRecord) -> str:
        return f"<{_SYSLOG.get(record.levelname, 7)}>"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _has_colours(stream: TextIO) -> bool:
    """Whether colours are wanted: a terminal that has them, and no variable that says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def _is_journal(stream: TextIO) -> bool:
    """Whether systemd connected the stream to the journal, as it says in `JOURNAL_STREAM` (systemd.exec(5))."""
    try:
        seen = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{seen.st_dev}:{seen.st_ino}"
