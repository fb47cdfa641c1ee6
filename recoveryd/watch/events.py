"""Which events watchdog is asked for: never its default mask, with every open and close, which drowns in its own walk
(7.1).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from watchdog import events


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to watch in a folder: which events, and whether in all below it too."""

    events: frozenset[type[events.FileSystemEvent]]
    deep: bool = False

    def __or__(self, other: Wanted) -> Wanted:
        return Wanted(self.events | other.events, self.deep or other.deep)


FOLDERS = Wanted(frozenset({events.DirCreatedEvent, events.DirDeletedEvent, events.DirMovedEvent}))
# What is moved here from elsewhere counts as created.
MOVES = Wanted(frozenset({events.FileCreatedEvent, events.FileMovedEvent}))
# A database stays open: nobody tells that it was closed.
WRITES = MOVES | Wanted(frozenset({events.FileModifiedEvent}))
RECORDS = Wanted(frozenset({events.FileClosedEvent, events.FileMovedEvent}), deep=True)
if sys.platform != "linux":  # nor does anybody of any other file, there
    RECORDS |= WRITES


class Handler(events.FileSystemEventHandler):
    """Calls `told` with an event, its source and its destination. An exception here would end watchdog's thread."""

    def __init__(self, told: Callable[[events.FileSystemEvent, str, str], None]) -> None:
        self._told = told
        self.error = ""

    def dispatch(self, event: events.FileSystemEvent) -> None:
        """Pass one event on. An exception is kept in `error`."""
        try:
            self._told(event, os.fsdecode(event.src_path), os.fsdecode(event.dest_path or ""))
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
