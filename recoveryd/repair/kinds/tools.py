"""Tool calls and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recoveryd.core.model import Edit, Part
from recoveryd.core.violation import Violation
from recoveryd.repair.bench import Bench


def result_missing(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """A call without a result is ended as cancelled; what stands behind a call in its step gets a step of its own."""
    block = violation.block
    if block is None or not block.part_id:
        return ()
    part = bench.part(block.part_id)
    if part.type == "tool":
        return ((cancelled(bench, part),),) if not _finished(part) else ()
    return (split_before(bench, part),)


def split_before(bench: Bench, part: Part) -> tuple[Edit, ...]:
    """A `step-start` in front of `part`: the client then sends the results of the calls before it first."""
    parts = bench.message(part.message_id).parts
    index = next(i for i, other in enumerate(parts) if other.id == part.id)
    behind = parts[index - 1].id if index else None
    return bench.insert(part.message_id, behind, [{"type": "step-start"}], "split_step")


def cancelled(bench: Bench, part: Part) -> Edit:
    """The call with the state that the client itself writes for one that was given up."""
    data = part.data or {}
    state = data.get("state")
    old: Mapping[str, Any] = state if isinstance(state, Mapping) else {}
    given = old.get("input")
    time = old.get("time")
    start = time.get("start") if isinstance(time, Mapping) else None
    ended = {
        **old,
        "status": "error",
        "input": given if isinstance(given, Mapping) else {},
        "error": bench.settings.cancelled_text,
        "time": {"start": start if isinstance(start, (int, float)) else bench.now, "end": bench.now},
    }
    return bench.replace(part, {"state": ended}, "cancel_tool")


def _finished(part: Part) -> bool:
    state = (part.data or {}).get("state")
    return isinstance(state, Mapping) and state.get("status") in ("completed", "error")
