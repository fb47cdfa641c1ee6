"""Fix tool calls that lack their results."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.inputs import RepairInput


def cancel_calls(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """End a call without a result as cancelled; give what stands behind a call in its step a step of its own."""
    block = violation.block
    if block is None or not block.part_id:
        return ()
    if block.type in ("tool_use", "tool_result"):
        return (given.editor.cancel_call(block, given.settings.cancelled_text),)
    return (given.editor.own_step(block),)
