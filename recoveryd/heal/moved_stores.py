"""Follow a store that was moved: what the ledger has of it goes by its path."""

from __future__ import annotations

import os
from collections.abc import Iterable

from recoveryd.clients import Store, is_store_of, is_there
from recoveryd.ledger import KnownStores, Ledger


def follow_moved(store: Store, ledger: Ledger) -> None:
    """Take over what is recorded of the sessions of `store` under a path that it had before.

    Such a path leads to the store, or to nothing any more while `store` is the very folder or file that was there.
    Another one is a copy: the disk of the store itself may only not be mounted now. Of a copy it is known what became
    of its failures, but what was repaired stays the store's own. For who is about to write. StoreError, and what the
    ledger raises.
    """
    known = KnownStores(ledger.file)
    mine, places = _identity(store), known.places()
    for before in known.ids():
        leads_here = os.path.realpath(before) == store.id
        if before == store.id or (os.path.lexists(before) and not leads_here):
            continue
        sessions = [session for session in known.sessions(before) if is_there(store, session)]
        if leads_here or (mine and places.get(before) == mine):
            known.move(before, store.id, sessions)
        else:
            known.learn(before, store.id, sessions)
    if mine and (places.get(store.id), known.clients().get(store.id)) != (mine, store.client):
        known.place(store.id, mine, store.client)


def find_store(stores: Iterable[Store], ledger: Ledger, store_id: str) -> Store | None:
    """Find the store of a recovery, also where it was moved since; None when it is not there. Writes nothing."""
    there = list(stores)
    found = next((store for store in there if is_store_of(store, store_id)), None)
    if found is not None or os.path.lexists(store_id):
        return found
    wanted = KnownStores(ledger.file).places().get(store_id)
    return next((store for store in there if wanted and _identity(store) == wanted), None)


def _identity(store: Store) -> str:
    """Return what stays when a folder or a file is moved on its disk, and no copy has; "" when it is not there."""
    try:
        found = store.root.stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"
