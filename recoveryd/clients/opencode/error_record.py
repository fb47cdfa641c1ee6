"""How OpenCode records an error: where the request went."""

from __future__ import annotations

from collections.abc import Mapping

from recoveryd.core.model import Json


def address(error: Json) -> str:
    """Where the request went that an error answers; "" when it does not tell."""
    data = error.get("data")
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    url = metadata.get("url") if isinstance(metadata, Mapping) else None
    return url if isinstance(url, str) else ""
