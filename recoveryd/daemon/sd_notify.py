"""Tell a service manager how the daemon is: sd_notify(3) over its datagram socket. Without one nothing is sent."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from recoveryd.clients import Store
from recoveryd.core import Outcome, first_of
from recoveryd.ledger import Ledger, Upkeep, count_outcomes, midnight


class SdNotify:
    """Talks to the service manager that `env` names (sd_notify). `watchdog_s`: seconds after which a silent daemon is
    restarted, or None.
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        env = os.environ if env is None else env
        self._address = env.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):  # the abstract namespace
            self._address = "\0" + self._address[1:]
        watched = env.get("WATCHDOG_USEC", "").isdecimal() and env.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.watchdog_s = int(env["WATCHDOG_USEC"]) / 1e6 or None if watched and self._address else None
        self._status = ""
        self._fed = float("-inf")

    def ready(self) -> None:
        """Tell that the daemon has started, or has read its configuration again."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Tell that the configuration is being read again."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Tell that the daemon ends."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """Send a line for people, if it differs from the last one."""
        text = " ".join(text.split())
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def alive(self) -> None:
        """Feed the watchdog. May be called often: it is sent only when the manager needs it."""
        now = time.monotonic()
        if self.watchdog_s is not None and now - self._fed >= self.watchdog_s / 4:
            self._fed = now
            self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address.startswith(("/", "\0")):
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:  # it may be gone or full
            out.settimeout(1.0)
            out.sendto(message.encode("utf-8", "backslashreplace"), self._address)


class ServiceStatus:
    """Tells the service manager what changed, and nothing twice."""

    def __init__(self, manager: SdNotify) -> None:
        self._manager = manager
        self._said: tuple[object, ...] = ()
        self._ready = False

    def unready(self) -> None:
        """Note that everything is built anew; call `ready` when that is done."""
        self._said, self._ready = (), False

    def ready(self, stores: Iterable[Store], unusable: Collection[str], ledger: Ledger, told: int) -> None:
        """Tell that every store was swept, and which of them are watched (`stores`).

        `unusable`: the ids of those that can't be read or edited, so that nothing is repaired there. `told`: how many
        recoveries came to an end so far; the status is sent after each.
        """
        there = [store for store in stores if store.exists()]
        roots = tuple(str(store.root) for store in there if store.id not in unusable)
        closed = tuple(str(store.root) for store in there if store.id in unusable)
        now = roots, closed, told, midnight(time.time())
        if now != self._said:
            self._said = now
            healed = count_outcomes(Upkeep(ledger).ended(), now[-1])[Outcome.HEALED]
            self._manager.status(status_line(roots, closed, healed))
        if not self._ready:
            self._ready = True
            self._manager.ready()

    def same_as_before(self) -> None:
        """Tell that the configuration was read again, and nothing changed."""
        if self._ready:
            self._manager.ready()


def status_line(roots: Sequence[str], closed: Sequence[str], healed: int) -> str:
    """Write the line for `systemctl status`: the stores that are watched, those that can't be used (`closed`: not
    readable, not to be written to, or of a kind that is not known, as MiMo Code's), and how much was healed today, as
    `status` counts it.
    """
    nothing = "watching nothing yet" if closed else "waiting for the first session"
    doing = f"watching {first_of(roots)}" if roots else nothing
    doing += f"; can't use {first_of(closed)}" if closed else ""
    return f"{doing}; {healed or 'nothing'} healed today"
