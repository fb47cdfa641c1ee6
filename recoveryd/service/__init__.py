"""The service of the user: installed, described and taken away, for systemd and launchd.

Imports all rooms but `daemon`.
"""

from __future__ import annotations

from recoveryd.service import base, plugins, shell_settings, uninstall
from recoveryd.service.background import Background
from recoveryd.service.base import Manager, Service
from recoveryd.service.find import of_this_system
from recoveryd.service.systemd import lingers

__all__ = [
    "Background",
    "Manager",
    "Service",
    "base",
    "lingers",
    "of_this_system",
    "plugins",
    "shell_settings",
    "uninstall",
]
