"""A `recoveryd run` with its sweeps a second apart instead of a minute, which is the only difference."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.daemon import CONFIG, Daemon

_RUN = (
    "import sys, recoveryd.daemon.daemon as d; d.SWEEP_S = 1.0; from recoveryd.cli import main; sys.exit(main(['run']))"
)


@contextmanager
def quick(root: Path, data: Path, *, before: tuple[str, ...] = (), config: str = CONFIG) -> Iterator[Daemon]:
    """It runs; `before` are words in front of its command. Ended in any case."""
    daemon = Daemon(root, data, config=config)
    daemon.command = [*before, sys.executable, "-c", _RUN]
    with daemon:
        yield daemon
