"""Manage the daemon's own process: give memory back to the system, and handle signals."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress


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
