"""The one list of providers: who judges a request, and the sentences of all of them in the order they are asked.

Only where a provider's rules are known may its sessions be edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recoveryd.core import Failure, Kind, RecordedError, Size, Wire
from recoveryd.providers import makers
from recoveryd.providers.anthropic import bound_thinking
from recoveryd.providers.anthropic import sentences as anthropic
from recoveryd.providers.anthropic.provider import ANTHROPIC, Anthropic
from recoveryd.providers.base import Provider
from recoveryd.providers.bedrock import sentences as bedrock
from recoveryd.providers.bedrock.provider import BEDROCK
from recoveryd.providers.chat.provider import DIALECTS
from recoveryd.providers.copilot.provider import COPILOT
from recoveryd.providers.gemini import sentences as gemini
from recoveryd.providers.gemini.provider import GEMINI
from recoveryd.providers.litellm.provider import LITELLM
from recoveryd.providers.no_rules import NO_RULES
from recoveryd.providers.openai import sentences as openai
from recoveryd.providers.openai.provider import OPENAI
from recoveryd.providers.openrouter.provider import KILO, OPENROUTER
from recoveryd.providers.sentences import likely, other_providers
from recoveryd.providers.sentences.rows import Row
from recoveryd.providers.sentences.sizes import size_in

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
    Kind.TOOL_NOT_FOUND,
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
    """Join the rows of all tables by kind in this order; those of one kind in the order of the tables."""
    return tuple(sorted((row for table in tables for row in table), key=lambda row: order.index(row.kind)))


SURE = _joined(_ORDER_OF_SURE, anthropic.SURE, bedrock.SURE, openai.SURE, gemini.SURE, other_providers.SURE)
# Models that are shown images, by their makers' names for them; others may be given words in their place.
_SEES = re.compile(r"claude|gemini|gpt-(?:4\.1|4o|[5-9]|(?!35)[1-9]\d)(?!.*spark)")
# Names that tell whose a model is. One of a deployment, of an endpoint or of an inference profile does not.
_TELLING = re.compile(
    rf"(?<![a-z\d])(?:{makers.MODELS}|(?:claude|opus|sonnet|haiku|fable)(?![a-z]))"
    r"|(?<![^/])(?:gpt-|chatgpt-|codex|computer-use|o[1-9](?:-|$))"
)
_SIZES = (*anthropic.SIZES, *other_providers.SIZES, *openai.SIZES, *gemini.SIZES, *bedrock.SIZES)
LIKELY = _joined(_ORDER_OF_LIKELY, anthropic.LIKELY, bedrock.LIKELY, openai.LIKELY, gemini.LIKELY, likely.LIKELY)

# Kilo's gateway is known by its address or its provider's name: what else is asked as OpenRouter is OpenRouter.
_WITH_RULES: Sequence[Provider] = (BEDROCK, OPENROUTER, KILO, COPILOT, LITELLM, ANTHROPIC, OPENAI, GEMINI, *DIALECTS)


# What the names of models are made of: no secret of a user's.
_MODEL_WORDS = (
    "claude opus sonnet haiku fable gpt codex gemini pro flash mini nano deepseek qwen kimi glm mistral latest"
)
MODEL_WORDS = frozenset(_MODEL_WORDS.split())


def families_with(kind: Kind) -> tuple[str, ...]:
    """List, in people's words, the providers in whose sessions a fault of this kind is found."""
    return tuple(dict.fromkeys(known.whose for known in _WITH_RULES if kind in known.finds))


def size_of(error: RecordedError) -> Size:
    """Read, by the sentences of all providers, the numbers of a refusal for size: how long the request was, and what
    the model takes.
    """
    return size_in(error, _SIZES)


def provider_of(failure: Failure) -> Provider | None:
    """Return the provider whose rules the next request is held to; None where they are not known."""
    asked = _as_called(failure)
    found = _with_rules(asked)
    if asked is failure or not _TELLING.search(failure.model.lower()):
        return found
    return found if found is _with_rules(failure) else None  # the two names are of two makers: it is either


def _with_rules(failure: Failure) -> Provider | None:
    return next((known for known in _WITH_RULES if known.spoke(failure)), None)


def _as_called(failure: Failure) -> Failure:
    """Return a failure with its model by the name that tells whose it is: the one that the provider gets, or else the
    client's own for it.
    """
    return replace(failure, model=failure.called) if _TELLING.search(failure.called.lower()) else failure


def takes_alike(failure: Failure, provider: object, model: object) -> bool:
    """Whether a model of a provider, as a client names them, takes what the one that failed does: it is that one, or
    another of the same provider that is held to the same rules and, by its name, shown images as they are.
    """
    if provider != failure.provider or model == failure.model:
        return provider == failure.provider
    other = replace(failure, model=str(model), called="")
    return _SEES.search(other.model.lower()) is not None and provider_of(other) is provider_of(failure)


def rules_for(failure: Failure, wires: Iterable[Wire]) -> Provider:
    """Return the rules for the next request as `wires` build it, if they are of this form of request.

    `NO_RULES` where it is not known what the provider takes.
    """
    provider = provider_of(failure)
    if provider is None or any(wire.protocol not in provider.protocols for wire in wires):
        return NO_RULES
    return provider


def binds_thinking(failure: Failure, said: Iterable[str]) -> bool:
    """Whether, by its provider's rules, the model that is asked ties its thinking to all before it; `said`: what it
    refused in this session.
    """
    names, told = {_as_called(failure).model, failure.model}, list(said)  # the one may tell no version
    telling = [name for name in names if _TELLING.search(name.lower())] or names  # a number in another is none
    return isinstance(provider_of(failure), Anthropic) and any(bound_thinking.binds(name, told) for name in telling)


def why_unknown(failure: Failure) -> str:
    """Say why nobody's rules are known for a failure, as a clause: who answered, and what is not known of it."""
    who = failure.provider or "this provider"
    asked = failure if _with_rules(_as_called(failure)) else _as_called(failure)
    if _with_rules(asked) and provider_of(failure) is None:
        return f"{who} is asked for {failure.model} by the name {failure.called}, and these two have different rules"
    said = next(filter(None, (known.disowned(asked) for known in _WITH_RULES)), "")
    return said or f"how the client talks to {who} is not known to recoveryd"
