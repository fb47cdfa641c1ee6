"""The port of a provider: what it refuses of a request. Pure; one object for each set of rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from recoveryd.core import Block, CallLimits, Claims, Failure, Json, Kind, Refused, Request, Violation

_NOTHING = Claims()


class Provider(Protocol):
    """The rules that a family of providers holds a stored conversation to."""

    @property
    def name(self) -> str:
        """Its name, as `explain` prints it."""

    @property
    def whose(self) -> str:
        """Whose sessions these are, in people's words: "Claude on Amazon Bedrock"."""

    @property
    def protocols(self) -> frozenset[str]:
        """The `Wire.protocol`s whose requests it can judge."""

    @property
    def finds(self) -> frozenset[Kind]:
        """The kinds of fault that its rules find in a conversation, but parts that the client can't send."""

    @property
    def call_limits(self) -> CallLimits:
        """The limits of a tool call's id and name."""

    def spoke(self, failure: Failure) -> bool:
        """Whether its rules hold for the request behind a failure: by the address that was asked, else by names."""

    def disowned(self, failure: Failure) -> str:
        """Tell why its rules don't hold although the request has its form, as a clause; "" where it has another
        form.
        """

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        """List every violation, in the order of the request; what the client can't send at all comes first."""

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        """Return what its error says of `request` that the rules can't tell; `named`: the block at
        `refused.position`.
        """

    def bound(self, before: Request, after: Request) -> list[Block]:
        """List the thinking of `after` that no longer fits what stands before it, where `before` was accepted."""

    def sources(self, body: Json) -> Iterator[Json]:
        """Go through the source of each image or document of a content block, also of those in a tool's result."""


def named_block(rules: Provider, refused: Refused, asked: Request) -> Block | None:
    """Find the block that an error names in the request that failed; of several that it may mean, the only one that
    holds an image or a document.
    """
    if refused.position is None:
        return None
    if refused.continued and refused.kind is Kind.MEDIA_REJECTED:
        place = refused.position[1]
        found = asked.may_be_behind(*refused.position)
        found = [block for block in found if any(True for _ in rules.sources(_held_at(block.body, place)))]
        return found[0] if len(found) == 1 else None
    found = asked.may_be_at(*refused.position)
    if len(found) > 1:
        found = [block for block in found if any(True for _ in rules.sources(block.body))]
    return found[0] if len(found) == 1 else None


def _held_at(body: Json, place: int | None) -> Json:
    """Return an item with what it holds at a place alone."""
    field = "content" if "content" in body else "output"
    held = body.get(field)
    return {**body, field: held[place : place + 1]} if place is not None and isinstance(held, list | tuple) else body


def check_either_way(rules: Provider, request: Request, told: Claims = _NOTHING) -> Iterator[list[Violation]]:
    """List what is refused of a request with thinking on, and then with it off: which it will be is not stored."""
    return (rules.check(request, replace(told, thinking=frozenset({thinking}))) for thinking in (True, False))


class BindsNothing:
    """What of a `Provider` is alike wherever no thinking is bound to what stands before it."""

    def bound(self, before: Request, after: Request) -> list[Block]:
        """List nothing: whatever is edited, all thinking still fits."""
        del before, after
        return []
