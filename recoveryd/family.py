"""Which form of request an error came from: only a form that `wire` and `rules` know may be edited."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from recoveryd.model import Failure, Json

ANTHROPIC = "anthropic"
_PROVIDERS = frozenset({"anthropic", "google-vertex-anthropic"})


def family(failure: Failure) -> str | None:
    """ "anthropic", or None for a form that is not known.

    The address that was asked is the best witness: a proxy of any name that speaks Anthropic's Messages API gets that
    form, and an "anthropic" behind another API does not. Without an address the provider's name has to do.
    """
    path = _path(failure)
    if path:
        vertex = "/publishers/anthropic/" in path and path.endswith(("rawPredict", "streamRawPredict"))
        return ANTHROPIC if path.endswith("/messages") or vertex else None
    return ANTHROPIC if failure.provider in _PROVIDERS else None


def _path(failure: Failure) -> str:
    """The path of the address that the error tells; "" when it tells none."""
    url = address(failure.error)
    try:
        return urlsplit(url).path.rstrip("/") or "/" if "://" in url else ""
    except ValueError:
        return ""


def address(error: Json) -> str:
    """Where the request went that an error answers; "" when it does not tell."""
    data = error.get("data")
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    url = metadata.get("url") if isinstance(metadata, Mapping) else None
    return url if isinstance(url, str) else ""
