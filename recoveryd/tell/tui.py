"""Toasts in the client's own TUI, from a thread of their own: a client at work may take seconds for an answer."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from recoveryd.clients import Server
from recoveryd.core import Failure
from recoveryd.tell.callbacks import safely

_WAITING = 16  # a TUI shows one at a time: of more, nobody would see the first
_CLOSING_S = 2.0
_AGAIN_S = (6.0, 12.0, 24.0)  # when a client that was too slow is tried again

_Toast = tuple[Callable[[], bool | None], Callable[[], bool]]  # shows it; whether it still holds


class TuiToasts:
    """Sends toasts; never waits for one. What can't be shown in a while is dropped: it is in the log, and on the
    desktop.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._waiting: queue.Queue[_Toast | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None

    def send(
        self,
        server: Server,
        failure: Failure,
        directory: str,
        title: str,
        text: str,
        variant: str,
        still: Callable[[], bool] = lambda: True,
    ) -> None:
        """Hand over a toast for `Server.toast`. Returns at once. `still` is asked before it is tried again, in the
        thread of the toasts: whether it still holds.
        """
        if not self._enabled:
            return
        with suppress(queue.Full):
            self._waiting.put_nowait((partial(server.toast, failure, directory, title, text, variant), still))
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
        slow: list[tuple[float, int, _Toast]] = []  # when it is due, how often it was tried; by that time
        while True:
            toast: _Toast | None
            try:
                wait = max(0.0, slow[0][0] - time.monotonic()) if slow else None
                toast, tried = self._waiting.get(timeout=wait), 0
            except queue.Empty:
                _, tried, toast = slow.pop(0)
            if toast is None:
                return
            shown: list[bool | None] = []
            safely("a notice in the client", partial(_show, again=tried > 0), toast, shown)
            if shown == [None] and tried < len(_AGAIN_S) and len(slow) < _WAITING:
                slow.append((time.monotonic() + _AGAIN_S[tried], tried + 1, toast))
                slow.sort(key=lambda one: one[0])


def _show(toast: _Toast, shown: list[bool | None], *, again: bool) -> None:
    show, still = toast
    if not again or still():
        shown.append(show())
