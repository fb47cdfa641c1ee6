"""Fix items that only another provider, account or model understands: encrypted reasoning, types, fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recoveryd.core import Block, Edit, Edits, Violation
from recoveryd.repair.inputs import RepairInput


def set_aside_unreadable(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Set aside at once, and whole, all that the provider can't read: what is left of it would be refused as well."""
    assert violation.block is not None
    if violation.field:
        return _without_field(given, violation, "set_aside_reasoning")
    return (given.editor.set_aside(_alike(given, violation), "set_aside_reasoning"),)


def mend_foreign_item(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Take the refused field out, or turn the item into words; set aside what has no words.

    What a person said or a tool gave back is never set aside.
    """
    assert violation.block is not None
    if violation.field:
        return _without_field(given, violation, "set_aside_item")
    return (tuple(edit for block in _alike(given, violation) for edit in _in_words(given, block)),)


def _without_field(given: RepairInput, violation: Violation, action: str) -> Sequence[Edits]:
    block = violation.block
    assert block is not None
    emptied = given.editor.without_field(block, violation.field, "drop_field")
    return (emptied, given.editor.set_aside([block], action)) if _may_go(block) else (emptied,)


def _in_words(given: RepairInput, block: Block) -> Iterator[Edit]:
    words = given.editor.as_message(block, "as_message")
    yield from words or (given.editor.set_aside([block], "set_aside_item") if _may_go(block) else ())


def _alike(given: RepairInput, violation: Violation) -> list[Block]:
    """List the blocks that are refused whole as this kind."""
    same = (v for v in given.found if v.kind is violation.kind and not v.field)
    return [v.block for v in same if v.block is not None]


def _may_go(block: Block) -> bool:
    """Whether a block holds nothing that a person wrote, no answer, and nothing that a tool gave back."""
    return block.type != "message" and not block.type.endswith("_output")
