"""The rules of a provider without what the client mends by itself once it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from recoveryd.core import (
    Block,
    CallLimits,
    Claims,
    Failure,
    Json,
    Kind,
    Limit,
    RecordedError,
    Refused,
    Request,
    Session,
    Violation,
    Wire,
    explained_by,
)
from recoveryd.providers import Provider

Heals = Callable[[Kind, Block | None, RecordedError | None], bool]
_OF_ALL = (Limit.NUMBER, Limit.REQUEST)  # what a refusal says of all that is sent together: no part has that fault


@dataclass(frozen=True, slots=True)
class LeftToClient:
    """A `Provider`: `rules`, but for violations that `heals` (of `Client`) takes for its client's own business.

    `error`: what is to be healed; `refused`: what it says. Only of what it accuses, it tells whether the client mends
    that: of blocks, or, where it names none, of all faults of its kind.
    """

    rules: Provider
    heals: Heals
    error: RecordedError | None = None
    refused: Refused | None = None

    @property
    def name(self) -> str:
        return self.rules.name

    @property
    def whose(self) -> str:
        return self.rules.whose

    @property
    def protocols(self) -> frozenset[str]:
        return self.rules.protocols

    @property
    def finds(self) -> frozenset[Kind]:
        return self.rules.finds

    @property
    def call_limits(self) -> CallLimits:
        return self.rules.call_limits

    def spoke(self, failure: Failure) -> bool:
        return self.rules.spoke(failure)

    def disowned(self, failure: Failure) -> str:
        return self.rules.disowned(failure)

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        return [found for found in self.rules.check(request, claims) if not self._left(found, claims)]

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        return self.rules.claims(refused, request, named)

    def bound(self, before: Request, after: Request) -> list[Block]:
        if self.heals(Kind.THINKING_SIGNATURE_INVALID, None, None):
            return []
        return self.rules.bound(before, after)

    def sources(self, body: Json) -> Iterator[Json]:
        return self.rules.sources(body)

    def _left(self, found: Violation, claims: Claims) -> bool:
        block = found.block
        accused = block is not None and (
            block.part_id in claims.accused or any(claims.means(block, source) for source, _ in found.media)
        )
        said = self.refused
        named = said is not None and found.kind is said.kind and said.over not in _OF_ALL and not claims.accuses
        return self.heals(found.kind, block, self.error if accused or named else None)


def faults_of(kind: Kind, rules: Provider, wires: Iterable[Wire], session: Session) -> Iterator[Violation]:
    """Go through what the rules find in the next request, without a claim, of what a provider may mean by `kind`."""
    for wire in wires:
        yield from (v for v in rules.check(wire.build(session), Claims()) if v.kind in explained_by(kind))
