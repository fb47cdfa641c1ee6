"""The loop that watches, sweeps, heals and tells, in one thread.

Imports all rooms but those that people see: `service`, `doctor`, `demo`, `cli`.
"""

from __future__ import annotations

from recoveryd.daemon.daemon import Daemon

__all__ = ["Daemon"]
