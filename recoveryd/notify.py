"""Desktop toasts, which may never hold up a recovery. What can't be shown is one line in the log.

desktop-notifier 6.2 can't tell that it failed: it gives an id with no bus at all, hangs on a hung service, and an
object of it never works again once the bus restarted. So: a fresh one for each toast, under a time limit, in a thread
of its own; a toast counts as shown when the service has capabilities and the id is among the current notifications.
"""

from __future__ import annotations

import os
import sys
import threading
import unicodedata
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from loguru import logger

TITLE_LENGTH, BODY_LENGTH = 80, 300  # characters
_LIMIT = 2.0  # seconds for a toast, and for the last ones at shutdown
_WAITING = 16
_JOINERS = "\u200c\u200d"  # format characters that whole scripts and emoji can't do without


@dataclass(frozen=True, slots=True)
class Toast:
    """A notice as it is meant; `send` makes it fit and safe."""

    title: str
    body: str


class Fate(StrEnum):
    SHOWN = "shown"
    LOGGED = "logged"  # not shown; it is in the log
    OFF = "off"  # the user wants none


class Delivery:
    """What became of a toast, once that is known."""

    def __init__(self, fate: Fate | None = None) -> None:
        self._known = threading.Event()
        self._fate = fate
        if fate:
            self._known.set()

    def settle(self, fate: Fate) -> None:
        self._fate = fate
        self._known.set()

    def wait(self, timeout: float | None = None) -> Fate | None:
        """Its fate, or None if that is not known after `timeout` seconds."""
        self._known.wait(timeout)
        return self._fate


class Notifier:
    """Sends toasts from any thread. Nothing is imported and no thread is started before the first one."""

    def __init__(self, *, enabled: bool = True, show: Callable[[Toast], str] | None = None) -> None:
        """`show` shows one toast and returns "", or why it did not: a seam for tests and other desktops."""
        self._enabled = enabled
        self._show = show or show_on_desktop
        self._waiting: deque[tuple[Toast, Delivery]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def send(self, toast: Toast) -> Delivery:
        """Hand over a toast; returns at once."""
        if not self._enabled:
            return Delivery(Fate.OFF)
        delivery = Delivery()
        with self._changed:
            room = len(self._waiting) < _WAITING and not self._closing
            if room:
                self._waiting.append((toast, delivery))
                self._changed.notify()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="toasts", daemon=True)
                    self._thread.start()
        if not room:
            _log(toast, delivery, "shutting down" if self._closing else "too many at once")
        return delivery

    def close(self, timeout: float = _LIMIT) -> None:
        """Give those that wait `timeout` seconds in all; the rest goes to the log."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        with self._changed:
            left = list(self._waiting)
            self._waiting.clear()
        for toast, delivery in left:
            _log(toast, delivery, "shutting down")

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closing:
                        return
                    self._changed.wait()
                toast, delivery = self._waiting.popleft()
            try:
                problem = self._show(toast)
            except Exception as error:  # whatever a desktop does, the next toast gets its chance
                problem = f"{type(error).__name__}: {error}"
            if problem:
                _log(toast, delivery, problem)
            else:
                delivery.settle(Fate.SHOWN)


def clean(text: str, length: int, keep: str = "") -> str:
    """Without control, bidi and other invisible characters (`keep` stays), blanks folded, cut to `length`."""
    visible = "".join(_visible(c, keep) for c in text[: length * 4])
    folded = "\n".join(" ".join(line.split()) for line in visible.split("\n")).strip()
    return folded if len(folded) <= length else folded[: length - 1].rstrip() + "…"


def _visible(character: str, keep: str) -> str:
    category = unicodedata.category(character)
    if character in keep or character in _JOINERS:
        return character
    if category[0] == "Z" or character in "\t\n\r":
        return " "
    if category == "Cs":  # half a character, from broken JSON; a bus takes UTF-8 alone
        return "\ufffd"
    return "" if category[0] == "C" else character


def show_on_desktop(toast: Toast) -> str:
    """Show a toast on this desktop. Returns "" when it is among those that are shown now, else why not."""
    if sys.platform == "linux" and not _has_bus():
        return "there is no session bus"  # before the import: 4 MB that a server never needs
    import asyncio

    return asyncio.run(_show(toast))


def _has_bus() -> bool:
    if os.environ.get("DBUS_SESSION_BUS_ADDRESS") or os.environ.get("DISPLAY"):
        return True
    usual = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent", "bus")
    if not usual.is_socket():
        return False
    # Where every other client looks for it when nothing says otherwise (over ssh, from cron); dbus-fast does not.
    os.environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={usual}"
    return True


async def _show(toast: Toast) -> str:
    import asyncio

    from desktop_notifier import DesktopNotifier, Icon

    notifier = DesktopNotifier("recoveryd", Icon(name="dialog-information"))
    body = clean(toast.body, BODY_LENGTH, keep="\n").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    try:
        async with asyncio.timeout(_LIMIT):
            if not await notifier.get_capabilities():
                return "this desktop has no notification service for programs like this one"
            shown = await notifier.send(clean(toast.title, TITLE_LENGTH) or "recoveryd", body)
            return "" if shown in await notifier.get_current_notifications() else "the notification service refused it"
    except TimeoutError:
        return f"the notification service did not answer in {_LIMIT:g} seconds"
    finally:
        # There is no public way to leave the bus; left open it is a descriptor a toast until the next collection.
        bus = getattr(getattr(notifier, "_backend", None), "bus", None)
        if bus is not None:
            bus.disconnect()
            await asyncio.sleep(0)


def _log(toast: Toast, delivery: Delivery, reason: str) -> None:
    title, body, why = clean(toast.title, TITLE_LENGTH), clean(toast.body, BODY_LENGTH), clean(reason, 200)
    logger.info("Notice, here because {}: {}: {}", why, title, body)
    delivery.settle(Fate.LOGGED)
