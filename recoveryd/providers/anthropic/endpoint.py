"""Tell by the address, else by the names, whether a request went to Anthropic's models in the form of its Messages
API.
"""

from __future__ import annotations

import re

from recoveryd.core import CallLimits, Failure
from recoveryd.providers import makers
from recoveryd.providers.endpoint import host_and_path, in_domain

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
OWN_LIMITS = CallLimits(_ILLEGAL, longest_name=200, illegal_in_id=_ILLEGAL)

_NAMES = frozenset({"anthropic", "google-vertex-anthropic"})
_AMONG_OTHERS = frozenset({"google-vertex", "azure", "azure-cognitive-services"})  # who serve other models too
_CLAUDE = re.compile(r"(?<![a-z])(?:claude|opus|sonnet|haiku|fable)(?![a-z])")
_OTHERS = re.compile(rf"{makers.MODELS}|gpt|codex")
_OTHER_HOSTS = (*makers.HOSTS, "openai.com")


def rules_hold(failure: Failure) -> bool:
    """Tell whether Anthropic's rules hold for the request behind a failure.

    The address that was asked is the best witness: a proxy of any name that speaks Anthropic's Messages API gets that
    form, and an "anthropic" behind another API does not. Without an address the provider's name has to do. Of either
    it must be Anthropic's own models that answer: who else speaks that API has other rules. A client that speaks but
    one protocol says which.
    """
    if failure.protocol not in ("", "anthropic.messages"):
        return False
    host, path = host_and_path(failure)
    if not path:
        own = failure.provider in _NAMES
        return (own or failure.provider in _AMONG_OTHERS) and may_be_claude(failure.model, own=own)
    vertex = "/publishers/anthropic/" in path and path.endswith(("rawPredict", "streamRawPredict"))
    own = vertex or in_domain(host, ("anthropic.com",))
    spoken = vertex or path.endswith("/messages")
    return spoken and not in_domain(host, _OTHER_HOSTS) and may_be_claude(failure.model, own=own)


def disowned(failure: Failure) -> str:
    """Say why a request in Anthropic's form is not held to its rules, as a clause; "" for any other request."""
    host, path = host_and_path(failure)
    if not path.endswith("/messages") and (path or failure.provider not in _NAMES):
        return ""
    who = failure.provider or "this provider"
    at = f"{who} at {host}" if host else who
    model = f"model ({failure.model})" if failure.model else "model"
    return f"{at} is asked in Anthropic's form, but the {model} is not known to be Anthropic's and has other rules"


def may_be_claude(model: str, *, own: bool) -> bool:
    """Whether a request's model may be one that Anthropic's rules hold for, by its name; `own`: it is asked where
    Anthropic's models are, by whatever name.
    """
    name = model.lower()
    if _OTHERS.search(name):
        return False
    return own or _CLAUDE.search(name) is not None
