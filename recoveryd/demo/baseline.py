"""The least that a repair can take on this disk: a bare watcher that does one synced, atomic write on the event.

`demo` and the benchmarks give their times as multiples of it, so that they mean the same on every machine.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

from watchdog import events
from watchdog.observers import Observer

from recoveryd.core import RecoverydError
from recoveryd.watch import why_not_watched

CONTENT = b'{\n  "type": "text",\n  "text": "[user interrupted]"\n}'
_LIMIT = 5.0  # seconds; it takes some milliseconds
_EVENT: type[events.FileSystemEvent] = (
    events.FileClosedEvent if sys.platform == "linux" else events.FileModifiedEvent  # nobody else tells of the close
)


class Floor:
    """The least that a detection and a write cost on this machine: watches `folder/in` and writes to `folder/out`, both
    its own; use it as a context manager.

    Raises `RecoverydError` when nothing can be watched.
    """

    def __init__(self, folder: Path) -> None:
        self._in, self._out = folder / "in", folder / "out"
        for made in (self._in, self._out):
            made.mkdir(parents=True)
        self._ended = 0.0
        self._done = threading.Event()
        self._runs = 0

    def __enter__(self) -> Self:
        try:
            self._observer: Any = Observer()
            self._observer.schedule(_Handler(self._write), str(self._in), event_filter=[_EVENT])
            self._observer.start()
        except OSError as error:
            raise RecoverydError(f"Nothing can be watched: {why_not_watched(error)}.") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._observer.stop()
        self._observer.join()

    def once(self) -> float:
        """Measure the seconds from the close of a file to the answer to it being on the disk."""
        self._runs += 1
        self._done.clear()
        (self._in / f"{self._runs}.json").write_bytes(CONTENT)
        started = time.monotonic()
        if not self._done.wait(_LIMIT):
            raise RecoverydError(f"No event came within {_LIMIT:g} seconds of a write to {self._in}.")
        return self._ended - started

    def _write(self) -> None:
        if self._done.is_set():
            return  # some platforms tell twice
        aside = self._out / f".{self._runs}.json"
        file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, CONTENT)
            sync(file)
        finally:
            os.close(file)
        aside.rename(self._out / aside.name[1:])
        folder = os.open(self._out, os.O_RDONLY)
        try:
            sync(folder)
        finally:
            os.close(folder)
        self._ended = time.monotonic()
        self._done.set()


class _Handler(events.FileSystemEventHandler):
    def __init__(self, write: Any) -> None:
        self._write = write

    def dispatch(self, event: events.FileSystemEvent) -> None:
        if not event.is_directory:
            self._write()


def sync(fd: int) -> None:
    """Sync for the demo's baseline as `disk.file_transaction` does, or the baseline would be lower than anything can
    reach.
    """
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)
