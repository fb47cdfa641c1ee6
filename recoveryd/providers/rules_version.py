"""The version of the rules and repairs: what was refused under an older one is tried again."""

from __future__ import annotations

VERSION = 35  # raised when the rules or the repairs learn something: refused failures are then tried again
