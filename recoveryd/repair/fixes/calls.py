"""Fix tool calls: those that lack their results, and ids, names and inputs that no provider takes."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.inputs import RepairInput


def mend_call(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Give a call a legal id of its own, a legal name, an input that is an object; what is legal stays.

    A call that the provider itself was to run has no output stored beside it: such a call can go. What a provider's own
    tool gave back, without its call, goes on as words.
    """
    assert violation.block is not None
    if violation.block.type.endswith("_tool_result"):
        return (given.editor.as_message(violation.block, "as_message"),)
    if violation.block.type == "web_search_call":
        return (given.editor.set_aside([violation.block], "set_aside_item"),)
    return (given.editor.mend_call(violation.block, given.provider.call_limits.as_told(given.claims)),)


def cancel_calls(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """End a call without a result as cancelled; give what stands behind a call in its step a step of its own, or set
    that aside where it is thinking and the client has no such steps.
    """
    block = violation.block
    if block is None or not block.part_id:
        return ()
    if block.type in ("tool_use", "tool_result"):
        return (given.editor.cancel_call(block, given.settings.cancelled_text),)
    if (own := given.editor.own_step(block)) or not block.is_thinking:
        return (own,)
    return (given.editor.set_aside([block], "set_aside_thinking"),)
