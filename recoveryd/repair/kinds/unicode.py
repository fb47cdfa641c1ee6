"""Half characters: one half of a surrogate pair, which no JSON body can carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recoveryd.core.model import Edit
from recoveryd.core.text import HALF
from recoveryd.core.violation import Violation
from recoveryd.repair.bench import Bench
from recoveryd.repair.kinds.thinking import rejected


def half(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """U+FFFD in its place. Signed thinking can't be mended, so it is set aside."""
    assert violation.block is not None
    if violation.block.is_thinking:
        return rejected(bench, violation)
    part = bench.part(violation.block.part_id)
    mended = {key: whole(value) for key, value in (part.data or {}).items()}
    return ((bench.replace(part, mended, "mend_unicode"),),)


def whole(value: Any) -> Any:
    """`value` with every half character replaced, in keys too."""
    if isinstance(value, str):
        return HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        mended: dict[Any, Any] = {}
        for key, item in value.items():
            name = whole(key)
            while name in mended or (name != key and name in value):
                name += "_"  # two keys that differed in their half character alone stay two
            mended[name] = whole(item)
        return mended
    return [whole(item) for item in value] if isinstance(value, list) else value
