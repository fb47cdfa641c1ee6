"""Put Anthropic's rules behind the port of a provider, at its own door and at those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from recoveryd.core import Block, CallLimits, Claims, Failure, Json, Kind, Refused, Request, Violation
from recoveryd.providers.anthropic import endpoint, media
from recoveryd.providers.anthropic.endpoint import OWN_LIMITS
from recoveryd.providers.endpoint import Endpoint

_FINDS = frozenset(
    {
        Kind.TOOL_RESULT_MISSING,
        Kind.THINKING_BLOCK_ORDER,
        Kind.THINKING_DISABLED_VIOLATION,
        Kind.THINKING_SIGNATURE_INVALID,
        Kind.THINKING_BLOCK_MODIFIED,
        Kind.THINKING_FINAL_BLOCK,
        Kind.EMPTY_CONTENT,
        Kind.ROLE_ORDER,
        Kind.TOOL_CALL_INVALID,
        Kind.INVALID_UNICODE,
        Kind.MEDIA_REJECTED,
        Kind.FOREIGN_ITEM,
        Kind.TOOL_NOT_FOUND,
    }
)

# What is said of thinking that is sent: some doors send none.
_OF_SENT_THINKING = frozenset(
    {
        Kind.THINKING_DISABLED_VIOLATION,
        Kind.THINKING_SIGNATURE_INVALID,
        Kind.THINKING_BLOCK_MODIFIED,
        Kind.THINKING_FINAL_BLOCK,
    }
)


@dataclass(frozen=True)
class Anthropic:
    """Anthropic's rules, as they hold behind `protocols`; who stands in between may set other limits for calls."""

    name: str
    whose: str
    protocols: frozenset[str]
    call_limits: CallLimits
    _spoke: Callable[[Failure], bool]
    _disowned: Callable[[Failure], str]
    finds: frozenset[Kind] = _FINDS

    def spoke(self, failure: Failure) -> bool:
        return self._spoke(failure)

    def disowned(self, failure: Failure) -> str:
        return self._disowned(failure)

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        from recoveryd.providers.anthropic import rules  # late: only a stuck session needs them

        return rules.check(request, claims, self.call_limits)

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        from recoveryd.providers.anthropic import rules

        unfinished = (b for b in request.blocks() if b.unfinished and b.body.get("tool_use_id") in refused.ids)
        told = rules.claims(refused, request, named)
        return replace(told, unfinished=frozenset(b.part_id for b in unfinished))

    def bound(self, before: Request, after: Request) -> list[Block]:
        from recoveryd.providers.anthropic.bound_thinking import unbound

        return unbound(before, after)

    def sources(self, body: Json) -> Iterator[Json]:
        return media.sources(body)


ANTHROPIC = Anthropic(
    "anthropic",
    "Claude at Anthropic, on Vertex or Azure, or behind a proxy of its API",
    frozenset({"anthropic.messages"}),
    OWN_LIMITS,
    endpoint.rules_hold,
    endpoint.disowned,
)


def behind(
    door: Endpoint,
    name: str,
    called: str,
    limits: CallLimits = OWN_LIMITS,
    *,
    protocol: str = "",
    said: str = "",
    also: str = "",
    thinks: bool = True,
    of: type[Anthropic] = Anthropic,
) -> Anthropic:
    """Make Anthropic's rules behind a door of another's: they hold for models of Anthropic's name.

    `protocol`: what the requests are made as, if not as the door's; `said`: the word in an error, in small letters,
    without which nothing tells the door from others that speak its protocol; `also`: whose rules else are known there;
    `thinks`: thinking is sent through it; `of`: with rules of the door's own beside. No client sends items of other
    protocols there, or has the provider search for tools.
    """

    def spoke(failure: Failure) -> bool:
        if not door.spoke(failure) or not endpoint.may_be_claude(failure.model, own=False):
            return False
        return not said or any(said in text.lower() for text in failure.error.texts)

    def disowned(failure: Failure) -> str:
        if said or not door.spoke(failure):
            return ""
        return f"of the models of {called} only the rules of Claude{also} are known to recoveryd"

    finds = _FINDS - {Kind.FOREIGN_ITEM, Kind.TOOL_NOT_FOUND} - (frozenset() if thinks else _OF_SENT_THINKING)
    protocols = frozenset({protocol or door.protocol})
    return of(name, f"Claude on {called}", protocols, limits, spoke, disowned, finds)
