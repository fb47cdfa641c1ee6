"""What OpenCode speaks to a provider: told by the address in the error, or else by the SDK that the provider has."""

from __future__ import annotations

from urllib.parse import urlsplit

from recoveryd.core import Failure

_ANTHROPIC = "anthropic.messages"
_BY_PROVIDER = {"anthropic": _ANTHROPIC, "google-vertex-anthropic": _ANTHROPIC}


def protocol_of(failure: Failure) -> str:
    """Tell which `Wire.protocol` is spoken; "" where it is not known."""
    path = _path(failure.error.url)
    if not path:
        return _BY_PROVIDER.get(failure.provider, "")
    vertex = "/publishers/anthropic/" in path and path.endswith(("rawPredict", "streamRawPredict"))
    return _ANTHROPIC if vertex or path.endswith("/messages") else ""


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/") if "://" in url else ""
    except ValueError:
        return ""
