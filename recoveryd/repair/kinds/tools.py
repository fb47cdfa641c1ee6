"""Tool calls and their results."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.bench import Bench


def result_missing(bench: Bench, violation: Violation) -> Sequence[Edits]:
    """A call without a result is ended as cancelled; what stands behind a call in its step gets a step of its own."""
    block = violation.block
    if block is None or not block.part_id:
        return ()
    if block.type in ("tool_use", "tool_result"):
        return (bench.editor.cancel_call(block, bench.settings.cancelled_text),)
    return (bench.editor.own_step(block),)
