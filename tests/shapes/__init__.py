"""Named shapes of stored sessions: broken ones of every kind, and healthy ones.

`SHAPES` maps each name to its shape; `BROKEN` and `HEALTHY` are the two halves of it.
"""

from __future__ import annotations

from tests.shapes import content, healthy, later, signatures, thinking, tools
from tests.shapes.registry import SHAPES, Shape, is_old

BROKEN = [shape for shape in SHAPES.values() if shape.kind is not None]
HEALTHY = [shape for shape in SHAPES.values() if shape.kind is None]

__all__ = [
    "BROKEN",
    "HEALTHY",
    "SHAPES",
    "Shape",
    "content",
    "healthy",
    "is_old",
    "later",
    "signatures",
    "thinking",
    "tools",
]
