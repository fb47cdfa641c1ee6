"""Thinking blocks: in the wrong place, with thinking on or off, or no longer believed by the provider."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core.model import Edit
from recoveryd.core.violation import Violation
from recoveryd.repair.bench import Bench

CLOSING = "[Tool execution completed.]"


def open_loop(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """Close the turn: behind its last part a `step-start` and a text. The open turn's rules then bind nobody."""
    blocks = bench.wire.turns[violation.turn].blocks
    behind = next((b for b in reversed(blocks) if b.part_id), None)
    if behind is None:
        return ()
    message = bench.message(behind.message_id)
    bodies = [{"type": "step-start"}, bench.text(CLOSING, assistant=True)]
    return (bench.insert(message.id, message.parts[-1].id, bodies, "close_turn"),)


def rejected(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """Set aside the thinking that the provider rejects, and all thinking behind it: it may be bound to it."""
    assert violation.block is not None
    blocks = [b for b in bench.wire.blocks() if b.is_thinking]
    first = next((i for i, b in enumerate(blocks) if b.part_id == violation.block.part_id), 0)
    if not bench.settings.keep_thinking:
        first = 0
    return (tuple(bench.set_aside(bench.part(b.part_id), "set_aside_thinking") for b in blocks[first:]),)


def final_block(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """Words behind the last thinking, so that it is not the end; or that thinking set aside."""
    assert violation.block is not None
    part = bench.part(violation.block.part_id)
    words = [bench.text(bench.settings.placeholder, assistant=True)]
    return (
        bench.insert(part.message_id, part.id, words, "placeholder"),
        (bench.set_aside(part, "set_aside_thinking"),),
    )
