"""How OpenCode records an error: where the request went."""

from __future__ import annotations

from collections.abc import Mapping

from recoveryd.core.model import Failure, Json


def address(error: Json) -> str:
    """Where the request went that an error answers; "" when it does not tell."""
    data = error.get("data")
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    url = metadata.get("url") if isinstance(metadata, Mapping) else None
    return url if isinstance(url, str) else ""


def provider_spoke(failure: Failure) -> bool:
    """Whether an error is a provider's answer: then it is no crash of the client, whatever it says."""
    data = failure.error.get("data")
    return isinstance(data, Mapping) and any(data.get(key) for key in ("statusCode", "responseBody"))
