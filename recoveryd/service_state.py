"""Whether the service runs, as the user's service manager says."""

from __future__ import annotations

import subprocess
from shutil import which

UNIT = "recoveryd.service"
_LIMIT_S = 2.0


def state() -> str:
    """ "active", "inactive", "failed", ... as `systemctl --user is-active` says; "none" when there is nobody to ask."""
    systemctl = which("systemctl")
    if systemctl is None:
        return "none"
    try:
        command = [systemctl, "--user", "is-active", UNIT]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    said = done.stdout.strip()  # nothing where there is no manager: "Failed to connect to bus" is on stderr
    return said if said.isalpha() else "none"
