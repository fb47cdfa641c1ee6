"""A D-Bus session of a test's own, and a notification service on it that answers, refuses or hangs."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
INTROSPECTION = f"""<node><interface name="{NAME}">
<method name="Notify"><arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/>
<arg type="a{{sv}}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/></method>
<method name="CloseNotification"><arg type="u" direction="in"/></method>
<method name="GetCapabilities"><arg type="as" direction="out"/></method>
<method name="GetServerInformation"><arg type="s" direction="out"/><arg type="s" direction="out"/>
<arg type="s" direction="out"/><arg type="s" direction="out"/></method>
<signal name="NotificationClosed"><arg type="u"/><arg type="u"/></signal>
<signal name="ActionInvoked"><arg type="u"/><arg type="s"/></signal></interface></node>"""
BUS = """<busconfig><type>session</type><listen>unix:path={path}</listen><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"""


class Service:
    """A notification service. `silent` and `refusing` name the calls it never answers, or answers with an error.

    `can`: its capabilities. `toasts` are the bodies of the calls of Notify, `closed` the ids that it was told to close.
    """

    def __init__(self, address: str, silent: str = "", refusing: str = "", can: tuple[str, ...] = ("body",)) -> None:
        self.silent, self.refusing, self.can = silent, refusing, list(can)
        self.toasts: list[Any] = []
        self.closed: list[int] = []
        self._up = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(address),), daemon=True)
        self._thread.start()
        assert self._up.wait(5)

    def stop(self) -> None:
        """Leave the bus."""
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(5)
        assert not self._thread.is_alive()

    def press(self, number: int, title: str) -> None:
        """Press the button of the toast with this number (from 1), as a user would; "" is the toast itself."""
        keys = self.toasts[number - 1][5]
        key = dict(zip(keys[1::2], keys[::2], strict=True))[title]
        self._signal("ActionInvoked", "us", [number, key])

    def dismiss(self, number: int, reason: int = 2) -> None:
        """Close a toast: 1 means it expired, 2 that the user did it."""
        self._signal("NotificationClosed", "uu", [number, reason])

    def _signal(self, name: str, signature: str, body: list[Any]) -> None:
        from dbus_fast import Message

        message = Message.new_signal(PATH, NAME, name, signature, body)
        self._loop.call_soon_threadsafe(self._bus.send, message)

    async def _serve(self, address: str) -> None:
        from dbus_fast.aio import MessageBus

        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        self._bus = await MessageBus(address).connect()
        self._bus.add_message_handler(self._answer)
        await self._bus.request_name(NAME)
        self._up.set()
        await self._done.wait()
        self._bus.disconnect()
        await asyncio.sleep(0)

    def _answer(self, message: Any) -> Any:
        from dbus_fast import Message

        answers: dict[str, tuple[str, list[Any]]] = {
            "Introspect": ("s", [INTROSPECTION]),
            "GetServerInformation": ("ssss", ["fake", "test", "1", "1.2"]),
            "GetCapabilities": ("as", [self.can]),
            "Notify": ("u", [len(self.toasts) + 1]),
            "CloseNotification": ("", []),
        }
        if message.path != PATH or message.member not in answers or message.message_type.name != "METHOD_CALL":
            return None
        if message.member == self.silent:
            return True
        if message.member == self.refusing:
            return Message.new_error(message, "org.example.No", "not today")
        if message.member == "Notify":
            self.toasts.append(message.body)
        if message.member == "CloseNotification":
            self.closed.append(message.body[0])
        return Message.new_method_return(message, *answers[message.member])


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def running_bus(folder: Path) -> Iterator[str]:
    """A session bus with nothing on it; its address."""
    with bus_process(folder) as (_, address):
        yield address


@contextmanager
def bus_process(folder: Path, before: Sequence[str] = ()) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The same, and its process. `folder` is short, as the path of a socket has to be; `before`: words in front of the
    command."""
    config = folder / "bus.conf"
    config.write_text(BUS.format(path=folder / "bus"))
    command = [*before, "dbus-daemon", f"--config-file={config}", "--print-address", "--nofork"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as daemon:
        assert daemon.stdout is not None
        try:
            yield daemon, daemon.stdout.readline().strip()
        finally:
            daemon.kill()
