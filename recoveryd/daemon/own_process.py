"""Manage the daemon's own process: its memory, its signals, and the code that it was started from."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SETTLED_S = 5.0  # an installer writes for a second or two
GONE_S = 300.0  # and may first fetch what it needs, with the old one removed


class OwnCode:
    """The installed code that this process was started from. Much of it is imported only when a session is stuck: from
    one that was upgraded meanwhile that would be another version's, beside what is loaded.

    Told by `file`, one of its modules: each installer writes all of them anew.
    """

    def __init__(self, file: Path = Path(__file__), clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = file, clock
        self._first: tuple[int, int] | None = None
        self._first = self._last = self._found()
        self._since = clock()

    def replaced(self) -> bool:
        """Whether it was upgraded or removed since."""
        return self._found() != self._first

    def settled(self) -> bool:
        """Whether nobody has written to it for `SETTLED_S`, by the calls of this. Where it was removed, for `GONE_S`:
        the new one may lie elsewhere (each version of Python has its own place), or there is none.
        """
        found = self._found()
        if found != self._last:
            self._last, self._since = found, self._clock()
        return self._clock() - self._since >= (GONE_S if found is None else SETTLED_S)

    def _found(self) -> tuple[int, int] | None:
        """Return size and time of the module, not its number: some file systems give another one each time."""
        try:
            found = self._file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # nobody knows
            return self._first
        return found.st_size, found.st_mtime_ns


def release_memory() -> None:
    """Give memory back after a session of thousands of messages: cycles of objects, then what glibc keeps in its heap
    (30 ms).
    """
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def handle_signals(stop: Callable[[], object], reload: Callable[[], object], wake: Callable[[], object]) -> None:
    """Call `stop` at SIGTERM and SIGINT, `reload` at SIGHUP. From the main thread alone.

    `wake`, from another thread, has the main thread return from what it waits for: Python calls a handler there only
    between two of its steps, and a signal that came just before the wait does not end it.
    """
    faulthandler.enable(2)  # a watchdog ends what hangs by SIGABRT: where it hung is worth a line
    terminals = [fd for fd in (0, 1, 2) if os.isatty(fd)]

    def hung_up() -> None:
        """A terminal that was closed says the same as `kill -HUP`."""
        closed = not all(os.isatty(fd) for fd in terminals)
        (stop if closed else reload)()

    _wake_at_each(wake)
    for number, answer in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, hung_up)):
        signal.signal(number, lambda *_, answer=answer: answer())


def _wake_at_each(wake: Callable[[], object]) -> None:
    """Start a thread that calls `wake` at each signal."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)

    def listen() -> None:
        while os.read(heard, 64):
            wake()

    threading.Thread(target=listen, name="recoveryd-signals", daemon=True).start()
