"""What the user chose: the configuration, pause and ignore, where files are, the log.

Imports `core` and `disk`.
"""

from __future__ import annotations

from recoveryd.settings import overrides, paths
from recoveryd.settings.load import Config, Notify, check, load, load_sound, may_forbid, show
from recoveryd.settings.logs import setup
from recoveryd.settings.overrides import Pause, held, ignored, paused
from recoveryd.settings.schema import Hooks, OpenCode

__all__ = [
    "Config",
    "Hooks",
    "Notify",
    "OpenCode",
    "Pause",
    "check",
    "held",
    "ignored",
    "load",
    "load_sound",
    "may_forbid",
    "overrides",
    "paths",
    "paused",
    "setup",
    "show",
]
