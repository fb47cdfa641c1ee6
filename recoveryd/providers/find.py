"""The one list of providers: whose form a request has, and the sentences of all of them in the order they are asked.

Only a form that `wire` and `rules` know may be edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from recoveryd.core import Failure, Kind, Wire
from recoveryd.providers.anthropic import sentences as anthropic
from recoveryd.providers.anthropic.provider import ANTHROPIC as ANTHROPICS_RULES
from recoveryd.providers.base import Provider
from recoveryd.providers.bedrock import sentences as bedrock
from recoveryd.providers.gemini import sentences as gemini
from recoveryd.providers.no_rules import NO_RULES
from recoveryd.providers.openai import sentences as openai
from recoveryd.providers.openai.provider import OPENAI
from recoveryd.providers.sentences import likely, others
from recoveryd.providers.sentences.rows import Row

# What an earlier row matched, a later may not: the traps come first, and the vague kinds behind the narrow.
_STEPS = (Kind.TOOL_RESULT_MISSING, Kind.TOOL_RESULT_ORPHAN, Kind.TOOL_CALL_INVALID)
_TEXTS = (Kind.EMPTY_CONTENT, Kind.INVALID_UNICODE)
_WHOLE = (
    Kind.ASSISTANT_PREFILL,
    Kind.TRAILING_WHITESPACE,
    Kind.ROLE_ORDER,
    Kind.REASONING_ITEM,
    Kind.REASONING_MISSING,
    Kind.FOREIGN_ITEM,
    Kind.CONTEXT_OVERFLOW,
)
_ORDER_OF_SURE = (
    None,
    Kind.THINKING_BLOCK_MODIFIED,
    Kind.THINKING_FINAL_BLOCK,
    Kind.THINKING_DISABLED_VIOLATION,
    Kind.THINKING_BLOCK_ORDER,
    Kind.THINKING_SIGNATURE_INVALID,
    *_STEPS,
    *_TEXTS,
    Kind.MEDIA_REJECTED,
    *_WHOLE,
)
# An image that is too large is told in the words of other kinds too, and a signature in those of any thinking block.
_ORDER_OF_LIKELY = (
    None,
    Kind.MEDIA_REJECTED,
    Kind.THINKING_SIGNATURE_INVALID,
    Kind.THINKING_BLOCK_MODIFIED,
    Kind.THINKING_DISABLED_VIOLATION,
    Kind.THINKING_FINAL_BLOCK,
    Kind.THINKING_BLOCK_ORDER,
    *_STEPS,
    *_TEXTS,
    *_WHOLE,
)


def _joined(order: Sequence[Kind | None], *tables: Sequence[Row]) -> tuple[Row, ...]:
    """The rows of all tables, by kind in this order; of one kind in the order of the tables."""
    return tuple(sorted((row for table in tables for row in table), key=lambda row: order.index(row.kind)))


SURE = _joined(_ORDER_OF_SURE, anthropic.SURE, bedrock.SURE, openai.SURE, gemini.SURE, others.SURE)
LIKELY = _joined(_ORDER_OF_LIKELY, anthropic.LIKELY, bedrock.LIKELY, openai.LIKELY, gemini.LIKELY, likely.LIKELY)

ANTHROPIC = "anthropic"
_FAMILIES: Mapping[str, Provider] = {known.name: known for known in (ANTHROPICS_RULES, OPENAI)}  # those with rules
_PROVIDERS = frozenset({"anthropic", "google-vertex-anthropic"})
_CLAUDE = re.compile(r"(?<![a-z])(?:claude|opus|sonnet|haiku|fable)(?![a-z])")
# Other makers' models, some of which are served in Anthropic's form, with rules of their own about thinking.
_OTHERS = re.compile(
    r"deepseek|kimi|moonshot|minimax|abab|glm|z-?ai|zhipu|qwen|qwq|mimo|longcat|doubao|seed-|ernie|hunyuan|step-|gpt"
    r"|codex|gemini|gemma|grok|llama|mistral|mixtral|magistral|devstral|codestral|ministral|nova-|nemotron|phi-|granite"
)
# Makers that answer at `/messages` themselves, whatever the model is called there: some take Claude's names for theirs.
_OTHER_HOSTS = (
    "deepseek.com",
    "moonshot.cn",
    "moonshot.ai",
    "kimi.com",
    "minimax.io",
    "minimax.chat",
    "minimaxi.com",
    "z.ai",
    "bigmodel.cn",
    "aliyuncs.com",
    "volces.com",
    "bytepluses.com",
    "xiaomimimo.com",
    "longcat.chat",
    "siliconflow.cn",
    "siliconflow.com",
    "modelscope.cn",
    "baidubce.com",
    "tencent.com",
    "stepfun.com",
    "stepfun.ai",
    "x.ai",
    "openai.com",
    "mistral.ai",
)


def provider_of(failure: Failure) -> Provider | None:
    """Whose rules the next request is held to; None for a form that is not known, which is never edited."""
    return _FAMILIES.get(family(failure) or "")


def rules_for(failure: Failure, wires: Iterable[Wire]) -> Provider:
    """The rules for the next request as `wires` build it: those of its family, if they are of this form of request.

    `NO_RULES` where it is not known what the provider takes.
    """
    provider = provider_of(failure)
    if provider is None or any(wire.protocol not in provider.protocols for wire in wires):
        return NO_RULES
    return provider


def family(failure: Failure) -> str | None:
    """ "anthropic", "openai", or None for a form that is not known.

    A client that speaks but one protocol says which. Else the address that was asked is the best witness: a proxy of
    any name that speaks Anthropic's Messages API gets that form, and an "anthropic" behind another API does not.
    Without an address the provider's name has to do. Of either it must be Anthropic's own models that answer: who else
    speaks that API has other rules.
    """
    if failure.protocol:
        return next((known.name for known in _FAMILIES.values() if failure.protocol in known.protocols), None)
    host, path = _address(failure)
    if path:
        vertex = "/publishers/anthropic/" in path and path.endswith(("rawPredict", "streamRawPredict"))
        own = vertex or _is_of(host, ("anthropic.com",))
        spoken = vertex or path.endswith("/messages")
        known = spoken and not _is_of(host, _OTHER_HOSTS) and _may_be_claude(failure.model, own=own)
    else:
        known = failure.provider in _PROVIDERS and _may_be_claude(failure.model, own=True)
    return ANTHROPIC if known else None


def unknown(failure: Failure) -> str:
    """Why the form of a failure is not known, as a clause: who answered, and what of it recoveryd does not know."""
    host, path = _address(failure)
    who = failure.provider or "this provider"
    if path.endswith("/messages") or (not path and failure.provider in _PROVIDERS):
        at = f"{who} at {host}" if host else who
        model = f"model ({failure.model})" if failure.model else "model"
        return f"{at} is asked in Anthropic's form, but the {model} is not known to be Anthropic's and has other rules"
    return f"how the client talks to {who} is not known to recoveryd"


def _may_be_claude(model: str, *, own: bool) -> bool:
    """Whether a model is Anthropic's by its name; `own`: it is asked where Anthropic's models are, by whatever name."""
    name = model.lower()
    if _OTHERS.search(name):
        return False
    return own or _CLAUDE.search(name) is not None


def _is_of(host: str, domains: tuple[str, ...]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _address(failure: Failure) -> tuple[str, str]:
    """Host and path of the address that the error tells; "" and "" when it tells none."""
    url = failure.error.url
    try:
        parts = urlsplit(url)
        return ((parts.hostname or "").rstrip("."), parts.path.rstrip("/") or "/") if "://" in url else ("", "")
    except ValueError:
        return "", ""
