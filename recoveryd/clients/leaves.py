"""What a record says, whatever it is built of: the texts and numbers in it, at any depth."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any


def leaves(data: Any, frame: Collection[str] = ()) -> Iterator[str | float]:
    """List the texts that are not blank and the numbers in JSON, but for what stands under a key of `frame`."""
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
