"""A toast by way of the desktop's notification service (freedesktop.org), and the buttons below it.

desktop-notifier 6.2 can't tell that it failed (it gives an id with no bus at all), hangs on a hung service, and an
object of it never works again once the bus restarted. So: a fresh one for each toast, in a thread and an event loop of
its own, under a time limit. With buttons, both stay until one is pressed, the toast is closed, or `STAY_S` is over;
then the toast is taken away, so that no button stands that does nothing.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from recoveryd.core import clean
from recoveryd.tell.callbacks import safely
from recoveryd.tell.toast import BODY_LENGTH, Button, Toast, safe_title

if TYPE_CHECKING:
    import asyncio

    from desktop_notifier import DesktopNotifier

LIMIT_S = 2.0  # for the service to answer
STAY_S = 600.0  # that a button works; some desktops keep a toast in a list for good


class Talk(threading.Thread):
    """One notice's exchange with the notification service; without a notice it only asks whether a service answers."""

    def __init__(self, toast: Toast | None) -> None:
        super().__init__(name="toast", daemon=True)
        self.problem: str | None = None  # None: not known yet; "": shown
        self.stays = False
        self._toast = toast
        self._known = threading.Event()
        self._pressed: Button | None = None
        self._number = 0  # of the toast, as the service counts
        self._leaving = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> str:
        """Start, and wait until it is known whether the notice is shown."""
        self.start()
        self._known.wait(LIMIT_S + 1)  # a bus that does not even take a connection can block the whole loop
        return "the session bus does not answer" if self.problem is None else self.problem

    def leave(self) -> None:
        """Take the notice away, if it is still there. From any thread."""
        self._leaving = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it left by itself just now
                self._loop.call_soon_threadsafe(self._changed.set)

    def run(self) -> None:
        """Show the notice, wait for its buttons and run what was pressed. Called in a thread of its own."""
        import asyncio

        try:
            problem = asyncio.run(self._talk())
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        self._tell(problem)
        if self._pressed is not None:
            safely(f"the button {self._pressed.title}", self._pressed.pressed)

    def _tell(self, problem: str) -> None:
        if self.problem is None:
            self.problem = problem
            self._known.set()

    async def _talk(self) -> str:
        import asyncio

        from desktop_notifier import DesktopNotifier, Icon

        notifier = DesktopNotifier("recoveryd", Icon(name="dialog-information"))
        self._changed, self._loop = asyncio.Event(), asyncio.get_running_loop()
        try:
            async with asyncio.timeout(LIMIT_S):
                problem, waits_for = await self._begin(notifier)
            if waits_for:
                self.stays = True
                self._tell(problem)
                await self._stay(notifier, waits_for)
            return problem
        except TimeoutError:
            return f"the notification service did not answer in {LIMIT_S:g} seconds"
        finally:
            bus = _bus(notifier)
            if bus is not None:  # left open it is a descriptor a toast until the next collection
                bus.disconnect()
                await asyncio.sleep(0)

    async def _begin(self, notifier: DesktopNotifier) -> tuple[str, str]:
        """Show the toast: why it is not shown, if so; and its id if it has buttons that are to be waited for."""
        from desktop_notifier import Button as Native
        from desktop_notifier import Capability

        capabilities = await notifier.get_capabilities()
        if not capabilities:
            return "this desktop has no notification service for programs like this one", ""
        if self._toast is None:
            return "", ""
        buttons = self._toast.buttons if Capability.BUTTONS in capabilities else ()
        body = clean(self._toast.body, BODY_LENGTH, keep="\n")
        shown = await notifier.send(
            safe_title(self._toast.title),
            body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
            buttons=[Native(button.title, partial(self._press, button)) for button in buttons],
        )
        if shown not in await notifier.get_current_notifications():
            return "the notification service refused it", ""
        return "", shown if buttons else ""

    async def _stay(self, notifier: DesktopNotifier, shown: str) -> None:
        """Until a button is pressed, the toast or the bus is gone, or somebody or the clock says that it is enough."""
        import asyncio

        bus = _bus(notifier)
        bus.add_message_handler(self._hear)
        gone = asyncio.ensure_future(bus.wait_for_disconnect())
        gone.add_done_callback(self._hear_end)
        with suppress(TimeoutError):
            async with asyncio.timeout(STAY_S):
                while not (self._leaving or gone.done()) and shown in await notifier.get_current_notifications():
                    self._changed.clear()
                    await self._changed.wait()
        if not gone.done():
            gone.cancel()
            async with asyncio.timeout(LIMIT_S):
                if shown in await notifier.get_current_notifications():
                    await notifier.clear(shown)
                elif self._pressed is not None:
                    await _close(bus, self._number)

    def _hear(self, message: Any) -> None:
        """Handle a signal of the service: the notifier's own list tells what it was, but no longer the number of the
        notice.
        """
        if message.member == "ActionInvoked":
            self._number = message.body[0]
        self._changed.set()

    def _hear_end(self, gone: asyncio.Future[None]) -> None:
        if not gone.cancelled():
            gone.exception()  # heard; else asyncio logs an error
        self._changed.set()

    def _press(self, button: Button) -> None:
        self._pressed = button
        self._changed.set()


def _bus(notifier: DesktopNotifier) -> Any:
    """Return the notifier's connection, for which there is no public way; None before there is one."""
    return getattr(getattr(notifier, "_backend", None), "bus", None)


async def _close(bus: Any, number: int) -> None:
    """Close a toast whose button was pressed. Most services did; dunst leaves it, with buttons that do nothing now."""
    from dbus_fast import Message

    name, path = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
    await bus.call(Message(name, path, name, "CloseNotification", signature="u", body=[number]))
