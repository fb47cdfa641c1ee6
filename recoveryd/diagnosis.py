"""What a session is stuck on, for a person who asks: also what the daemon leaves alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from recoveryd.classify import classify
from recoveryd.client import Client
from recoveryd.crash import provider_spoke
from recoveryd.forms import forms_of, goes_by_ids
from recoveryd.holders import Holders
from recoveryd.model import Failure, Json
from recoveryd.silent import Silence, cut_off, renumbered, unanswered, unsendable
from recoveryd.stores.base import Look, Store
from recoveryd.wrapped import tells_old


class Diagnosis:
    """Looks at sessions and writes nothing. Errors of the store pass through."""

    def __init__(self, client: Client, holders: Holders, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._holders = holders
        self._clock = clock

    def of(self, store: Store, session: str) -> Silence | None:
        """What keeps a session from going on; None when nothing does, or what does is no business of ours."""
        look = store.look(session)
        failure = look.failure
        kind = classify(failure.error) if failure is not None else None
        if failure is not None and kind is not None:
            return Silence(failure, kind, _recorded(failure))
        if look.running and not look.silent:
            return None if self._holders.under_way(store, session) else cut_off(store.load(session))
        spoke = failure is not None and provider_spoke(failure)
        if look.running or (not spoke and (failure is not None or look.newest_user is not None)):
            return self._silent(store, session, look)
        return self._renumbered(store, session)

    def _silent(self, store: Store, session: str, look: Look) -> Silence | None:
        """Of a prompt that no provider is known to have answered or refused."""
        forms = forms_of(store, self._client)
        found = None if look.running else self._renumbered(store, session)
        if found is not None and (found.ignored or look.failure is None):
            return found
        loaded = store.load(session)
        found = unsendable(loaded, look.failure, forms) or found
        if found is not None or look.failure is not None:
            return found
        if look.running and self._holders.under_way(store, session):
            return None
        return unanswered(loaded, forms)

    def _renumbered(self, store: Store, session: str) -> Silence | None:
        """Only sessions that have an old id are read."""
        now = int(self._clock() * 1000)
        if not tells_old(store.greatest_id(session), now) or not goes_by_ids(store, self._client):
            return None
        return renumbered(store.load(session), now)


def _recorded(failure: Failure) -> Json:
    """What of an error tells without its words."""
    data = failure.error.get("data")
    status = data.get("statusCode") if isinstance(data, Mapping) else None
    return {"message": failure.message, "error": failure.error.get("name"), "status": status}
