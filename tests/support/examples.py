"""How many examples a generated test tries: a tenth of them all day, all of them under TEST_RECOVERYD_FULL."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

FULL = bool(os.environ.get("TEST_RECOVERYD_FULL"))


def examples(number: int, **more: Any) -> settings:
    """Settings with `number` examples where all of it is run, and a tenth of it, at least ten, where it is not."""
    return settings(max_examples=number if FULL else max(number // 10, 10), deadline=None, **more)
