"""List the sessions that need their user: they are stuck, and nothing repairs them any more by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recoveryd.clients import Store
from recoveryd.core import Entry, Outcome, RecoverydError
from recoveryd.ledger import Ledger, Upkeep

_UNHEALED = (Outcome.REFUSED, Outcome.NOT_UNDERSTOOD, Outcome.CONFLICT, Outcome.GAVE_UP, Outcome.FAILED)


def needs_user(ledger: Ledger, stores: Iterable[Store]) -> Sequence[Entry]:
    """List the newest recovery of each such session, newest first: it did not heal, and no answer came since.

    Of a store that can't be read, or is not there, nothing is said.
    """
    by_id = {store.id: store for store in stores}
    return [entry for entry in Upkeep(ledger).newest(_UNHEALED) if _stuck(by_id.get(entry.store), entry)]


def _stuck(store: Store | None, entry: Entry) -> bool:
    if store is None:
        return False
    try:
        return store.has(entry.session) and store.look(entry.session).last_answer < entry.time * 1000
    except RecoverydError:
        return False
