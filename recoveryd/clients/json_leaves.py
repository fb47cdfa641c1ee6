"""What a record says, whatever it is built of: the texts and numbers in it, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from recoveryd.core import Change


def leaves(data: Any, frame: Collection[str] = ()) -> Iterator[str | float]:
    """List the leaves of a record's JSON, its texts that are not blank and numbers, but for what stands under a key of
    `frame`.
    """
    stack = [data]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(inner for key, inner in value.items() if key not in frame)
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, str):
            if value.strip():
                yield value
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield value


def says_more(changes: Sequence[Change], read: Callable[[bytes], Any], frame: Collection[str]) -> bool:
    """Whether an edit lost anything that a record says: a leaf of a before-image's JSON that is in no after-image, not
    even as a piece of a longer text.

    `read` gives what an image says, None where that is no JSON: such an image has to be kept.
    """
    after = [read(change.after) for change in changes if change.after is not None]
    kept = {value for image in after for value in leaves(image, frame)}
    texts = [value for value in kept if isinstance(value, str)]
    for change in changes:
        if change.before is None or change.before == change.after or not change.before.strip():
            continue
        before = read(change.before)
        if before is None:
            return True
        lost = [value for value in leaves(before, frame) if value not in kept]
        if any(not isinstance(value, str) or not any(value in text for text in texts) for value in lost):
            return True
    return False
