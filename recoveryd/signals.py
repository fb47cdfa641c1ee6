"""The signals of a daemon: end, and read the configuration again."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable


def heed(stop: Callable[[], object], reload: Callable[[], object]) -> None:
    """Call `stop` at SIGTERM and SIGINT, `reload` at SIGHUP. From the main thread alone."""
    faulthandler.enable(2)  # a watchdog ends what hangs by SIGABRT: where it hung is worth a line
    terminals = [fd for fd in (0, 1, 2) if os.isatty(fd)]

    def hung_up() -> None:
        """A terminal that was closed says the same as `kill -HUP`."""
        closed = not all(os.isatty(fd) for fd in terminals)
        (stop if closed else reload)()

    for number, answer in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, hung_up)):
        signal.signal(number, lambda *_, answer=answer: answer())
