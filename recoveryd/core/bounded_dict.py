"""A dictionary that keeps only the newest entries, since a daemon runs for months."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST = 1000  # entries


def keep_newest(memory: dict[K, V], key: K, value: V) -> None:
    """Set `memory[key] = value`; where that makes more than `MOST` entries, drop the oldest."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > MOST:
        del memory[next(iter(memory))]
