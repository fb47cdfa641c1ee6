"""Fix items that only another provider, account or model understands: encrypted reasoning, types, fields."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Block, Edits, Violation
from recoveryd.repair.inputs import RepairInput

_ASIDE = ("set_aside_reasoning", "set_aside_alone", "set_aside_summary")


def set_aside_unreadable(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Set aside at once, and whole, all that the provider can't read: what is left of it would be refused as well.

    So is reasoning that it can read, where the repair itself takes away what followed it.
    """
    assert violation.block is not None
    if violation.field:
        return _without_field(given, violation, "set_aside_reasoning")
    alike = _alike(given, violation)
    edits = (given.editor.set_aside([b for b in alike if _why(given, b) == why], why) for why in _ASIDE)
    return (tuple(edit for of_one_kind in edits for edit in of_one_kind),)


def _why(given: RepairInput, block: Block) -> str:
    if block.is_summary:
        return "set_aside_summary"
    told = given.claims
    sound = block.part_id in told.followed and block.part_id not in told.accused
    return "set_aside_alone" if sound or block.part_id in told.lonely else "set_aside_reasoning"


def mend_foreign_item(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Take the refused field out, or turn the item into words; set aside what has no words.

    What a person said or a tool gave back is never set aside.
    """
    assert violation.block is not None
    if violation.field:
        return _without_field(given, violation, "set_aside_item")
    alike = _alike(given, violation)
    edits = [_in_words(given, block, alike) for block in alike]
    return (tuple(edit for of_block in edits for edit in of_block),) if all(edits) else ()


def forget_tool(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Take a tool out of what a search had found."""
    assert violation.block is not None
    return (given.editor.without_field(violation.block, violation.field, "forget_tool"),)


def _without_field(given: RepairInput, violation: Violation, action: str) -> Sequence[Edits]:
    block = violation.block
    assert block is not None
    emptied = given.editor.without_field(block, violation.field, "drop_field")
    if emptied or not _may_go(given, block):  # all else that the item says stays
        return (emptied,)
    return (given.editor.set_aside([block], action),)


def _in_words(given: RepairInput, block: Block, alike: Sequence[Block]) -> Edits:
    """Return nothing where a block has no room for its words and may not go."""
    words = given.editor.as_message(block, "as_message")
    return words or (given.editor.set_aside([block], "set_aside_item") if _may_go(given, block, alike) else ())


def _alike(given: RepairInput, violation: Violation) -> list[Block]:
    """List the blocks that are refused whole as this kind."""
    same = (v for v in given.found if v.kind is violation.kind and not v.field)
    return [v.block for v in same if v.block is not None]


def _may_go(given: RepairInput, block: Block, alike: Sequence[Block] = ()) -> bool:
    """Whether a block holds nothing that a person wrote, no answer, no image that the model made, nothing that
    a tool gave back, no summary of all that; nor is a call without which an output is not sent, unless it is one of
    `alike`, which go on as words.
    """
    if block.type == "message" or block.is_summary or _is_output(block) or block.body.get("result"):
        return False
    call = block.body.get("call_id")
    outputs = (other for other in given.request.blocks() if _is_output(other) and other.part_id)
    return not any(other.body.get("call_id") == call for other in outputs if call and other not in alike)


def _is_output(block: Block) -> bool:
    return block.type.endswith("_output")
