"""Which store has a session, and what of the stores can't tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from recoveryd.clients.find import Clients
from recoveryd.clients.store import About, Store, is_abandoned, is_hidden
from recoveryd.core import NotFoundError, RecoverydError


def look_up(
    clients: Clients, stores: Sequence[Store], session_id: str
) -> tuple[list[Store], dict[str, RecoverydError]]:
    """Look a session up for who named it: `stores_having`, and where none has it also what is never looked into."""
    found, unread = stores_having(stores, session_id)
    return found, unread if found else passed_over(clients, stores) | unread


def passed_over(clients: Clients, stores: Sequence[Store]) -> dict[str, RecoverydError]:
    """Tell what is never looked into, by the ids of the stores that it is in."""
    return {store.id: error for store in stores if (error := clients.of(store).passed_over(store, stores))}


def not_found(
    stores: Iterable[Store], session_id: str, unread: Iterable[object], hint: str = "", *, of: str = "", nor: str = ""
) -> NotFoundError:
    """Make the error for a session that none of these stores has, or one has without a message. `unread`: why some
    could not be asked; `hint`: what its user may do; `of`: of which client they are (" of Codex"), if not all were;
    `nor`: what else is not there.
    """
    if is_empty(stores, session_id):
        return NotFoundError(f"Session {session_id} has no message yet.")
    why = " ".join(f"(Not looked into: {problem})" for problem in unread)
    asked = " that could be looked into" if why else ""
    return NotFoundError(f"There is no session {session_id} in any store{of}{asked}{nor}. {why}".strip(), hint)


def stores_having(stores: Iterable[Store], session_id: str) -> tuple[list[Store], dict[str, RecoverydError]]:
    """List those of some stores that have a session, and why others could not be asked, by their ids. A dead one only
    as the last.
    """
    found: list[Store] = []
    unread: dict[str, RecoverydError] = {}
    for store in stores:
        try:
            if (store.exists() or is_hidden(store)) and store.has(session_id):
                found.append(store)
        except RecoverydError as error:
            unread[store.id] = error
    return [store for store in found if not is_abandoned(store)] or found, unread


def is_empty(stores: Iterable[Store], session_id: str) -> bool:
    """Whether one of some stores knows a session and has no message of it, as can be told: nobody prompted it yet."""
    for store in stores:
        with suppress(RecoverydError):
            if not store.has(session_id) and store.about(session_id) != About():
                return True
    return False
