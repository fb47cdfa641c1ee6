"""Thinking blocks: in the wrong place, with thinking on or off, or no longer believed by the provider."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.bench import Bench

CLOSING = "[Tool execution completed.]"


def open_loop(bench: Bench, violation: Violation) -> Sequence[Edits]:
    """Close the turn: the rules of an open turn then bind nobody."""
    return (bench.editor.close_turn(bench.request.turns[violation.turn], CLOSING),)


def rejected(bench: Bench, violation: Violation) -> Sequence[Edits]:
    """Set aside the thinking that the provider rejects, and all thinking behind it: it may be bound to it."""
    assert violation.block is not None
    blocks = [b for b in bench.request.blocks() if b.is_thinking]
    first = next((i for i, b in enumerate(blocks) if b.part_id == violation.block.part_id), 0)
    if not bench.settings.keep_thinking:
        first = 0
    return (bench.editor.set_aside(blocks[first:], "set_aside_thinking"),)


def final_block(bench: Bench, violation: Violation) -> Sequence[Edits]:
    """Words behind the last thinking, so that it is not the end; or that thinking set aside."""
    block = violation.block
    assert block is not None
    return (
        bench.editor.words_behind(block.message_id, block.part_id, bench.settings.placeholder),
        bench.editor.set_aside([block], "set_aside_thinking"),
    )
