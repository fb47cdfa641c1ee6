"""Put the rules of chat completions behind the port of a provider: one object a dialect."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from recoveryd.core import Block, CallLimits, Claims, Failure, Json, Kind, Limit, Refused, Request, Violation, media_of
from recoveryd.providers.base import BindsNothing
from recoveryd.providers.chat import rules
from recoveryd.providers.chat.rules import Alternation, Dialect
from recoveryd.providers.endpoint import Endpoint
from recoveryd.providers.media_limits import Media, not_answered, too_large, too_many, unreadable
from recoveryd.providers.openrouter import provider as openrouter
from recoveryd.providers.sentences.rows import squeeze

_LIMITS = CallLimits(re.compile(r"[^a-zA-Z0-9_-]"), longest_name=128, cut=64)
_FINDS = frozenset({Kind.TOOL_RESULT_MISSING, Kind.TOOL_CALL_INVALID, Kind.INVALID_UNICODE, Kind.MEDIA_REJECTED})
_PATH = re.compile(r"/chat/completions$")


def _endpoint(providers: str = "(?!)", *hosts: str) -> Endpoint:
    """Describe where chat completions are spoken: at a maker's own hosts, or by what the client says of a custom
    provider.
    """
    return Endpoint("openai.chat", _PATH, hosts, re.compile(providers))


@dataclass(frozen=True)
class Chat(BindsNothing):
    """What the models of one maker refuse, wherever chat completions are spoken to them by an SDK that adds nothing.

    `said`: words of an error that nobody else has, by which models of any name are known; `own`: its rules hold at the
    maker's own hosts alone, or by the maker's own name where no address is told.
    """

    name: str
    whose: str
    models: re.Pattern[str]
    dialect: Dialect
    endpoint: Endpoint
    said: tuple[str, ...] = ()
    own: bool = False
    protocols: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "protocols", frozenset({self.endpoint.protocol}))

    @property
    def finds(self) -> frozenset[Kind]:
        more = {Kind.EMPTY_CONTENT} if self.dialect.empty else set()
        more |= {Kind.ROLE_ORDER} if self.dialect.turns is not Alternation.NONE else set()
        more |= {Kind.REASONING_MISSING} if self.dialect.reasoning else set()
        return _FINDS | more

    @property
    def call_limits(self) -> CallLimits:
        return self.dialect.limits

    def spoke(self, failure: Failure) -> bool:
        if not self.endpoint.spoke(failure) or (self.own and not self.endpoint.is_own(failure)):
            return False
        texts = [squeeze(text) for text in failure.error.texts] if self.said else []
        said = any(squeeze(words) in text for words in self.said for text in texts)
        return said or self.models.search(failure.model.lower()) is not None

    def disowned(self, failure: Failure) -> str:
        if not self.endpoint.spoke(failure) or any(other.spoke(failure) for other in DIALECTS):
            return ""
        who = failure.provider or "this provider"
        model = f"model ({failure.model})" if failure.model else "model"
        return f"{who} is asked by chat completions, and what its {model} takes is not known to recoveryd"

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        return rules.check(request, claims, self.dialect)

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        """Of an image that was refused as none: those that are none, or else the new ones of another type than is said,
        or than all take, or else as `unreadable` says. Of one too large, or too many, as `too_large` and `too_many`
        say. Where a message stands, each server counts by itself.
        """
        del named
        if refused.kind is Kind.REASONING_MISSING and self.dialect.reasoning:
            return Claims(accused=frozenset(b.part_id for b in request.blocks() if b.type == "tool_use"))
        if refused.kind is not Kind.MEDIA_REJECTED:
            return _of_form(refused, self.dialect)
        from recoveryd.providers.anthropic import media  # late: only a stuck session needs it

        held = [(block, source) for block in request.blocks() for source in media.sources(block.body, refused.sort)]
        if refused.over is Limit.REQUEST:
            return Claims()  # how much less of it to send is a question of its length
        if refused.over is Limit.NUMBER:
            return Claims(media=frozenset(media_of(*one) for one in _too_many(refused, held)), over=refused.over)
        if refused.over is not None:
            meant = too_large(refused, request, held, lambda source: len(str(source.get("data", ""))))
            return Claims(media=frozenset(media_of(*one) for one in meant), over=refused.over)
        meant = _no_images(request, held) or unreadable(refused, request, held)
        return Claims(media=frozenset(media_of(*one) for one in meant))

    def sources(self, body: Json) -> Iterator[Json]:
        from recoveryd.providers.anthropic import media  # late: only a stuck session needs it

        return media.sources(body)


def _no_images(request: Request, held: Sequence[Media]) -> Sequence[Media]:
    """Choose of `held` those that no server can read; or else, of those that no answer of the model stands behind, what
    some servers take, and others do not.
    """
    from recoveryd.providers.anthropic import media  # late: only a stuck session needs it

    def fault(one: Media) -> str | None:
        return media.media_fault(one[1], many=False, most=sys.maxsize, widest=sys.maxsize)

    none = [one for one in held if fault(one) in media.UNREADABLE and not media.is_of_other_type(one[1])]
    return none or [one for one in not_answered(request, held) if fault(one)]


def _too_many(refused: Refused, held: Sequence[Media]) -> Sequence[Media]:
    """As `too_many`; none where one message has more than the number, which may be said of that message."""
    of_one = max(Counter(block.message_id for block, _ in held).values(), default=0)
    return too_many(refused, held) if of_one <= refused.most_media else ()


def _of_form(refused: Refused, dialect: Dialect) -> Claims:
    """Tell what an error says of empty messages, and of how long a name or an id may be."""
    if refused.kind is Kind.EMPTY_CONTENT:
        return Claims(empty=dialect.if_told)
    if refused.kind is not Kind.TOOL_CALL_INVALID:
        return Claims()
    told = Claims(longest_name=refused.longest_name, longest_id=refused.longest_id)
    if told != Claims() or not refused.by_length or "arguments" in refused.said:
        return told
    return Claims(longest_name=dialect.told_name, longest_id=dialect.told_id)


# What a template says that is run over the conversation, by llama.cpp, LM Studio, Ollama or vLLM. The one lets calls
# and their results be, the other counts them.
_BUT_CALLS = ("after the optional system message, conversation roles must alternate",)
_ROLES = ("conversation roles must alternate user/assistant",)
_ANSWERS = frozenset({"assistant"})
_BOTH = _ANSWERS | {"user"}
_NO_NAME = re.compile(r"(?!)")

KIMI = Chat(
    "kimi",
    "Kimi by Moonshot's API",
    re.compile(r"kimi|moonshot"),
    Dialect(_LIMITS, _BOTH, blank=True),
    _endpoint(r"moonshotai(?:-cn)?", "moonshot.cn", "moonshot.ai"),
    own=True,
)
KIMI_BY_OPENROUTER = replace(
    KIMI,
    name="openrouter-kimi",
    whose="Kimi on OpenRouter",
    dialect=replace(KIMI.dialect, if_told=True, reasoning=True),
    endpoint=openrouter.ENDPOINT,
    own=False,
)
# It refuses empty messages in words that say nothing of why (1214): where there are none, nothing explains its error.
GLM = Chat(
    "glm",
    "GLM by z.ai's API",
    re.compile(r"glm"),
    Dialect(_LIMITS, _BOTH, blank=True),
    _endpoint(r"zai(?:-coding-plan)?|zhipuai(?:-coding-plan)?", "z.ai", "bigmodel.cn"),
    own=True,
)
# Other servers of their models (Ollama, LM Studio, vLLM) take empty messages, and whoever does not says so.
KIMI_ELSEWHERE, GLM_ELSEWHERE = (
    replace(maker, dialect=replace(maker.dialect, if_told=True), own=False) for maker in (KIMI, GLM)
)
DEEPSEEK = Chat(
    "deepseek", "DeepSeek's API", re.compile(r"deepseek"), Dialect(_LIMITS), _endpoint("deepseek", "deepseek.com")
)
QWEN = Chat(
    "qwen",
    "Qwen by Alibaba's API or vLLM",
    re.compile(r"qwen|qwq|qvq"),
    Dialect(_LIMITS, _ANSWERS, if_told=True),
    _endpoint(r"alibaba(?:-(?:coding|token)-plan)?(?:-cn)?|lmstudio", "aliyuncs.com"),
)
# Models of OpenAI behind LiteLLM and other gateways, some of which ask its Responses API, which takes more; gpt-oss is
# served by others, each with rules of its own.
GPT = Chat(
    "gpt",
    "models of OpenAI by chat completions",
    re.compile(r"(?:^|/)(?:gpt-(?:[3-9]|\d\d)|chatgpt-|o[1-9](?:-|$))"),
    Dialect(_LIMITS, told_name=64, told_id=40),
    _endpoint(),
)
MISTRAL = Chat(
    "mistral",
    "Mistral's API",
    re.compile(""),
    Dialect(replace(_LIMITS, longest_name=256, counted=9), _ANSWERS, own_ids=True),
    Endpoint("mistral.chat", _PATH, ("mistral.ai",), re.compile("mistral")),
)
# Its other API (`/responses`) is left alone.
XAI = Chat(
    "xai",
    "Grok by xAI's API",
    re.compile(r"grok"),
    Dialect(_LIMITS, _BOTH),
    Endpoint("xai.chat", _PATH, ("x.ai",), re.compile("xai")),
)
BUT_CALLS = Chat(
    "alternating",
    "local models whose template has user and assistant take turns",
    _NO_NAME,
    Dialect(_LIMITS, turns=Alternation.BUT_CALLS),
    _endpoint("lmstudio"),
    _BUT_CALLS,
)
ALTERNATING = replace(BUT_CALLS, dialect=Dialect(_LIMITS, turns=Alternation.ALL), said=_ROLES)
LOCAL = replace(
    BUT_CALLS,
    name="local",
    whose="local models by llama.cpp",
    dialect=Dialect(_LIMITS),
    said=("failed to load image or audio file", "json.exception.parse_error", "can only get item pairs from a mapping"),
)

_MAKERS = (KIMI, KIMI_ELSEWHERE, KIMI_BY_OPENROUTER, GLM, GLM_ELSEWHERE, DEEPSEEK, QWEN, GPT, MISTRAL, XAI)
DIALECTS = (BUT_CALLS, ALTERNATING, *_MAKERS, LOCAL)
