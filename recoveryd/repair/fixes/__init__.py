"""What can be done about a violation: one function a kind, from a violation to the sets of edits that may answer it.

A repair proposes and never decides: `plan` tries the proposals, cheapest first, until the rules are content. So a
repair looks only at its own violation; what its edits bring about elsewhere is the next violation's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from recoveryd.core import Edits, Kind, Violation
from recoveryd.repair.fixes import calls, content, items, media, thinking, tools, unicode, unsendable
from recoveryd.repair.inputs import RepairInput, Settings

Repair = Callable[[RepairInput, Violation], Sequence[Edits]]

REPAIRS: Mapping[Kind, Repair] = {
    Kind.TOOL_RESULT_MISSING: tools.result_missing,
    Kind.THINKING_BLOCK_ORDER: thinking.open_loop,
    Kind.THINKING_DISABLED_VIOLATION: thinking.open_loop,
    Kind.THINKING_SIGNATURE_INVALID: thinking.rejected,
    Kind.THINKING_FINAL_BLOCK: thinking.final_block,
    Kind.EMPTY_CONTENT: content.empty,
    Kind.ROLE_ORDER: content.order,
    Kind.TOOL_CALL_INVALID: calls.invalid,
    Kind.INVALID_UNICODE: unicode.half,
    Kind.MEDIA_REJECTED: media.rejected,
    Kind.REASONING_ITEM: items.unread,
    Kind.FOREIGN_ITEM: items.foreign,
    Kind.UNSENDABLE_PART: unsendable.mended,
}

__all__ = ["REPAIRS", "Repair", "RepairInput", "Settings"]
