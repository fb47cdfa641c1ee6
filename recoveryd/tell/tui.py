"""Toasts in the client's own TUI, from a thread of their own: a client at work may take seconds for an answer."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress

from recoveryd.clients import Server
from recoveryd.core import Failure
from recoveryd.tell.callbacks import safely

_WAITING = 16  # a TUI shows one at a time: of more, nobody would see the first
_CLOSING_S = 2.0

_Toast = tuple[Server, Failure, str, str, str, str]


class TuiToasts:
    """Sends toasts; never waits for one. What can't be shown is dropped: it is in the log, and on the desktop."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._waiting: queue.Queue[_Toast | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None

    def send(self, server: Server, failure: Failure, directory: str, title: str, text: str, variant: str) -> None:
        """Hand over a toast for `Server.toast`. Returns at once."""
        if not self._enabled:
            return
        with suppress(queue.Full):
            self._waiting.put_nowait((server, failure, directory, title, text, variant))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tui toasts", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait up to two seconds for the toasts that are due."""
        if self._thread is not None:
            with suppress(queue.Empty):
                while self._waiting.full():
                    self._waiting.get_nowait()
            self._waiting.put(None)
            self._thread.join(_CLOSING_S)

    def _work(self) -> None:
        while (toast := self._waiting.get()) is not None:
            server, *said = toast
            safely("a notice in the client", server.toast, *said)
