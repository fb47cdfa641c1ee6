"""The metrics in a file, for the textfile collector of node_exporter."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from recoveryd.core import DiskError
from recoveryd.disk import private_files
from recoveryd.ledger import Ledger, Upkeep
from recoveryd.tell import METRICS_BEGIN, Stuck, metrics


class Textfile:
    """Writes the metrics to `path`, and removes the file when the daemon ends. None: there is none."""

    def __init__(self, path: Path | None, titles: Callable[[str], str]) -> None:
        self._titles = titles
        self._path = path

    @property
    def on(self) -> bool:
        """Whether there is such a file."""
        return self._path is not None

    def write(self, ledger: Ledger, stuck: Stuck) -> None:
        """Write the file anew. DiskError."""
        if self._path is None:
            return
        text = metrics(Upkeep(ledger).ended(), stuck, self._titles)
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
        if not self._path.is_file():  # to open a FIFO would wait for ever
            return False
        with self._path.open("rb") as file:
            return file.read(len(METRICS_BEGIN)) == METRICS_BEGIN.encode()
