"""Wait until nobody has written to a session for a moment: what is read then is complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from recoveryd.clients.store import Stamp, Store
from recoveryd.core import ActiveError, keep_newest

SETTLE_S = 0.15  # the client cleans up for about 50 ms after an error; an edit made in that time was lost (measured)
_PATIENCE_S = 2.0


class Quiet:
    """Tells for how long nobody wrote to sessions, by the times of their records.

    A record's time may lie in the future (the clock was ahead once): then it counts for how long the session was seen
    unchanged.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._seen: dict[Hashable, tuple[str, float]] = {}  # the stamp's digest, and since when: time.monotonic()

    def wait(self, session: Hashable, stamp: Stamp, seconds: float) -> float:
        """Return the seconds that are left until nothing was written for `seconds`; 0 when it is so. `stamp`: of the
        session, now.
        """
        age = self._clock() - stamp.newest_mtime_ns / 1e9
        if age < 0:
            known, since = self._seen.get(session, ("", 0.0))
            if known != stamp.digest:
                since = time.monotonic()
                keep_newest(self._seen, session, (stamp.digest, since))
            age = time.monotonic() - since
        return max(0.0, seconds - age)


def wait_until_quiet(store: Store, session: str, clock: Callable[[], float] = time.time) -> Stamp:
    """Wait until nobody has written to a session for `SETTLE_S`; return its stamp, which changes with the next write.

    ActiveError: it is still written to after two seconds.
    """
    deadline, quiet = time.monotonic() + _PATIENCE_S, Quiet(clock)
    while wait := quiet.wait(session, stamp := store.stamp(session), SETTLE_S):
        if time.monotonic() > deadline:
            raise ActiveError("The client is writing to this session: it is left alone until it is quiet.")
        time.sleep(wait)
    return stamp
