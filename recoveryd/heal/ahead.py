"""Find what the next prompt of a session would be refused for, before anybody prompts it. Writes nothing."""

from __future__ import annotations

from recoveryd.clients import Client, SessionStatus, Store
from recoveryd.core import KINDS, Edit, Kind, Refused, Request, Session, Violation
from recoveryd.diagnose import Case, Context, undone_repair
from recoveryd.providers import NO_RULES, check_either_way, rules_for, turned_away

# What is known from the stored session alone. Whether a signature or an image is taken, only the provider knows.
FORESEEN = frozenset(kind for kind, about in KINDS.items() if about.foreseen)
_ADDING = frozenset({"cancel_tool", "split_step", "placeholder", "close_turn"})


def may_foresee(look: SessionStatus) -> bool:
    """Whether to look for what lies ahead of a session: its last turn ended, and nothing was asked since.

    Where it was refused, and it is not known for what, nothing is ahead: that is told, and left as it is.
    """
    refused = look.failure is not None and not turned_away(look.failure.error)
    return not look.running and look.newest_user is None and not refused


def foresee(context: Context, store: Store, session_id: str) -> Case | None:
    """Look ahead: make the case of what the next prompt is refused for under every way in which the client may send it.

    None where there is a way that is accepted, where the rules are not known, or where the client goes by what it has
    in memory: it would not read what is stored. And where somebody else may answer than the provider itself, by other
    rules, or with a proxy on the way that mends it: the client is led there, or what is wrong was sent before and
    answered.
    """
    from recoveryd.repair import LeftToClient  # late: only where it is asked for

    session, client = store.load(session_id), context.clients.of(store)
    failure = client.next_failure(session)
    if failure is None or client.reads_once or session.revert is not None:
        return None
    if not client.asks_its_maker(session, failure):
        return None
    wires = client.wires(store, failure)
    rules = rules_for(failure, wires)
    if rules is NO_RULES:
        return None
    provider, first, answered = LeftToClient(rules, client.heals), None, _answered(client, session)
    for request in (wire.build(session) for wire in wires):
        taken = _turn_of(request, answered)
        for found in check_either_way(provider, request):
            kind = _foreseen(found) if not request.unsendable else None
            if kind is None or any(violation.turn < taken for violation in found):
                return None
            first = first or kind
    return None if first is None else Case.begin(store, failure, Refused(first)).updated(ahead=True)


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


def _answered(client: Client, session: Session) -> str:
    """Return the id of the newest answer of a model: whatever was sent before it was taken. "" where there is none."""
    answers = (m for m in session.messages if m.role == "assistant" and m.completed and m.parts and m.error is None)
    newest = max((m for m in answers if not client.by_shell(m)), key=lambda message: message.by_time, default=None)
    return newest.id if newest is not None else ""


def _turn_of(request: Request, message: str) -> int:
    """Return the index of the first turn that holds something of a message; -1 where nothing of it is sent."""
    turns = (index for index, turn in enumerate(request.turns) if message in (origin for origin, _ in turn.origins))
    return next(turns, -1) if message else -1  # the next prompt has no id yet


def _foreseen(found: list[Violation]) -> Kind | None:
    return next((violation.kind for violation in found if violation.kind in FORESEEN), None)
