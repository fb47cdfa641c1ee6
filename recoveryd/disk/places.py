"""Tell which paths lead to the same place on the disk, by whatever links."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def group_by_place(paths: Iterable[Path]) -> list[list[Path]]:
    """Group paths by the place that they lead to."""
    found: dict[Path, list[Path]] = {}
    for path in paths:
        found.setdefault(path.resolve(), []).append(path)
    return list(found.values())


def distinct_places(paths: Iterable[Path]) -> list[Path]:
    """List the paths that lead to different places, each as it was named first."""
    return [first for first, *_ in group_by_place(paths)]
