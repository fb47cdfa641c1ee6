"""Tell whether a turn that looks cut off may still run: a process of the client has the store, or writes were
recent.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from recoveryd.clients.opencode.processes import first_process_using, processes_using
from recoveryd.clients.opencode.prompting import folder_of
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.store import Store
from recoveryd.core import Message, Session

_REMEMBERED_S = 1.0  # one look at all processes does for many sessions
PROVIDER_S = (
    600.0  # a provider that says nothing is given up after 300 s (1.18.33, by its source; 1.1 if it is told to)
)


class RunningTurns:
    """Tells whether a turn of OpenCode's that was not ended may still be under way; `minutes` without a write are
    waited for.
    """

    def __init__(self, minutes: float, clock: Callable[[], float] = time.time) -> None:
        self._seconds = minutes * 60
        self._clock = clock
        self._looked: dict[str, tuple[float, str | None]] = {}

    def under_way(self, store: Store, session: str) -> str | None:
        """Tell why a turn of this session may still run, in words; None when it can't."""
        age = self._clock() - store.stamp(session).newest_mtime_ns / 1e9
        if age < self._seconds:
            return f"it was written to {max(age, 0) / 60:.0f} minutes ago, so its turn may be running"
        at, who = self._looked.get(store.id, (float("-inf"), None))
        if time.monotonic() - at > _REMEMBERED_S:
            who = first_process_using(store)
            self._looked[store.id] = time.monotonic(), who
        return f"{who} has its store, so its turn may be running" if who else None

    def at_work(self, store: Store, session: Session, server: OpencodeServer) -> str | None:
        """Tell why the client may be at work in a session, in words; None when it can't be.

        It can't where no answer is open: it stores one before it asks a provider. Nor where each process that has the
        store listens, and says that nothing runs. Else it may wait for a provider, `PROVIDER_S`; and a tool may run for
        as long as it likes.
        """
        opened = _open_answers(session)
        if not opened:
            return None
        age = self._clock() - store.stamp(session.id).newest_mtime_ns / 1e9
        if age >= PROVIDER_S and not any(message.parts for message in opened):
            return None
        folders = {session.directory, *(folder_of(message) for message in opened)}
        for who, pid in processes_using(store):
            if not pid or not server.idle(pid, session.id, folders):
                return f"{who} has its store and does not say that it is idle, so its turn may be running"
        return None


def _open_answers(session: Session) -> list[Message]:
    """List the answers that were neither ended nor refused, behind the newest one that was ended."""
    found = []
    for message in sorted(session.messages, key=lambda message: message.by_time, reverse=True):
        if message.role != "assistant" or message.error is not None:
            continue
        if message.completed:
            break
        found.append(message)
    return found
