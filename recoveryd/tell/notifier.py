"""Notices to the user, which may never hold up a recovery. What can't be shown is one line in the log.

A thread of its own takes them. It waits for the end of a burst and tells it as one; then it rests.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from loguru import logger

from recoveryd.core import clean
from recoveryd.tell.desktop import Desktop
from recoveryd.tell.freedesktop import LIMIT_S
from recoveryd.tell.toast import BODY_LENGTH, TITLE_LENGTH, Button, Toast, merged_toast

__all__ = ["Button", "Delivery", "Fate", "Notifier", "Toast"]

QUIET_S = 0.5  # a burst is over when nothing came for so long
PATIENCE_S = 30.0  # but the first of it does not wait longer than this
REST_S = 5.0  # after the last of a burst was told; what comes meanwhile is one notice
_FEW = 2  # are shown one by one
_WAITING = 10_000


class Fate(StrEnum):
    """Whether a notifier's notice was shown."""

    SHOWN = "shown"
    LOGGED = "logged"  # not shown; it is in the log
    OFF = "off"  # the user wants none


class Delivery:
    """What a notifier made of a notice: shown, not shown, or not wanted."""

    def __init__(self, fate: Fate | None = None) -> None:
        self._known = threading.Event()
        self._fate = fate
        if fate:
            self._known.set()

    def settle(self, fate: Fate) -> None:
        """Set what became of the notice, once."""
        self._fate = fate
        self._known.set()

    def wait(self, timeout: float | None = None) -> Fate | None:
        """Wait up to `timeout` seconds for what became of the notice; None if that is not known then."""
        self._known.wait(timeout)
        return self._fate


class Notifier:
    """Sends notices from any thread. Nothing is imported and no thread is started before the first one."""

    def __init__(self, *, enabled: bool = True, show: Callable[[Toast], str] | None = None) -> None:
        """`show` shows one notice and returns "", or why it was not shown."""
        self._enabled = enabled
        self._desktop = Desktop()
        self._show = show or self._desktop.show
        self._answers: deque[tuple[Toast, Delivery]] = deque()
        self._news: list[tuple[Toast, Delivery]] = []
        self._first = self._last = self._told = float("-inf")  # when the first and the last of a burst came; told
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def send(self, toast: Toast) -> Delivery:
        """Hand over a notice; returns at once."""
        if not self._enabled:
            return Delivery(Fate.OFF)
        delivery = Delivery()
        with self._changed:
            room = len(self._news) + len(self._answers) < _WAITING and not self._closing
            if room:
                self._take(toast, delivery)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="toasts", daemon=True)
                    self._thread.start()
                self._changed.notify()
        if not room:
            _settle(toast, [delivery], "shutting down" if self._closing else "too many at once")
        return delivery

    def _take(self, toast: Toast, delivery: Delivery) -> None:
        if not toast.news:
            self._answers.append((toast, delivery))
            return
        self._last = time.monotonic()
        if not self._news:
            self._first = self._last
        self._news.append((toast, delivery))

    def close(self, timeout: float = LIMIT_S) -> None:
        """Wait up to `timeout` seconds for the notices that are due; the rest goes to the log.

        Buttons do nothing from then on, so notices with buttons are taken away.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        with self._changed:
            left = [*self._answers, *self._news]
            self._answers.clear()
            self._news.clear()
        for toast, deliveries in _told_as(left, few=_FEW):
            _settle(toast, deliveries, "shutting down")
        self._desktop.close()

    def _work(self) -> None:
        while due := self._due():
            for toast, deliveries in due:
                try:
                    problem = self._show(replace(toast, buttons=()) if self._closing else toast.offered())
                except Exception as error:  # whatever a desktop does, the next notice gets its chance
                    problem = f"{type(error).__name__}: {error}"
                _settle(toast, deliveries, problem)
            if due[0][0].news:
                self._told = time.monotonic()

    def _due(self) -> list[tuple[Toast, list[Delivery]]]:
        """Wait for what is to be shown next; nothing once the notifier is closed."""
        with self._changed:
            while True:
                if self._answers:
                    toast, delivery = self._answers.popleft()
                    return [(toast, [delivery])]
                wait = self._wait(time.monotonic())
                if self._closing or (wait is not None and wait <= 0):
                    burst, self._news = self._news, []
                    return _told_as(burst, few=1 if self._first < self._told + REST_S else _FEW)
                self._changed.wait(wait)

    def _wait(self, now: float) -> float | None:
        """Return the seconds until the burst is told; None when nothing came."""
        if not self._news:
            return None
        return max(min(self._last + QUIET_S, self._first + PATIENCE_S), self._told + REST_S) - now


def _told_as(news: list[tuple[Toast, Delivery]], few: int) -> list[tuple[Toast, list[Delivery]]]:
    if len(news) <= few or not news:
        return [(toast, [delivery]) for toast, delivery in news]
    return [(merged_toast([toast for toast, _ in news]), [delivery for _, delivery in news])]


def _settle(toast: Toast, deliveries: list[Delivery], problem: str) -> None:
    """Set the fate of notices; `problem` is why they were not shown, "" if they were."""
    if problem:
        said = clean(toast.logged or f"{toast.title}: {toast.body}", TITLE_LENGTH + BODY_LENGTH)
        logger.info("Notice, here because {}: {}", clean(problem, 200), said)
    for delivery in deliveries:
        delivery.settle(Fate.LOGGED if problem else Fate.SHOWN)
