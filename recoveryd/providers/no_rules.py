"""Stand in for a provider whose rules are not known: only parts that the client can't send are found."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recoveryd.core import Block, CallLimits, Claims, Failure, Json, Kind, Refused, Request, Violation
from recoveryd.providers.base import BindsNothing

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


class NoRules(BindsNothing):
    """Finds the parts for which the client can build no request at all, and says nothing of what a provider takes."""

    name = "unknown"
    whose = "a provider whose rules are not known"
    protocols: frozenset[str] = frozenset()
    finds: frozenset[Kind] = frozenset()
    call_limits = CallLimits(_ILLEGAL, 64, 64, illegal_in_id=_ILLEGAL)

    def spoke(self, failure: Failure) -> bool:
        """Say no: it is chosen where no other's rules hold."""
        del failure
        return False

    def disowned(self, failure: Failure) -> str:
        del failure
        return ""

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        del claims
        return [Violation(Kind.UNSENDABLE_PART, -1, None, part.reason, part.part_id) for part in request.unsendable]

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        del refused, request, named
        return Claims()

    def sources(self, body: Json) -> Iterator[Json]:
        del body
        return iter(())


NO_RULES = NoRules()
