"""OpenAI's rules behind the port that the planner asks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recoveryd.core import Block, CallLimits, Claims, Failure, Json, Kind, Refused, Request, Violation
from recoveryd.providers.base import BindsNothing
from recoveryd.providers.openai import endpoint, items
from recoveryd.providers.openai.media import sources

_LIMITS = CallLimits(
    re.compile(r"[^a-zA-Z0-9_-]"),
    items.LONGEST_NAME,
    longest_id=items.LONGEST_ID,
    longest_input=items.LONGEST_ARGUMENTS,
)


class Openai(BindsNothing):
    """The Responses API, as OpenAI serves it and others do after it."""

    name = "openai"
    whose = "models of OpenAI by its Responses API, also on Azure"
    protocols = endpoint.PROTOCOLS
    finds = frozenset(
        {
            Kind.TOOL_RESULT_MISSING,
            Kind.TOOL_CALL_INVALID,
            Kind.REASONING_ITEM,
            Kind.FOREIGN_ITEM,
            Kind.MEDIA_REJECTED,
        }
    )
    call_limits = _LIMITS

    def spoke(self, failure: Failure) -> bool:
        return endpoint.rules_hold(failure)

    def disowned(self, failure: Failure) -> str:
        return endpoint.disowned(failure)

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        from recoveryd.providers.openai import rules  # late: only a stuck session needs them

        return rules.check(request, claims)

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        from recoveryd.providers.openai.claims import claims

        return claims(refused, request, named)

    def sources(self, body: Json) -> Iterator[Json]:
        return sources(body)


OPENAI = Openai()
