"""Find what the next prompt of a session would be refused for, before anybody prompts it. Writes nothing."""

from __future__ import annotations

from recoveryd.clients import Look, Store
from recoveryd.core import KINDS, Claims, Edit, Kind, Refused, Violation
from recoveryd.diagnose import Case, Context
from recoveryd.providers import NO_RULES, rules_for
from recoveryd.repair import LeftToClient

# What is known from the stored session alone. Whether a signature or an image is taken, only the provider knows.
FORESEEN = frozenset(kind for kind, about in KINDS.items() if about.foreseen)
_ADDING = frozenset({"cancel_tool", "split_step", "placeholder", "close_turn"})


def ended(look: Look) -> bool:
    """Whether the last turn of a session ended, and nothing was asked since."""
    return not look.running and look.newest_user is None


def foresee(context: Context, store: Store, session_id: str) -> Case | None:
    """Make the case of what the next prompt is refused for under every way in which the client may send it.

    None where there is a way that is accepted, where the rules are not known, or where the client goes by what it has
    in memory: it would not read what is stored.
    """
    session, client = store.load(session_id), context.clients.of(store)
    failure = client.next_failure(session)
    if failure is None or client.reads_once:
        return None
    wires = client.wires(store, failure)
    rules = rules_for(failure, wires)
    if rules is NO_RULES:
        return None
    provider, first = LeftToClient(rules, client.heals), None
    for request in (wire.build(session) for wire in wires):
        for thinking in (True, False):
            found = provider.check(request, Claims(thinking=frozenset({thinking})))
            kind = _foreseen(found) if not request.unsendable else None
            if kind is None:
                return None
            first = first or kind
    return None if first is None else Case.begin(store, failure, Refused(first)).updated(ahead=True)


def only_adds(edits: tuple[Edit, ...]) -> bool:
    """Whether edits add to a session, and take nothing out of it: results, placeholders, the end of a turn."""
    return all(edit.action in _ADDING and edit.after is not None for edit in edits)


def _foreseen(found: list[Violation]) -> Kind | None:
    return next((violation.kind for violation in found if violation.kind in FORESEEN), None)
