"""The least that a repair of a database can take: a bare watcher of the WAL that commits one synced UPDATE."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from watchdog import events
from watchdog.observers import Observer

from tests.bench.client import Client, connect
from tests.bench.large import create

FLOOR_IS = "a bare watcher of the WAL that commits one UPDATE, synced, on the event"
_LIMIT = 5.0  # seconds; it takes some milliseconds
_LAST = """SELECT instr(data, '"error"'), (SELECT count(*) FROM message)
    FROM message ORDER BY rowid DESC LIMIT 1"""
_UPDATE = "UPDATE message SET data = ?, time_updated = time_updated + 1 WHERE id = ?"


class WalFloor:
    """In a database of its own below `folder`; use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._path = folder.resolve() / "opencode.db"
        self._done = threading.Event()
        self._done.set()
        self._ended = 0.0

    def __enter__(self) -> Self:
        create(self._path)
        self._client = Client(self._path)
        self._client.__enter__()
        [(self._planted, self._failed)] = self._client.plant(1)
        self._own = connect(self._path)
        for pragma in ("synchronous = FULL", "busy_timeout = 0", "wal_autocheckpoint = 0"):
            self._own.execute(f"PRAGMA {pragma}")
        self._observer: Any = Observer()
        handler = _Handler(self._path.name + "-wal", self._write)
        self._observer.schedule(handler, str(self._path.parent), event_filter=[events.FileModifiedEvent])
        self._observer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._observer.stop()
        self._observer.join()
        self._own.close()
        self._client.__exit__()

    def once(self) -> float:
        """Seconds from the commit of a failure to the answer to it being committed."""
        time.sleep(0.02)  # what is left of the last answer's events
        with closing(sqlite3.connect(self._path)) as db:
            [[before]] = db.execute("SELECT count(*) FROM message").fetchall()
        self._wanted = before + 2
        self._done.clear()
        committed = self._client.fail(self._planted.id, self._failed)
        if not self._done.wait(_LIMIT):
            raise AssertionError(f"No event came within {_LIMIT:g} seconds of a write to {self._path}")
        return self._ended - committed

    def _write(self) -> None:
        if self._done.is_set():
            return  # its own write, too, is an event
        data, message = "{}", self._planted.messages[0]["id"]
        while True:
            try:
                self._own.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError:
                time.sleep(0)  # the client still holds the lock
        # The failure's last write is the one to be answered.
        error, count = self._own.execute(_LAST).fetchone()
        if not error or count != self._wanted:
            self._own.execute("ROLLBACK")
            return
        self._own.execute(_UPDATE, (data, message))
        self._own.execute("COMMIT")
        self._ended = time.monotonic()
        self._done.set()


class _Handler(events.FileSystemEventHandler):
    def __init__(self, name: str, write: Any) -> None:
        self._name = name
        self._write = write

    def dispatch(self, event: events.FileSystemEvent) -> None:
        if str(event.src_path).endswith(self._name):
            self._write()
