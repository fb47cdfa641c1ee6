"""Tells which session was written to, the moment it is.

watchdog watches the folder of each store, and of each folder's place the folder above, to notice that it comes, goes or
is replaced. A folder has one watch for all that is asked of it: two overwrite each other in watchdog 7.0. Events are
hints: a queue that overflows tells nobody, so the daemon's slow sweep stays behind this.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from watchdog import events
from watchdog.observers import Observer

from recoveryd.clients import Store
from recoveryd.disk import TEMPORARY, is_folder
from recoveryd.watch import folders
from recoveryd.watch.busy_files import LOOK_S, Burst
from recoveryd.watch.events import FOLDERS, MOVES, RECORDS, WRITES, Handler, Wanted

OnTouch = Callable[[str, str | None], None]

# 6.0 keeps the descriptors of an attempt that failed, so the next one waits.
_RETRY_S = 3600.0
_EVERYWHERE = _CHECK, _OBSERVER = "check", "observer"  # what fails for all stores at once, among the paths that do


@dataclass(frozen=True, slots=True)
class _Attached:
    watch: Any  # watchdog's ObservedWatch
    wanted: Wanted
    identity: tuple[int, int]
    handler: Handler


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
        self._attached: dict[str, _Attached] = {}  # by path
        self._roots: dict[str, list[Store]] = {}  # by path; several databases may share a folder
        self._places: frozenset[str] = frozenset()  # the roots and all folders above them
        self._replaced: set[str] = set()  # an inode number may be used again at once: identity alone can't tell
        self._bursts: dict[str, Burst] = {}  # by path
        self._failed: dict[str, tuple[float, str]] = {}  # when to try again, and what was wrong
        self._thread = threading.Thread(target=self._recheck, name="recoveryd-watch", daemon=True)
        # It warns of its own races, half a page each time.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")

    def start(self) -> None:
        """Attach to every store that exists; `on_touch(store, None)` was called for each when this returns."""
        self._thread.start()
        self.check()

    def watch(self, stores: Iterable[Store]) -> None:
        """Watch these stores from now on, and no others."""
        self._stores = tuple(stores)
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
        """Attach again wherever a folder appeared, was replaced or is no longer watched. Cheap when all is well.

        Raises nothing: what goes wrong is among the `problems`, and the next event or check tries again.
        """
        self._safely(self._check)

    def _safely(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            self._failed[_CHECK] = (0.0, f"Watching could not be resumed: {type(error).__name__}: {error}")
        else:
            self._failed.pop(_CHECK, None)

    def _check(self) -> None:
        fresh: list[str] = []
        with self._lock:
            if self._stopped or not self._observe():
                return
            # The next folder down may appear while the one above it is being attached to.
            for _ in range(20):
                changed = self._attach_all()
                fresh += [store.id for path in changed & self._attached.keys() for store in self._roots.get(path, ())]
                if not changed:
                    break
        self._touch(fresh)

    def alive(self) -> bool:
        """Whether its threads live. A folder that can't be watched is a problem, not a death."""
        observer = self._observer
        return self._thread.is_alive() and (observer is None or observer.is_alive())

    def problems(self) -> dict[str, list[str]]:
        """Tell what keeps writes from being noticed at once: a sentence each, with the ids of the stores of which that
        goes on. Counts folders: not for a busy loop.
        """
        with self._lock:
            everywhere = [store.id for store in self._stores]
            found = {
                reason: everywhere if of in _EVERYWHERE else self._ids([of]) for of, (_, reason) in self._failed.items()
            }
            lost = {path: have.handler.error for path, have in self._attached.items() if have.handler.error}
            found |= {f"An event of {path} was lost: {error}": [] for path, error in lost.items()}
            deep = [path for path, have in self._attached.items() if have.wanted.deep]
            shortage = folders.shortage(deep, len(self._attached) - len(deep))
            return found | {shortage: self._ids(deep)} if shortage else found

    def _ids(self, paths: Iterable[str]) -> list[str]:
        return [store.id for path in paths for store in self._roots.get(path, ())]

    def _recheck(self) -> None:
        while True:
            woken = self._wake.wait(LOOK_S if self._bursts else None)
            self._wake.clear()
            if self._stopped:
                return
            self._safely(partial(self._go_on, woken=woken))

    def _go_on(self, *, woken: bool) -> None:
        over = self._look_at_bursts()
        if woken or over:
            self._check()
        for burst in over:
            self._touch(burst.changed())  # while it was attached to

    def _look_at_bursts(self) -> list[Burst]:
        """Tell what was written in each burst, and return and drop the bursts that are over."""
        for burst in list(self._bursts.values()):
            self._touch(burst.changed())
        over = {path: burst for path, burst in list(self._bursts.items()) if burst.over}
        for path in over:
            del self._bursts[path]
        return list(over.values())

    def _touch(self, store_ids: Iterable[str]) -> None:
        for store_id in dict.fromkeys(store_ids):
            self._on_touch(store_id, None)

    def _observe(self) -> bool:
        """Make sure that an observer runs; 7.1 needs an inotify instance for each, which may be refused."""
        if self._observer is not None and self._observer.is_alive():
            return True
        self._close()
        try:
            self._observer = Observer()
        except OSError as error:
            self._failed[_OBSERVER] = 0.0, f"Nothing is watched: {folders.why_not_watched(error)}."
            return False
        self._failed.pop(_OBSERVER, None)
        self._observer.start()
        return True

    def _wanted(self) -> dict[str, Wanted]:
        """Return what to watch, by path: the folder of each store that is there, and the nearest folder above it."""
        wanted: dict[str, Wanted] = {}
        roots: dict[str, list[Store]] = {}
        for store in self._stores:
            root = Path(os.path.realpath(store.watch_path))  # through a symlink, watchdog sees nothing at the top
            roots.setdefault(str(root), []).append(store)
            files = MOVES if str(root) in self._bursts else WRITES if store.watch_files else RECORDS
            if store.kept_open:
                files |= WRITES
            if folders.folder_identity(str(root)) is None:
                self._failed.pop(str(root), None)
            else:
                wanted[str(root)] = wanted.get(str(root), FOLDERS) | files
            above = str(next(place for place in root.parents if is_folder(place)))
            wanted.setdefault(above, FOLDERS)
        self._roots = roots
        self._places = frozenset(str(place) for root in map(Path, roots) for place in (root, *root.parents))
        return wanted

    def _attach_all(self) -> set[str]:
        """Watch what is wanted, and nothing else. Returns the paths newly attached to, and those that went
        meanwhile.
        """
        wanted = self._wanted()
        known = set()
        for path, have in list(self._attached.items()):
            held = self._holds(path, have)
            if wanted.get(path) != have.wanted or not held:
                self._detach(self._attached.pop(path).watch)
                known |= {path} if held else set()
        tried = {path: self._attach(path, wanted[path]) for path in wanted.keys() - self._attached.keys()}
        self._attached |= {path: have for path, have in tried.items() if have}
        return tried.keys() - self._failed.keys() - (known & self._attached.keys())

    def _holds(self, path: str, have: _Attached) -> bool:
        if path in self._replaced or have.identity != folders.folder_identity(path):
            return False
        return any(emitter.watch == have.watch and emitter.is_alive() for emitter in self._observer.emitters)

    def _attach(self, path: str, wanted: Wanted) -> _Attached | None:
        if time.monotonic() < self._failed.get(path, (0.0, ""))[0]:
            return None
        self._replaced.discard(path)
        handler = Handler(lambda event, source, target: self._changed(path, event, source, target))
        # Folders come and go: 6.0 gives up when one below vanishes, 7.0 watches nothing and is silent.
        for _ in range(3):
            try:
                with folders.held_open(path) as identity:
                    asked = list(wanted.events)
                    watch = self._observer.schedule(handler, path, recursive=wanted.deep, event_filter=asked)
                    if folders.folder_identity(path) == identity:
                        self._failed.pop(path, None)
                        return _Attached(watch, wanted, identity, handler)
                    self._detach(watch)
            except OSError as error:
                if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
                    self._failed[path] = (
                        time.monotonic() + _RETRY_S,
                        f"{path} is not watched: {folders.why_not_watched(error)}.",
                    )
                    return None
        return None

    def _detach(self, watch: Any) -> None:
        # A folder that is gone took its watches with it, which versions of watchdog take differently.
        with suppress(KeyError, OSError, RuntimeError):
            self._observer.unschedule(watch)

    def _close(self) -> None:
        self._attached.clear()
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None

    def _changed(self, path: str, event: events.FileSystemEvent, source: str, target: str) -> None:
        """Handle an event in the folder `path`, or below it."""
        if source in self._places or target in self._places:
            if source in self._places and not isinstance(event, events.DirCreatedEvent):
                self._replaced.add(source)
            self._wake.set()
        # A temporary name is the daemon's own write, which never wakes it.
        if source == path or isinstance(event, events.DirDeletedEvent) or Path(source).name.startswith(TEMPORARY):
            return
        for store in self._roots.get(path, ()):
            for session in store.touched(Path(target or source).relative_to(path).parts):
                if store.watch_files and path not in self._bursts:
                    self._bursts[path] = Burst(self._roots[path])
                    self._wake.set()
                self._on_touch(store.id, session)
