"""Judge a conversation by what servers of OpenAI's chat completions refuse: pairs, empty messages, ids and names.

Source of the rules: the providers' own error texts. What differs between them is in `Dialect`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recoveryd.core import CallLimits, Claims, Kind, Request, Turn, Violation
from recoveryd.providers.anthropic.block_rules import call_fault, half_character
from recoveryd.providers.anthropic.media import sources
from recoveryd.providers.anthropic.rules import calls_without_result


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one maker's models refuse beyond the others'. `empty`: a message without words or calls."""

    limits: CallLimits
    empty: bool


def check(request: Request, claims: Claims, dialect: Dialect) -> list[Violation]:
    """List every violation of `request`, in its order; what the client can't send at all comes first."""
    found = [Violation(Kind.UNSENDABLE_PART, -1, None, part.reason, part.part_id) for part in request.unsendable]
    turns = request.turns
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            following = turns[index + 1] if index + 1 < len(turns) else None
            found += calls_without_result(index, turn, following)
        if dialect.empty:
            found += _empty(index, turn)
        found += _blocks(index, turn, claims, dialect)
    return found


def _empty(index: int, turn: Turn) -> Iterator[Violation]:
    if not turn.blocks:
        yield Violation(Kind.EMPTY_CONTENT, index, None, "a message has no content")
    elif all(block.type == "text" and not str(block.body["text"]).strip() for block in turn.blocks):
        yield Violation(Kind.EMPTY_CONTENT, index, turn.blocks[0], "a message holds nothing but white space")


def _blocks(index: int, turn: Turn, claims: Claims, dialect: Dialect) -> Iterator[Violation]:
    for block in turn.blocks:
        reason = call_fault(block, set(), dialect.limits)  # an id may come twice
        if reason is not None:
            yield Violation(Kind.TOOL_CALL_INVALID, index, block, reason)
        if block.type != "tool_use" and half_character(block.body):
            yield Violation(Kind.INVALID_UNICODE, index, block, "it holds half a character (a lone surrogate)")
        if block.part_id in claims.accused and any(True for _ in sources(block.body)):
            yield Violation(Kind.MEDIA_REJECTED, index, block, "it is no image that the provider can read")
