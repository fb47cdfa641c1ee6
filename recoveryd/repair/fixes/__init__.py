"""What can be done about a violation: one function a kind, from a violation to the sets of edits that may answer it.

A repair proposes and never decides: `plan` tries the proposals, cheapest first, until the rules are content. So a
repair looks only at its own violation; what its edits bring about elsewhere is the next violation's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from recoveryd.core import Edits, Kind, Violation
from recoveryd.repair.fixes import calls, content, items, media, thinking, unicode, unsendable
from recoveryd.repair.inputs import RepairInput, Settings

Repair = Callable[[RepairInput, Violation], Sequence[Edits]]

REPAIRS: Mapping[Kind, Repair] = {
    Kind.TOOL_RESULT_MISSING: calls.cancel_calls,
    Kind.THINKING_BLOCK_ORDER: thinking.close_open_turn,
    Kind.THINKING_DISABLED_VIOLATION: thinking.close_open_turn,
    Kind.THINKING_SIGNATURE_INVALID: thinking.set_aside_thinking,
    Kind.THINKING_FINAL_BLOCK: thinking.cover_final_thinking,
    Kind.REASONING_MISSING: thinking.make_up_reasoning,
    Kind.EMPTY_CONTENT: content.fill_or_set_aside_empty,
    Kind.ROLE_ORDER: content.let_user_begin,
    Kind.TOOL_CALL_INVALID: calls.mend_call,
    Kind.INVALID_UNICODE: unicode.replace_half_characters,
    Kind.MEDIA_REJECTED: media.mend_media,
    Kind.REASONING_ITEM: items.set_aside_unreadable,
    Kind.FOREIGN_ITEM: items.mend_foreign_item,
    Kind.TOOL_NOT_FOUND: items.forget_tool,
    Kind.UNSENDABLE_PART: unsendable.mend_unsendable,
}

__all__ = ["REPAIRS", "Repair", "RepairInput", "Settings"]
