"""Tell by the address, else by the names, whether a request went to OpenAI's models by its Responses API."""

from __future__ import annotations

import re

from recoveryd.core import Failure
from recoveryd.providers import makers
from recoveryd.providers.endpoint import Endpoint, host_and_path, in_domain

# OpenCode's own gateway passes on to OpenAI; on Azure a model has the name that its user gave it.
_OWN = ("openai.com", "chatgpt.com", "azure.com")
_AZURE = "azure"  # how the name of such a provider begins, in whatever case its user wrote it
_PATH = re.compile(r"/responses(?:/compact)?$")
_ENDPOINTS = (
    Endpoint("openai.responses", _PATH, (*_OWN, "opencode.ai"), re.compile(r"openai")),
    Endpoint("azure.responses", _PATH, ("azure.com",), re.compile(r"azure(?:-cognitive-services)?")),
)
PROTOCOLS = frozenset(endpoint.protocol for endpoint in _ENDPOINTS)
_MODELS = re.compile(r"gpt-|codex|computer-use|(?<![a-z])o[1-9](?![a-z])")
# What others serve of it they serve by programs of their own.
_OTHERS = re.compile(rf"{makers.MODELS}|gpt-oss|claude|opus|sonnet|haiku|fable")
_OTHER_HOSTS = (*makers.HOSTS, "anthropic.com")


def rules_hold(failure: Failure) -> bool:
    """Tell whether OpenAI's rules hold for the request behind a failure: the address is the best witness.

    Proxies pass on to it, and local servers and other makers speak its API with rules of their own: there the name of
    the model has to be one of OpenAI's. Without an address the name of the provider has to do.
    """
    return any(endpoint.spoke(failure) for endpoint in _ENDPOINTS) and _may_be_openais(failure)


def disowned(failure: Failure) -> str:
    """Say why a request in the form of the Responses API is not held to OpenAI's rules, as a clause; "" for any other
    request.
    """
    host, path = host_and_path(failure)
    if failure.protocol not in PROTOCOLS and not _PATH.search(path):
        return ""
    who = failure.provider or "this provider"
    at = f"{who} at {host}" if host else who
    if _may_be_openais(failure):
        return f"how {at} passes this on to OpenAI's models is not known to recoveryd"
    model = f"model ({failure.model})" if failure.model else "model"
    return f"{at} is asked in the form of OpenAI's, but the {model} is not known to be OpenAI's and has other rules"


def _may_be_openais(failure: Failure) -> bool:
    host, _ = host_and_path(failure)
    name = failure.model.lower()
    if _OTHERS.search(name) or in_domain(host, _OTHER_HOSTS):
        return False
    own = in_domain(host, _OWN) if host else failure.provider.lower().startswith(_AZURE)
    return own or not name or _MODELS.search(name) is not None
