"""Fix half characters: one half of a surrogate pair, which no JSON body can carry."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.fixes.thinking import set_aside_thinking
from recoveryd.repair.inputs import RepairInput


def replace_half_characters(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Replace a half character by U+FFFD. Signed thinking can't be changed, so it is set aside."""
    assert violation.block is not None
    if violation.block.is_thinking:
        return set_aside_thinking(given, violation)
    return (given.editor.mend_unicode(violation.block),)
