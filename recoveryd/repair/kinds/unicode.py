"""Half characters: one half of a surrogate pair, which no JSON body can carry."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.bench import Bench
from recoveryd.repair.kinds.thinking import rejected


def half(bench: Bench, violation: Violation) -> Sequence[Edits]:
    """U+FFFD in its place. Signed thinking can't be mended, so it is set aside."""
    assert violation.block is not None
    if violation.block.is_thinking:
        return rejected(bench, violation)
    return (bench.editor.mend_unicode(violation.block),)
