"""Fix thinking blocks: in the wrong place, with thinking on or off, or no longer accepted by the provider."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.inputs import RepairInput

# What is made up says so, to the model and to people.
INVENTED = "[The reasoning before this tool call was not kept.]"
CLOSING = "[Tool execution completed.]"


def close_open_turn(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Close the turn: the rules of an open turn then bind nobody."""
    return (given.editor.close_turn(given.request.turns[violation.turn], CLOSING),)


def set_aside_thinking(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Set aside the thinking that the provider rejects, and all thinking behind it: it may be bound to it.

    Where only a field of a block is rejected (a signature beside it), that field goes, of all such blocks at once.
    Where it rejects thinking for no words, or for its place, just that goes.
    """
    assert violation.block is not None
    if violation.field:
        alike = [v for v in given.found if v.kind is violation.kind and v.field and v.block is not None]
        emptied = (given.editor.without_field(v.block, v.field, "drop_signature") for v in alike if v.block is not None)
        return (tuple(edit for edits in emptied for edit in edits),)
    blocks = [b for b in given.request.blocks() if b.is_thinking]
    if given.claims.alone and violation.block.part_id in given.claims.accused:
        return (given.editor.set_aside([b for b in blocks if b.part_id in given.claims.accused], "set_aside_thinking"),)
    first = next((i for i, b in enumerate(blocks) if b.part_id == violation.block.part_id), 0)
    if not given.settings.keep_thinking:
        first = 0
    return (given.editor.set_aside(blocks[first:], "set_aside_thinking"),)


def cover_final_thinking(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Append words behind the last thinking, so that it is not the end; or set that thinking aside."""
    block = violation.block
    assert block is not None
    return (
        given.editor.words_behind(block.message_id, block.part_id, given.settings.placeholder),
        given.editor.set_aside([block], "set_aside_thinking"),
    )


def make_up_reasoning(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Give a call reasoning; only asked for where the user allowed that it is made up.

    Where its answer becomes one of the model that is asked, the one that wrote it no longer takes its thinking for its
    own, and wants some at the head of an open turn: such a turn is closed.
    """
    assert violation.block is not None
    made = given.editor.reasoning_before(violation.block, INVENTED)
    turns = given.request.turns
    is_open = all(turn.role == "user" for turn in turns[violation.turn + 1 :])
    if is_open and any(edit.part_id is None for edit in made):
        made += given.editor.close_turn(turns[violation.turn], CLOSING)
    return (made,)
