"""What OpenCode speaks to a provider: told by the address in the error, or else by the SDK that the provider has."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import urlsplit

from recoveryd.clients.opencode.error_record import request_address
from recoveryd.core import Failure, Part, RecordedError, Session

# By the provider's id in the client: what is spoken, and the domain of its own service, where one is known.
_SERVICES = (
    (re.compile(r"anthropic"), "anthropic.messages", "anthropic.com"),
    (re.compile(r"google-vertex-anthropic"), "anthropic.messages", "googleapis.com"),
    (re.compile(r"amazon-bedrock"), "bedrock.converse", "amazonaws.com"),
    (re.compile(r"openrouter"), "openrouter.chat", "openrouter.ai"),
    (re.compile(r"github-copilot(?:-enterprise)?"), "copilot.chat", "githubcopilot.com"),
    (re.compile(r"openai"), "openai.responses", "openai.com"),
    (re.compile(r"azure(?:-cognitive-services)?"), "azure.responses", "azure.com"),
    (re.compile(r"mistral"), "mistral.chat", "mistral.ai"),
    (re.compile(r"xai"), "xai.chat", ""),
    (re.compile(r"lmstudio"), "openai.chat", ""),
    (re.compile(r"alibaba(?:-(?:coding|token)-plan)?(?:-cn)?"), "openai.chat", "aliyuncs.com"),
    (re.compile(r"moonshotai"), "openai.chat", "moonshot.ai"),
    (re.compile(r"moonshotai-cn"), "openai.chat", "moonshot.cn"),
    (re.compile(r"zai(?:-coding-plan)?"), "openai.chat", "z.ai"),
    (re.compile(r"zhipuai(?:-coding-plan)?"), "openai.chat", "bigmodel.cn"),
    (re.compile(r"deepseek"), "openai.chat", "deepseek.com"),
    (re.compile(r"google"), "google.generate", "googleapis.com"),
    (re.compile(r"google-vertex"), "google.vertex", "googleapis.com"),
)
# Who serves Claude among others: the client's catalog (that of 1.18.34) gives its models Anthropic's SDK.
_SERVES_CLAUDE = re.compile(r"google-vertex|azure(?:-cognitive-services)?")
_BY_HOST = {"openrouter.ai": "openrouter.chat", "githubcopilot.com": "copilot.chat"}
_BY_HOST |= {"mistral.ai": "mistral.chat", "azure.com": "azure.responses"}
_BY_HOST |= {"openai.com": "openai.responses", "opencode.ai": "openai.responses"}
# What an address ends in, and what is then spoken: "" where several SDKs have such an address.
_BY_PATH = (
    (re.compile(r"/messages$|/publishers/anthropic/.*awPredict$"), "anthropic.messages"),
    (re.compile(r"/model/[^/]+/converse(?:-stream)?$"), "bedrock.converse"),
    (re.compile(r"/publishers/google/models/[^/]+:(?:streamG|g)enerateContent$"), "google.vertex"),
    (re.compile(r"/models/[^/]+:(?:streamG|g)enerateContent$"), "google.generate"),
    (re.compile(r"/chat/completions$|/responses$"), ""),
)
# How LiteLLM tells in an error whose API refused: it makes messages of Anthropic's out of chat completions.
_LITELLM = "anthropicexception"

# What an SDK keeps of its own beside the thinking of an answer, and what it speaks.
_KEPT = {"anthropic": "anthropic.messages", "copilot": "copilot.chat"}


def protocol_of(failure: Failure, gateway: str = "") -> str:
    """Tell which `Wire.protocol` is spoken; "" where it is not known.

    `gateway`: what the address of the client's own gateway ends in, which it asks by OpenRouter's SDK; "" for none.
    """
    spoken = _spoken(failure, gateway)
    behind = spoken == "openai.chat" and any(_LITELLM in text.lower() for text in failure.error.texts)
    return "litellm.anthropic" if behind else spoken


def spoken_before(session: Session, failure: Failure) -> str:
    """Tell what was spoken to the model of `failure` before, by the newest of its answers that tells: by the address in
    its error, or by what its thinking keeps. "" where none does.
    """
    for message in reversed(session.messages):
        if (message.data.get("providerID"), message.data.get("modelID")) != (failure.provider, failure.model):
            continue
        url = request_address(message.error or {})
        told = protocol_of(replace(failure, error=RecordedError(url=url))) if url else ""
        if found := told or next(filter(None, map(_kept, message.parts)), ""):
            return found
    return ""


def _kept(part: Part) -> str:
    marks = (part.data or {}).get("metadata") if part.type == "reasoning" else None
    return next((spoken for sdk, spoken in _KEPT.items() if sdk in marks), "") if isinstance(marks, dict) else ""


def is_by_vertex(failure: Failure) -> bool:
    """Whether Claude is asked by the SDK of Vertex: by the address, else by the provider's id."""
    _, path = _address(failure.error.url)
    return "/publishers/anthropic/" in path if path else failure.provider.startswith("google-vertex")


def is_own_host(provider: str, host: str) -> bool:
    """Whether, to OpenCode's SDKs, `host` belongs to the own service of a provider, by its id in the client."""
    return any(known.fullmatch(provider) and domain and _is_in(host, domain) for known, _, domain in _SERVICES)


def _is_in(host: str, domain: str) -> bool:
    return f".{host}".endswith(f".{domain}")


def _spoken(failure: Failure, gateway: str) -> str:
    host, path = _address(failure.error.url)
    named = failure.protocol or _by_names(failure.provider, failure.model)
    if not path:
        return named
    spoken = next((protocol for known, protocol in _BY_PATH if known.search(path)), None)
    if spoken != "":
        same = spoken is not None and spoken.partition(".")[0] == named.partition(".")[0]
        return named if same else spoken or ""
    by_host = (protocol for domain, protocol in _BY_HOST.items() if _is_in(host, domain))
    own = "openrouter.chat" if gateway and path.endswith(gateway) else ""
    found = failure.protocol or own or next(by_host, named)
    return found if found.endswith(".responses" if path.endswith("/responses") else ".chat") else ""


def _by_names(provider: str, model: str) -> str:
    if _SERVES_CLAUDE.fullmatch(provider) and model.startswith("claude-"):
        return "anthropic.messages"
    return next((protocol for known, protocol, _ in _SERVICES if known.fullmatch(provider)), "")


def _address(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        return ((parts.hostname or "").rstrip("."), parts.path.rstrip("/")) if "://" in url else ("", "")
    except ValueError:
        return "", ""
