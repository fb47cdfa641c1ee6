"""recoveryd heals AI coding sessions whose stored history a provider refuses.

For a program that wants it inside:

    from recoveryd import Callbacks, Config, Daemon

    daemon = Daemon(Config(max_retries=2), callbacks=Callbacks(on_abort=pause, on_complete=report))
    threading.Thread(target=daemon.run).start()  # until daemon.stop()

`is_recoverable(error)` says whether an error is one that recoveryd repairs, `recover(session_id)` repairs one session
now. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recoveryd.api import is_recoverable, recover
    from recoveryd.clients import Config
    from recoveryd.core import Event, Kind, Outcome, __version__
    from recoveryd.daemon import Daemon
    from recoveryd.tell import Callbacks

__all__ = ["Callbacks", "Config", "Daemon", "Event", "Kind", "Outcome", "__version__", "is_recoverable", "recover"]

_ROOMS = {
    "Callbacks": "tell.callbacks",
    "Config": "clients.find",
    "Daemon": "daemon.daemon",
    "Event": "core.model",
    "Kind": "core.model",
    "Outcome": "core.model",
    "__version__": "core.version",
    "is_recoverable": "api",
    "recover": "api",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
