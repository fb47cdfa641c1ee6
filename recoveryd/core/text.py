"""Texts as a person reads them: moments, sentences, and what is no whole character."""

from __future__ import annotations

import re
from datetime import UTC, datetime


def capital(text: str) -> str:
    """As a sentence begins; the rest stays."""
    return text[:1].upper() + text[1:]


def moment(ms: int) -> str:
    """Milliseconds since the epoch as 2026-08-14T11:19:55.136Z."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"  # no year that has a name


HALF = re.compile("[\ud800-\udfff]")
