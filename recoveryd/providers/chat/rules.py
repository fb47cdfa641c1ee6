"""Judge a conversation by what servers of OpenAI's chat completions refuse: pairs, empty messages, ids and names.

Source of the rules: the providers' own error texts. What differs between them is in `Dialect`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from recoveryd.core import CallLimits, Claims, Kind, Request, Turn, Violation, half_character
from recoveryd.providers.anthropic.media import sources
from recoveryd.providers.media_limits import claimed_fault


class Alternation(Enum):
    """Which messages of the user and of the assistant must take turns, the user's first."""

    NONE = "none"
    BUT_CALLS = "all but calls and their results"
    ALL = "all, where calls count as the assistant's and each result as the user's"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one maker's models refuse beyond the others'.

    `empty`: messages of these roles without words or calls, `if_told`: where its error speaks of such; `blank`: also
    those of nothing but white space. `own_ids`: two calls of a message with the same id. `reasoning`: a call without
    reasoning, where its error speaks of that. `told_name`, `told_id`: characters of those of a call, where its error
    speaks of one that is too long and not of a number; 0: any.
    """

    limits: CallLimits
    empty: frozenset[str] = frozenset()
    if_told: bool = False
    blank: bool = False
    own_ids: bool = False
    turns: Alternation = Alternation.NONE
    reasoning: bool = False
    told_name: int = 0
    told_id: int = 0


def check(request: Request, claims: Claims, dialect: Dialect) -> list[Violation]:
    """List what breaks the rules of chat completions in a request, in its order; what the client can't send at all
    comes first.
    """
    from recoveryd.providers.anthropic.rules import calls_without_result  # late: only a stuck session needs them

    found = [Violation(Kind.UNSENDABLE_PART, -1, None, part.reason, part.part_id) for part in request.unsendable]
    turns = request.turns
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            following = turns[index + 1] if index + 1 < len(turns) else None
            found += calls_without_result(index, turn, following)
        if dialect.reasoning:
            found += _without_reasoning(index, turn, claims)
        if turn.role in dialect.empty and (claims.empty or not dialect.if_told):
            found += _empty(index, turn, blank=dialect.blank)
        found += _blocks(index, turn, claims, dialect)
    found += _in_a_row(turns, dialect.turns)
    return sorted(found, key=lambda violation: violation.turn)


def _in_a_row(turns: Sequence[Turn], rule: Alternation) -> Iterator[Violation]:
    """List the messages that do not take turns; of two in a row of the assistant, the one right behind the first."""
    before: int | None = None
    for index, turn in enumerate(turns) if rule is not Alternation.NONE else ():
        calls = [block for block in turn.blocks if block.type == "tool_use"]
        if rule is Alternation.BUT_CALLS and (calls or any(block.type == "tool_result" for block in turn.blocks)):
            continue
        for call in calls[1:]:
            yield Violation(Kind.ROLE_ORDER, index, call, "the results of two calls in one step stand in a row")
        if before is None and turn.role != "user":
            yield Violation(Kind.ROLE_ORDER, index, None, "the first message is not the user's")
        elif before is not None and turns[before].role == turn.role:
            who, at = ("the user", index) if turn.role == "user" else ("the assistant", before + 1)
            yield Violation(Kind.ROLE_ORDER, at, None, f"two messages of {who} stand in a row")
        before = index


def _without_reasoning(index: int, turn: Turn, claims: Claims) -> Iterator[Violation]:
    call = next((block for block in turn.blocks if block.type == "tool_use"), None)
    if call is not None and call.part_id in claims.accused and not any(block.is_thinking for block in turn.blocks):
        yield Violation(Kind.REASONING_MISSING, index, call, "a tool call has no reasoning beside it")


def _empty(index: int, turn: Turn, *, blank: bool) -> Iterator[Violation]:
    said = [block for block in turn.blocks if not block.is_thinking]
    if not said:
        yield Violation(Kind.EMPTY_CONTENT, index, None, "a message has no content")
    elif blank and all(block.type == "text" and not str(block.body["text"]).strip() for block in said):
        yield Violation(Kind.EMPTY_CONTENT, index, said[0], "a message holds nothing but white space")


def _blocks(index: int, turn: Turn, claims: Claims, dialect: Dialect) -> Iterator[Violation]:
    from recoveryd.providers.anthropic.block_rules import call_fault

    seen: set[str] = set()
    limits = dialect.limits.as_told(claims)
    for block in turn.blocks:
        reason = call_fault(block, seen if dialect.own_ids else set(), limits)
        if reason is not None:
            yield Violation(Kind.TOOL_CALL_INVALID, index, block, reason)
        if block.type != "tool_use" and half_character(block.body):
            yield Violation(Kind.INVALID_UNICODE, index, block, "it holds half a character (a lone surrogate)")
        meant = tuple((source, claimed_fault(claims)) for source in sources(block.body) if claims.means(block, source))
        if meant:
            yield Violation(Kind.MEDIA_REJECTED, index, block, meant[0][1], media=meant)
