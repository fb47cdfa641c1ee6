"""What the Responses API refuses: the items of a request in, violations out, each naming its kind and its part.

Source of the rules: the API's reference, and its own error texts. Without an error only that is a violation which no
provider of this API can take; of what depends on who answers, an error speaks first (`claims`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from recoveryd.core import Block, Claims, Json, Kind, Request, Violation
from recoveryd.providers.media_limits import claimed_fault
from recoveryd.providers.openai import media
from recoveryd.providers.openai.items import (
    ENCRYPTED,
    LONGEST_NAME,
    OUTPUT_OF,
    OUTPUTS,
    id_fault,
    is_lonely,
    is_odd_search,
    item_call_fault,
    message_fault,
    request_items,
    text_field,
)
from recoveryd.providers.openai.media import sources

_FIELD = {
    "content": "it may hold no text beside what is encrypted",
    "arguments": "it is longer than may be sent",
    "type": "the provider does not take a compaction's summary, all that the model knows of what was before it",
}


def check(request: Request, claims: Claims) -> list[Violation]:
    """List what breaks the Responses API's rules in a request, in its order; what the client can't send at all comes
    first.
    """
    found = [Violation(Kind.UNSENDABLE_PART, -1, None, part.reason, part.part_id) for part in request.unsendable]
    blocks = request_items(request)
    calls = {text_field(b.body, "call_id"): b for b in blocks if b.type in OUTPUT_OF}
    answered = {text_field(b.body, "call_id") for b in blocks if b.type in OUTPUTS}
    for turn, block in enumerate(blocks):
        found += _pairs(turn, block, calls, answered)
        if block.part_id:
            found += _form(turn, block, claims)
            found += _accused(turn, block, claims)
            found += _left_alone(turn, blocks, claims)
            found += _pictures(turn, block, claims)
    return found


def _pairs(turn: int, block: Block, calls: Mapping[str, Block], answered: set[str]) -> Iterator[Violation]:
    call = text_field(block.body, "call_id")
    if block.type in OUTPUT_OF and call and call not in answered:
        yield Violation(Kind.TOOL_RESULT_MISSING, turn, block, "a tool call has no output")
    if block.type in OUTPUTS and call and call not in calls:
        yield Violation(Kind.TOOL_RESULT_ORPHAN, turn, block, "an output has no tool call")


def _form(turn: int, block: Block, claims: Claims) -> Iterator[Violation]:
    reason = item_call_fault(block.body, claims.longest_name or LONGEST_NAME)
    if reason is not None:
        yield Violation(Kind.TOOL_CALL_INVALID, turn, block, reason)
    reason = message_fault(block.body)
    if reason is not None:
        yield Violation(Kind.FOREIGN_ITEM, turn, block, reason)


def _accused(turn: int, block: Block, claims: Claims) -> Iterator[Violation]:
    """List what the error speaks of, and still is as it was."""
    if block.part_id in claims.accused and block.type != "message":
        lacks = "this reasoning lacks what has to follow it" if block.part_id in claims.lonely else ""
        yield Violation(_kind(block), turn, block, lacks or "the provider does not take this item, or can't read it")
    for part_id, field in sorted(claims.fields):
        if part_id != block.part_id or part_id in claims.accused:
            continue
        foreign = id_fault(block.body) if field == "id" else None
        if foreign is not None:
            yield Violation(Kind.FOREIGN_ITEM, turn, block, foreign, field=field)
        elif _holds(block.body, field):
            reason = _FIELD.get(field, f"the provider does not take the {field} of this item")
            kind = Kind.TOOL_CALL_INVALID if field in ("arguments", "input") else _kind(block)
            yield Violation(kind, turn, block, reason, field="" if kind is Kind.TOOL_CALL_INVALID else field)


def _left_alone(turn: int, blocks: Sequence[Block], claims: Claims) -> Iterator[Violation]:
    """Tell of reasoning that had what it needs behind it, and has not any more; of what had none, the error tells."""
    part = blocks[turn].part_id
    if part in claims.followed and part not in claims.accused and is_lonely(blocks, turn):
        reason = "this reasoning would lack what has to follow it"
        yield Violation(Kind.REASONING_ITEM, turn, blocks[turn], reason)


def _kind(block: Block) -> Kind:
    if block.type in ENCRYPTED:
        return Kind.REASONING_ITEM
    return Kind.TOOL_CALL_INVALID if is_odd_search(block.body) and block.body.get("id") else Kind.FOREIGN_ITEM


def _holds(body: Json, field: str) -> bool:
    """Whether a field has what was refused; of a long input: whether it still is too long."""
    value = body.get(field)
    if field in ("arguments", "input"):
        return isinstance(value, str) and len(value) > 1_048_576
    return bool(value)


def _pictures(turn: int, block: Block, claims: Claims) -> Iterator[Violation]:
    """Return the images of a block that are refused, as one violation."""
    refused = tuple((source, why) for source in sources(block.body) if (why := _image_fault(block, source, claims)))
    if refused:
        yield Violation(Kind.MEDIA_REJECTED, turn, block, refused[0][1], media=refused)


def _image_fault(block: Block, source: Json, claims: Claims) -> str | None:
    claimed = claimed_fault(claims) if claims.means(block, source) else None
    return media.media_fault(source) or claimed
