"""Put Anthropic's rules behind the port of a provider."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recoveryd.core import Block, CallLimits, Claims, Failure, Json, Refused, Request, Violation
from recoveryd.providers.anthropic import endpoint, media, rules
from recoveryd.providers.anthropic.block_rules import LONGEST_NAME
from recoveryd.providers.anthropic.bound_thinking import unbound

_LIMITS = CallLimits(re.compile(r"[^a-zA-Z0-9_-]"), LONGEST_NAME)


class Anthropic:
    """The Messages API, as Anthropic serves it."""

    name = "anthropic"
    protocols = frozenset({"anthropic.messages"})
    call_limits = _LIMITS

    def spoke(self, failure: Failure) -> bool:
        return endpoint.spoke(failure)

    def disowned(self, failure: Failure) -> str:
        return endpoint.disowned(failure)

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        return rules.check(request, claims)

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        unfinished = (b for b in request.blocks() if b.unfinished and b.body["tool_use_id"] in refused.ids)
        return Claims(rules.accused(refused, request, named), unfinished=frozenset(b.part_id for b in unfinished))

    def bound(self, before: Request, after: Request) -> list[Block]:
        return unbound(before, after)

    def sources(self, body: Json) -> Iterator[Json]:
        return media.sources(body)

    def media_fault(self, source: Json, request: Request) -> str | None:
        return media.fault(source, many=media.count(request) > media.MANY)


ANTHROPIC = Anthropic()
