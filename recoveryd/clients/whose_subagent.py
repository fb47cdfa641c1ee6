"""Whose subagent a session is, by what its store tells."""

from __future__ import annotations

from collections.abc import Iterator

from recoveryd.clients.store import About, Store
from recoveryd.core import RecoverydError

_DEEPEST = 16  # subagents of subagents


def lineage(store: Store, session_id: str) -> Iterator[tuple[str, About]]:
    """Go, by what a store tells, from a session to the one whose subagent it is, and so on up to the one that a person
    began.
    """
    for _ in range(_DEEPEST):
        about = store.about(session_id)
        yield session_id, about
        if about.parent is None:
            break
        session_id = about.parent


def root_session(store: Store, session_id: str) -> tuple[str, str]:
    """Return, by what a store tells, the session that a person began, of which this may be a subagent; its title."""
    titled = [(of, about.title) for of, about in lineage(store, session_id) if about.title.strip()]
    return titled[-1] if titled else (session_id, "")


def root_title(store: Store, session_id: str) -> str:
    """Return, by what a store tells, the title of the session that a person began, of which this one may be a
    subagent.
    """
    return root_session(store, session_id)[1]


def is_of_subagent(store: Store, session: str, *, unknown: bool) -> bool:
    """Whether another session asked this one; `unknown` where that can't be read now."""
    try:
        return store.about(session).parent is not None
    except RecoverydError:
        return unknown
