"""Which thinking no longer fits, for providers that bind it to all that stands before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from recoveryd.core import Block, Json, Request

_VERSION = re.compile(r"(?<!\d)(\d{1,2})(?:[-.](\d{1,2}))?(?![\dkKmM])")  # of claude-opus-5-20260101 the 5, no "16k"
_SINCE = (5, 1)
_NOT_YET = "mythos"  # of that version
_SAID = "bound to a different conversation"


def binds(model: str, said: Iterable[str]) -> bool:
    """Whether a model binds its thinking to all before it: by its version, or since a refusal said so."""
    version = _VERSION.search(model, max(model.rfind("claude"), 0))
    number = (int(version[1]), int(version[2] or 0)) if version is not None else (0, 0)
    newer = number > _SINCE or (number == _SINCE and _NOT_YET not in model.lower())
    return newer or any(_SAID in text for text in said)


def unbound(before: Request, after: Request) -> list[Block]:
    """List the thinking of `after` that is no longer bound to what stood before it in `before`, which a provider would
    reject.

    Such a provider accepts that thinking is taken away from the start or from the end, not from the middle, and nothing
    else that changes in front of a block.
    """
    order = [block.part_id for block in before.blocks() if block.is_thinking]
    places, now = _places(before), _places(after)
    agree = _agreement(_spoken(before), _spoken(after))
    rejected: list[Block] = []
    expected = -1
    for block in (b for b in after.blocks() if b.is_thinking):
        place = now[block.part_id]
        if expected < 0 and block.part_id in places:
            expected = order.index(block.part_id)
        in_order = 0 <= expected < len(order) and order[expected] == block.part_id
        if rejected or not in_order or place > agree or place != places[block.part_id]:
            rejected.append(block)
        expected += 1
    return rejected


def _spoken(request: Request) -> list[tuple[str, Json]]:
    """List all that is not thinking, in order; a turn without content counts as one."""
    return [
        (turn.role, body)
        for turn in request.turns
        for body in ([b.body for b in turn.blocks if not b.is_thinking] if turn.blocks else [{}])
    ]


def _places(request: Request) -> Mapping[str, int]:
    """Tell for each thinking block how much of `_spoken` stands before it."""
    places: dict[str, int] = {}
    count = 0
    for turn in request.turns:
        count += not turn.blocks
        for block in turn.blocks:
            if block.is_thinking:
                places[block.part_id] = count
            else:
                count += 1
    return places


def _agreement(old: Sequence[tuple[str, Json]], new: Sequence[tuple[str, Json]]) -> int:
    same = (a == b for a, b in zip(old, new, strict=False))
    return next((i for i, equal in enumerate(same) if not equal), min(len(old), len(new)))
