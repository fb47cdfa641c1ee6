"""A memory that forgets: a daemon runs for months, and what it notes of each session may not add up."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST = 1000


def note(memory: dict[K, V], key: K, value: V, most: int = MOST) -> None:
    """`memory[key] = value`; of more than `most` notes the oldest goes."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > most:
        del memory[next(iter(memory))]
