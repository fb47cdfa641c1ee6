"""Give the figures of recoveries to who is told them: the textfile of node_exporter, a collector of OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from recoveryd.clients import Config, Store, may_be_there
from recoveryd.daemon.otel import Otel
from recoveryd.daemon.textfile import Textfile
from recoveryd.diagnose import Context, NeedsUser
from recoveryd.tell import Callbacks

# Each count goes through all sessions: of a thousand that fail at once not each is worth one.
_PAUSE_S, _SHARE = 2.0, 0.05  # at least, and of the daemon's time at most
_EVERY_S = 50.0  # less than a sweep: so the textfile's time of change tells that the daemon is alive


class Figures:
    """Gives the daemon's figures: counts the sessions that need their user, for its textfile and its collector at once,
    where the configuration wants either.
    """

    def __init__(self, config: Config, titles: Callable[[str], str]) -> None:
        """`titles`: what people call the client of a store, by the store's id."""
        self._textfile = Textfile(config.metrics.textfile, titles)
        self._otel = Otel(config.otel.endpoint, titles)
        self._needs_user = NeedsUser()
        self._ended, self._counted, self._pause = -1, float("-inf"), _PAUSE_S

    @property
    def callbacks(self) -> Callbacks:
        """What tells the collector of each recovery that came to an end."""
        return self._otel.callbacks

    def tell(self, context: Context, stores: Iterable[Store], ended: int) -> float | None:
        """Count and tell, if it is time to: every 50 seconds, and when more recoveries have `ended`. DiskError.

        Some time goes by between two counts. Returns after how many seconds it is to be called again for what ended
        meanwhile; None when nothing did.
        """
        if not (self._textfile.on or self._otel.on):
            return None
        now, news = time.monotonic(), ended != self._ended
        wait = (self._pause if news else _EVERY_S) - (now - self._counted)
        if wait > 0:
            return wait if news else None
        self._ended, self._counted = ended, now
        stuck = self._needs_user.count(context, may_be_there([*stores]))
        self._otel.count(stuck)
        self._textfile.write(context.ledger, stuck)
        self._pause = max(_PAUSE_S, (time.monotonic() - now) / _SHARE)
        return None

    def close(self) -> None:
        """Remove the textfile, and send what is left to the collector, for two seconds at the most."""
        self._textfile.remove()
        self._otel.close()
