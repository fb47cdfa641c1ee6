"""Break and heal sessions before one's eyes, in a store that is thrown away.

Made of one client on purpose; imports the daemon.
"""

from __future__ import annotations

from recoveryd.demo.demo import Demo, Row

__all__ = ["Demo", "Row"]
