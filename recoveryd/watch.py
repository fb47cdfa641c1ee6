"""Tells which session was written to, the moment it is.

watchdog watches the folder of each store, and of each folder's place the folder above, to notice that it comes, goes or
is replaced. Events are hints: a queue that overflows tells nobody, so the daemon's slow sweep stays behind this.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from watchdog import events
from watchdog.observers import Observer

from recoveryd import folders
from recoveryd.stores.atomic import TEMPORARY
from recoveryd.stores.base import Store

OnTouch = Callable[[str, str | None], None]

_Events = list[type[events.FileSystemEvent]]
_FOLDERS: _Events = [events.DirCreatedEvent, events.DirDeletedEvent, events.DirMovedEvent]
# Never watchdog's default: it asks for every open and close too, and its own walk drowns in them (7.1).
_RECORDS = [*_FOLDERS, events.FileClosedEvent, events.FileMovedEvent]
if sys.platform != "linux":  # nobody else tells when a file was closed
    _RECORDS += [events.FileCreatedEvent, events.FileModifiedEvent]
# 6.0 keeps the descriptors of an attempt that failed, so the next one waits.
_RETRY_S = 3600.0


class _Handler(events.FileSystemEventHandler):
    """Calls `told` with an event, its source and its destination. An exception here would end watchdog's thread."""

    def __init__(self, told: Callable[[events.FileSystemEvent, str, str], None]) -> None:
        self._told = told
        self.error = ""

    def dispatch(self, event: events.FileSystemEvent) -> None:
        try:
            self._told(event, os.fsdecode(event.src_path), os.fsdecode(event.dest_path or ""))
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class _Attached:
    watch: Any  # watchdog's ObservedWatch
    path: str
    identity: tuple[int, int]
    handler: _Handler


class Watcher:
    """Calls `on_touch(store id, session id)` after each write, and with None when all sessions need a look.

    That is so after each attachment: the watch stands before the caller looks, so nothing falls between. It is called
    in threads of the watcher and should only put the touch in a queue. While nothing happens, no thread wakes up.
    """

    def __init__(self, stores: Iterable[Store], on_touch: OnTouch) -> None:
        self._stores = tuple(stores)
        self._on_touch = on_touch
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopped = False
        self._observer: Any = None
        self._roots: dict[str, _Attached] = {}  # by store id
        self._above: dict[str, _Attached] = {}  # by path: the folders in which a root comes and goes
        self._places: frozenset[str] = frozenset()  # the roots and all folders above them
        self._replaced: set[str] = set()  # an inode number may be used again at once: identity alone can't tell
        self._failed: dict[str, tuple[float, str]] = {}  # by path: when to try again, and what was wrong
        self._thread = threading.Thread(target=self._recheck, name="recoveryd-watch", daemon=True)
        # It warns of its own races, half a page each time.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")

    def start(self) -> None:
        """Attach to every store that exists; `on_touch(store, None)` was called for each when this returns."""
        self._thread.start()
        self.check()

    def stop(self) -> None:
        """End all threads; no touch comes after this. A watcher is used once."""
        self._stopped = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        with self._lock:
            self._close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def check(self) -> None:
        """Attach again wherever a folder appeared, was replaced or is no longer watched. Cheap when all is well."""
        fresh: list[str] = []
        with self._lock:
            if self._stopped:
                return
            if not self._observe():
                return
            # The next folder down may appear while the one above it is being attached to.
            for _ in range(20):
                attached = [store.id for store in self._stores if self._attach_root(store)]
                fresh += attached
                if not self._attach_above() and not attached:
                    break
        for store_id in dict.fromkeys(fresh):
            self._on_touch(store_id, None)

    def problems(self) -> list[str]:
        """What keeps writes from being noticed at once, a sentence each. Counts folders: not for a busy loop."""
        with self._lock:
            attached = [*self._roots.values(), *self._above.values()]
            found = [reason for _, reason in self._failed.values()]
            found += [f"An event of {a.path} was lost: {a.handler.error}" for a in attached if a.handler.error]
            shortage = folders.shortage([a.path for a in self._roots.values()], len(self._above))
        return [*found, shortage] if shortage else found

    def _recheck(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopped:
                return
            try:
                self.check()
            except Exception as error:  # the next event, or the daemon's tick, tries again
                self._failed["check"] = (0.0, f"Watching could not be resumed: {type(error).__name__}: {error}")
            else:
                self._failed.pop("check", None)

    def _observe(self) -> bool:
        """Have an observer that lives; 7.1 needs an inotify instance for each, which may be refused."""
        if self._observer is not None and self._observer.is_alive():
            return True
        self._close()
        try:
            self._observer = Observer()
        except OSError as error:
            self._failed["observer"] = 0.0, f"Nothing is watched: {folders.reason(error)}."
            return False
        self._failed.pop("observer", None)
        self._observer.start()
        return True

    def _attach_root(self, store: Store) -> bool:
        """Watch the folder of a store. True when it was not watched before."""
        path = os.path.realpath(store.watch_path)  # through a symlink, watchdog sees nothing at the top
        have = self._roots.get(store.id)
        identity = folders.identity(path)
        if have and have.path == path and self._holds(have, identity):
            return False
        if have:
            self._detach(self._roots.pop(store.id).watch)
        if identity is None:
            self._failed.pop(path, None)
            return False
        handler = _Handler(lambda event, source, target: self._changed(store, path, event, source, target))
        attached = self._attach(path, handler, recursive=True)
        if attached:
            self._roots[store.id] = attached
        return bool(attached)

    def _attach_above(self) -> bool:
        """Watch the nearest folder above each root that exists. True when that changed what may be there by now."""
        roots = [Path(os.path.realpath(store.watch_path)) for store in self._stores]
        self._places = frozenset(str(place) for root in roots for place in (root, *root.parents))
        wanted = {str(next(place for place in root.parents if place.is_dir())) for root in roots}
        for path, have in list(self._above.items()):
            if path not in wanted or not self._holds(have, folders.identity(path)):
                self._detach(self._above.pop(path).watch)
        again = False
        for path in wanted - self._above.keys():
            attached = self._attach(path, _Handler(self._changed_above), recursive=False)
            if attached:
                self._above[path] = attached
            again = again or attached is not None or path not in self._failed
        return again

    def _holds(self, have: _Attached, identity: tuple[int, int] | None) -> bool:
        if have.path in self._replaced or have.identity != identity:
            return False
        return any(emitter.watch == have.watch and emitter.is_alive() for emitter in self._observer.emitters)

    def _attach(self, path: str, handler: _Handler, *, recursive: bool) -> _Attached | None:
        if time.monotonic() < self._failed.get(path, (0.0, ""))[0]:
            return None
        self._replaced.discard(path)
        for _ in range(
            3
        ):  # folders come and go: 6.0 gives up when one below vanishes, 7.0 watches nothing and is silent
            try:
                with folders.held(path) as identity:
                    wanted = _RECORDS if recursive else _FOLDERS
                    watch = self._observer.schedule(handler, path, recursive=recursive, event_filter=wanted)
                    if folders.identity(path) == identity:
                        self._failed.pop(path, None)
                        return _Attached(watch, path, identity, handler)
                    self._detach(watch)
            except OSError as error:
                if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
                    self._failed[path] = time.monotonic() + _RETRY_S, f"{path} is not watched: {folders.reason(error)}."
                    return None
        return None

    def _detach(self, watch: Any) -> None:
        # A folder that is gone took its watches with it, which versions of watchdog take differently.
        with suppress(KeyError, OSError, RuntimeError):
            self._observer.unschedule(watch)

    def _close(self) -> None:
        self._roots.clear()
        self._above.clear()
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None

    def _changed(self, store: Store, root: str, event: events.FileSystemEvent, source: str, target: str) -> None:
        if source == root:
            self._replaced.add(source)
            self._wake.set()
        elif isinstance(event, events.DirDeletedEvent) or Path(source).name.startswith(TEMPORARY):
            return  # a temporary name is the daemon's own write, which never wakes it
        else:
            for session in store.touched(Path(target or source).relative_to(root).parts):
                self._on_touch(store.id, session)

    def _changed_above(self, event: events.FileSystemEvent, source: str, target: str) -> None:
        if source in self._places and not isinstance(event, events.DirCreatedEvent):
            self._replaced.add(source)
        if source in self._places or target in self._places:
            self._wake.set()
