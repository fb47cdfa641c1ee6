"""The metrics in a file, for the textfile collector of node_exporter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from recoveryd.clients import Store, client_title
from recoveryd.core import DiskError
from recoveryd.diagnose import Context, NeedsUser
from recoveryd.disk import private_files
from recoveryd.ledger import Upkeep
from recoveryd.tell import METRICS_BEGIN, metrics

_EVERY_S = 50.0  # less than a sweep: so its time of change tells that the daemon is alive


class Textfile:
    """Written when a recovery came to an end, and at each sweep; removed when the daemon ends. None: there is none."""

    def __init__(self, path: Path | None, titles: Callable[[str], str] = client_title) -> None:
        self._titles = titles
        self._needs_user = NeedsUser()
        self._path = path
        self._told = -1
        self._written = float("-inf")

    def write(self, context: Context, stores: Iterable[Store], told: int) -> None:
        """Write it if it is time to. `told`: how many recoveries came to an end. DiskError."""
        now = time.monotonic()
        if self._path is None or (told == self._told and now - self._written < _EVERY_S):
            return
        self._told, self._written = told, now
        stuck = [one.store for one in self._needs_user.find(context, stores)]
        text = metrics(Upkeep(context.ledger).ended(), stuck, self._titles)
        try:
            if self._path.exists() and not self._ours():
                raise DiskError(f"{self._path} is no file of recoveryd, so no metrics are written there.")
            private_files.write(self._path, text.encode(), mode=0o644, lasting=False)
        except OSError as error:
            raise DiskError(f"The metrics can't be written to {self._path}: {error.strerror or error}.") from error

    def remove(self) -> None:
        """Remove the file: metrics that nobody goes on with are none."""
        with suppress(OSError):
            if self._path is not None and self._ours():
                self._path.unlink()

    def _ours(self) -> bool:
        assert self._path is not None
        with self._path.open("rb") as file:
            return file.read(len(METRICS_BEGIN)) == METRICS_BEGIN.encode()
