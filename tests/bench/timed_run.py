"""`recoveryd run` as it is, but for lines of JSON on a pipe: `python -m ... FD`.

One comes for each repair that is durable, and one whenever the daemon goes on after it waited.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from recoveryd.cli import import_logging, main
from recoveryd.core.model import Change

if TYPE_CHECKING:
    from recoveryd.clients.opencode.files.store import OpencodeFiles
    from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite


def report_to(fd: int) -> None:
    import_logging()  # before anything else does: what is imported is measured too
    from recoveryd.clients.opencode.files.store import OpencodeFiles
    from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite

    out = os.fdopen(fd, "w", buffering=1)
    for store in (OpencodeFiles, OpencodeSqlite):
        _report(store, out)
    _report_waits(out)


def _report(store: type[OpencodeFiles | OpencodeSqlite], out: IO[str]) -> None:
    apply: Any = store.apply

    def timed(self: Any, changes: Sequence[Change]) -> None:
        apply(self, changes)
        at = time.monotonic()  # the same clock in all processes
        out.write(json.dumps({"at": at, "keys": [change.key for change in changes]}) + "\n")

    store.apply = timed  # type: ignore[method-assign]


def _report_waits(out: IO[str]) -> None:
    from recoveryd.daemon.daemon import Daemon

    receive: Any = Daemon._receive

    def counted(self: Any) -> None:
        due = self._schedule.wait()
        receive(self)
        if due is None or due > 0:
            out.write('{"waited": true}\n')

    Daemon._receive = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    report_to(int(sys.argv[1]))
    sys.exit(main(["run"]))
