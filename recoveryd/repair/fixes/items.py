"""Items that only another provider, account or model understands: reasoning that is encrypted, types, fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recoveryd.core import Block, Edit, Edits, Violation
from recoveryd.repair.inputs import RepairInput


def unread(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """All that the provider can't read goes at once, and whole: what is left of it would be refused as well."""
    assert violation.block is not None
    if violation.field:
        return _without_field(given, violation, "set_aside_reasoning")
    return (given.editor.set_aside(_alike(given, violation), "set_aside_reasoning"),)


def foreign(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Without the field, or as words; what has no words is set aside. What was said or given back is never that."""
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
    """The blocks that are refused whole for the same."""
    same = (v for v in given.found if v.kind is violation.kind and not v.field)
    return [v.block for v in same if v.block is not None]


def _may_go(block: Block) -> bool:
    """Whether nothing of it is what a person wrote, an answer, or what a tool gave back."""
    return block.type != "message" and not block.type.endswith("_output")
