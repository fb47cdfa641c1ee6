"""A store that was moved is the same store: what the ledger has of it goes by its path, and follows it."""

from __future__ import annotations

import os

from recoveryd.clients.base import Store
from recoveryd.ledger.ledger import Ledger


def follow(store: Store, ledger: Ledger) -> None:
    """Bring along what is recorded of the sessions of `store` under a path that it had before.

    Such a path leads to the store, or to nothing any more; the ids of sessions are unique. Where something is still
    there, that is another store, maybe a copy. StoreError, and what the ledger raises.
    """
    for before in ledger.stores():
        gone = not os.path.lexists(before)
        if before != store.id and (gone or os.path.realpath(before) == store.id):
            ledger.move(
                before, store.id, [session for session in ledger.sessions(before) if store.greatest_id(session)]
            )
