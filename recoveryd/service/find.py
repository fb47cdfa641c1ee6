"""Find the manager of services that this system has."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from recoveryd.service.base import Manager
from recoveryd.service.launchd import Launchd
from recoveryd.service.systemd import Systemd


def of_this_system(env: Mapping[str, str], limit: float = 90.0) -> Manager:
    """Return the manager of services that this system has. `env` is the environment of the shell, `limit` how long a
    call may take, in seconds.
    """
    return Launchd(env, limit) if sys.platform == "darwin" else Systemd(env, limit)
