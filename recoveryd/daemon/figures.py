"""Give the figures of recoveries to who is told them: the textfile of node_exporter, a collector of OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from recoveryd.clients import Config, Store, may_be_there
from recoveryd.daemon.otel import Otel
from recoveryd.daemon.textfile import Textfile
from recoveryd.diagnose import Context, NeedsUser
from recoveryd.tell import Callbacks

# Each count goes through all sessions: of a thousand that fail at once not each is worth one, and less so of all that a
# client writes while a model answers. By then a session may have got stuck, or answered, of which no recovery tells.
_PAUSE_S, _SHARE = 2.0, 0.05  # at least, and of the daemon's time at most, where a recovery ended
_TOUCHED_S, _TOUCHED_SHARE = 5.0, 0.01  # where a client wrote
_EVERY_S = 50.0  # so the textfile's time of change tells that the daemon is alive


class Figures:
    """Gives the daemon's figures: counts the sessions that need their user, for its textfile and its collector at once,
    where the configuration wants either.
    """

    def __init__(self, config: Config, titles: Callable[[str], str]) -> None:
        """`titles`: what people call the client of a store, by the store's id."""
        self._textfile = Textfile(config.metrics.textfile, titles)
        self._otel = Otel(config.otel.endpoint, titles)
        self._needs_user = NeedsUser()
        self._ended, self._touched = -1, -1
        self._counted = self._due = float("-inf")
        self._took = 0.0  # by the last count, seconds

    @property
    def callbacks(self) -> Callbacks:
        """What tells the collector of each recovery that came to an end."""
        return self._otel.callbacks

    def tell(self, context: Context, stores: Iterable[Store], ended: int, touched: int = 0) -> float | None:
        """Count and tell, if it is time to: every 50 seconds, and when more recoveries have `ended`, or stores were
        `touched` more often. DiskError.

        Some time goes by between two counts. Returns after how many seconds it is to be called again; None: at no other
        time than was said last.
        """
        if not (self._textfile.on or self._otel.on):
            return None
        now = time.monotonic()
        due = self._counted + self._pause(ended, touched)
        if now >= due:
            self._ended, self._touched, self._counted = ended, touched, now
            self._count(context, stores, now)
            due = now + _EVERY_S
        elif due >= self._due > now:  # by then it is called anyway
            return None
        self._due = due
        return due - now

    def _count(self, context: Context, stores: Iterable[Store], now: float) -> None:
        stuck = self._needs_user.count(context, may_be_there([*stores]))
        self._otel.count(stuck)
        self._textfile.write(context.ledger, stuck)
        self._took = time.monotonic() - now

    def _pause(self, ended: int, touched: int) -> float:
        """Return how long the next count is to come after the last one."""
        if ended != self._ended:
            least, share = _PAUSE_S, _SHARE
        elif touched != self._touched:
            least, share = _TOUCHED_S, _TOUCHED_SHARE
        else:
            return _EVERY_S
        return min(max(least, self._took / share), _EVERY_S)  # a slow count is no reason to seem dead

    def close(self) -> None:
        """Remove the textfile, and send what is left to the collector, for two seconds at the most."""
        self._textfile.remove()
        self._otel.close()
