"""Find what the next prompt of a session would be refused for, before anybody prompts it. Writes nothing."""

from __future__ import annotations

from recoveryd.clients import SessionStatus, Store
from recoveryd.core import KINDS, Edit, Refused
from recoveryd.diagnose import Case, Context, surely_refused, undone_repair
from recoveryd.providers import turned_away

# What is known from the stored session alone. Whether a signature or an image is taken, only the provider knows.
FORESEEN = frozenset(kind for kind, about in KINDS.items() if about.foreseen)
_ADDING = frozenset({"cancel_tool", "split_step", "placeholder", "close_turn"})


def may_foresee(look: SessionStatus) -> bool:
    """Whether to look for what lies ahead of a session: its last turn ended, and nothing was asked since.

    Where it was refused, and it is not known for what, nothing is ahead: that is told, and left as it is. Nor is a
    subagent judged without what is sent of its parent.
    """
    refused = look.failure is not None and not turned_away(look.failure.error)
    return not (look.running or look.of_parent) and look.newest_user is None and not refused


def foresee(context: Context, store: Store, session_id: str) -> Case | None:
    """Look ahead: make the case of what the next prompt is refused for; None where that is not sure."""
    session, client = store.load(session_id), context.clients.of(store)
    failure = client.next_failure(session)
    found = surely_refused(client, store, session, failure) if failure is not None else None
    if failure is None or found is None:
        return None
    return Case.begin(store, failure, Refused(found.kind)).updated(ahead=True)


def foreseen_before(context: Context, case: Case) -> bool:
    """Whether what lies ahead of a session was repaired once, as every failure is, or the user took the session's last
    repair back.
    """
    failure, ledger = case.failure, context.ledger
    tried = ledger.handled(failure.store, failure.session, failure.message) is not None
    return tried or undone_repair(case.store, ledger, failure) is not None


def only_adds(edits: tuple[Edit, ...]) -> bool:
    """Whether edits that are made for what lies ahead only add to a session, and take nothing out of it: results,
    placeholders, the end of a turn.
    """
    return all(_ADDING.issuperset((edit.action, *edit.also)) and edit.after is not None for edit in edits)
