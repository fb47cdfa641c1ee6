"""Give the figures of recoveries to who is told them: the textfile of node_exporter, a collector of OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from recoveryd.clients import Config, Store
from recoveryd.daemon.otel import Otel
from recoveryd.daemon.textfile import Textfile
from recoveryd.diagnose import Context, NeedsUser
from recoveryd.tell import Callbacks

_EVERY_S = 50.0  # less than a sweep: so the textfile's time of change tells that the daemon is alive


class Figures:
    """Counts the sessions that need their user, for the daemon's textfile and its collector at once, where the
    configuration wants either.
    """

    def __init__(self, config: Config, titles: Callable[[str], str]) -> None:
        """`titles`: what people call the client of a store, by the store's id."""
        self._textfile = Textfile(config.metrics.textfile, titles)
        self._otel = Otel(config.otel.endpoint, titles)
        self._needs_user = NeedsUser()
        self._ended, self._counted = -1, float("-inf")

    @property
    def callbacks(self) -> Callbacks:
        """What tells the collector of each recovery that came to an end."""
        return self._otel.callbacks

    def tell(self, context: Context, stores: Iterable[Store], ended: int) -> None:
        """Count and tell, if it is time to: every 50 seconds, and when more recoveries have `ended`. DiskError."""
        now = time.monotonic()
        if not (self._textfile.on or self._otel.on) or (ended == self._ended and now - self._counted < _EVERY_S):
            return
        self._ended, self._counted = ended, now
        stuck = [one.store for one in self._needs_user.find(context, stores)]
        self._otel.count(stuck)
        self._textfile.write(context.ledger, stuck)

    def close(self) -> None:
        """Remove the textfile, and send what is left to the collector, for two seconds at the most."""
        self._textfile.remove()
        self._otel.close()
