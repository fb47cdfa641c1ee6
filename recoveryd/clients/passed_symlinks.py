"""Symlinks out of a store: what is locked, kept and undone goes by one real place, so what lies behind them is passed
over, and told.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from recoveryd.core import RecoverydError, RefusedError, first_of
from recoveryd.disk import real_path


def not_followed(links: Sequence[Path], *, exchanged: bool = False) -> RecoverydError | None:
    """Tell of symlinks with sessions behind them, and how the first one is mended; None where there are none.

    `exchanged`: their client wrote down where the files really are, so a symlink has to lead from there.
    """
    if not links:
        return None
    named = first_of([f"{link} (to {real_path(link)})" for link in links])
    back = ", and a symlink in its own" if exchanged else ""
    return RefusedError(
        f"A symlink out of the store is not followed, so no session behind it is healed: {named}.",
        f"With its client closed, put the folder in the place of its symlink{back}: "
        f"{_put_in_place(links[0], exchanged=exchanged)}",
    )


def _put_in_place(link: Path, *, exchanged: bool) -> str:
    at, real = shlex.quote(str(link)), shlex.quote(str(real_path(link)))
    return f"rm {at} && mv {real} {at}{f' && ln -s {at} {real}' if exchanged else ''}"
