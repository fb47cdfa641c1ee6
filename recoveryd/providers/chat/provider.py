"""Put the rules of chat completions behind the port of a provider: one object a dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from recoveryd.core import Block, CallLimits, Claims, Failure, Json, Kind, Refused, Request, Violation
from recoveryd.providers.anthropic import media
from recoveryd.providers.chat import rules
from recoveryd.providers.endpoint import Endpoint

_LIMITS = CallLimits(re.compile(r"[^a-zA-Z0-9_-]"), longest_name=64)
_ENDPOINT = Endpoint(
    "openai.chat",
    re.compile(r"/chat/completions$"),
    ("moonshot.cn", "moonshot.ai", "z.ai", "bigmodel.cn", "deepseek.com"),
    re.compile(r"moonshotai(?:-cn)?|zai(?:-coding-plan)?|zhipuai(?:-coding-plan)?|deepseek"),
)


@dataclass(frozen=True)
class Chat:
    """What the models of one maker refuse, wherever chat completions are spoken to them by an SDK that adds nothing."""

    name: str
    whose: str
    models: re.Pattern[str]
    dialect: rules.Dialect
    protocols = frozenset({_ENDPOINT.protocol})

    @property
    def call_limits(self) -> CallLimits:
        return self.dialect.limits

    def spoke(self, failure: Failure) -> bool:
        return _ENDPOINT.spoke(failure) and self.models.search(failure.model.lower()) is not None

    def disowned(self, failure: Failure) -> str:
        del failure
        return ""

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        return rules.check(request, claims, self.dialect)

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        """Of an image that was refused: those that are none. Where a message stands, each server counts by itself."""
        del named
        if refused.kind is not Kind.MEDIA_REJECTED:
            return Claims()
        bad = (b.part_id for b in request.blocks() if any(self.media_fault(s, request) for s in self.sources(b.body)))
        return Claims(accused=frozenset(bad))

    def bound(self, before: Request, after: Request) -> list[Block]:
        del before, after
        return []

    def sources(self, body: Json) -> Iterator[Json]:
        return media.sources(body)

    def media_fault(self, source: Json, request: Request) -> str | None:
        del request
        return media.fault(source, many=False)


KIMI = Chat("kimi", "Kimi by Moonshot's API", re.compile(r"kimi|moonshot"), rules.Dialect(_LIMITS, empty=True))
# It refuses empty messages in words that say nothing of why (1214): where there are none, nothing explains its error.
GLM = Chat("glm", "GLM by z.ai's API", re.compile(r"glm"), rules.Dialect(_LIMITS, empty=True))
DEEPSEEK = Chat("deepseek", "DeepSeek's API", re.compile(r"deepseek"), rules.Dialect(_LIMITS, empty=False))
