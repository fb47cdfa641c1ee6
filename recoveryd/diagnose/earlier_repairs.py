"""Tell what was repaired in a session before, and whether it still holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from recoveryd.clients import Client, SessionStatus, Store, is_store_of
from recoveryd.core import (
    REFUSED,
    TAKEN_BACK,
    Diagnosis,
    Entry,
    Failure,
    Kind,
    Limit,
    Outcome,
    PastRecovery,
    RecoverydError,
    Session,
    UnknownKeyError,
    answered_by,
    kind_info,
)
from recoveryd.diagnose.context import Context
from recoveryd.diagnose.retry_policy import vain_since_success
from recoveryd.ledger import Ledger, Upkeep, digest
from recoveryd.providers import classify, size_of

_RECENT = 20  # recoveries of a session that are looked at


def standing_repair(store: Store, ledger: Ledger, found: Diagnosis) -> Entry | None:
    """Return the repair of what a session is stuck on, if it is still stored: the next prompt will be accepted.

    Known also when its images are gone, and of a store that was moved or copied: what is stored says it. A part that
    can't be sent now is never one that was repaired, and what a person had made shorter was not repaired of anything
    but a summary that was refused: its client asks for it no more.
    """
    if found.refused is None and found.code == TAKEN_BACK:
        own = stored_repair(store, ledger, found.failure, shortened=False)  # it may have been the only one
        return own or repaired_later(store, ledger, replace(found, refused=classify(found.failure.error)))
    if kind_info(found.kind).by_client:
        return None
    of_summary = found.failure.of_summary and (found.kind is not None or found.code == REFUSED)
    made = stored_repair(store, ledger, found.failure, shortened=kind_info(found.kind).shortened or of_summary)
    return repaired_later(store, ledger, found) if made is None and _of_size(found) else made


def _of_size(found: Diagnosis) -> bool:
    """Whether a session was refused for its tokens or bytes: what is stored now does not tell whether it would be."""
    by_bytes = found.refused is not None and (
        found.refused.over is Limit.REQUEST or size_of(found.failure.error).by_bytes
    )
    return kind_info(found.kind).shortened or (found.kind is Kind.MEDIA_REJECTED and by_bytes)


def stored_repair(store: Store, ledger: Ledger, failure: Failure, *, shortened: bool = True) -> Entry | None:
    """Return a repair of a failure that is still stored as it was written; None where there is none.

    `shortened`: a session that was made shorter counts, too.
    """
    made = ledger.repairs(failure.session, failure.message)
    found = (entry for entry in made if shortened or not kind_info(entry.kind).shortened)
    return next(
        (one for one in found if _made(store, one) and (_stands(store, ledger, one) or _moved(store, ledger, one))),
        None,
    )


def mended_before(store: Store, ledger: Ledger, failure: Failure) -> tuple[Kind, ...]:
    """List the kinds that repairs of a failure mended: what its error is about may stand, and the rest be written over
    by the client since.
    """
    made = (one for one in ledger.repairs(failure.session, failure.message) if is_store_of(store, one.store))
    counts = (Outcome.HEALED, Outcome.PENDING)
    return tuple(dict.fromkeys(kind for entry in made if entry.outcome in counts for kind in entry.kinds))


def all_stand(store: Store, ledger: Ledger, failure: Failure) -> bool:
    """Whether a failure was repaired, and all that was ever written for it is still stored: what is broken is new."""
    made = [entry for entry in ledger.repairs(failure.session, failure.message) if _made(store, entry)]
    return bool(made) and all(_stands(store, ledger, entry) for entry in made)


def _made(store: Store, entry: Entry) -> bool:
    """Whether a repair was ended whole. A copy of the store keeps what its user took back in the store itself; what a
    forced undo wrote is no repair there either.
    """
    elsewhere = not entry.overwritten and not is_store_of(store, entry.store)
    return entry.outcome is Outcome.HEALED or (entry.outcome is Outcome.UNDONE and elsewhere)


def _stands(store: Store, ledger: Ledger, entry: Entry) -> bool:
    """Whether all that a repair wrote is stored as it was written. In a store of another sort, to which its client
    moved the session, that is not known: no.
    """
    try:
        if _is_stored(store, ledger.left(entry.id)):
            return True
        made = store.located(ledger.changes(entry.id))  # the images are large: only where it does not stand as kept
        return _is_stored(store, {change.key: digest(change.after) for change in made})
    except UnknownKeyError:
        return False


def _is_stored(store: Store, left: Mapping[str, bytes | None]) -> bool:
    return bool(left) and [digest(now) for now in store.read_all([*left])] == [*left.values()]


def _moved(store: Store, ledger: Ledger, entry: Entry) -> bool:
    """Whether the client wrote a session anew since it was repaired, with the repair in it: what the failure names is
    not to be looked for there again.
    """
    if not store.keyed_by_place or entry.outcome is not Outcome.HEALED:
        return False
    return None in store.read_all([*ledger.left(entry.id)])


def as_refused(ledger: Ledger, look: SessionStatus) -> SessionStatus:
    """Return the look at a copy as one at any session where it holds what was refused in the session before: nothing
    was repaired, in whichever session, between that refusal and the copy.
    """
    failures = [failure for failure in (look.failure, *look.earlier) if failure is not None]
    if not (look.copied_at and failures) or Upkeep(ledger).wrote(min(one.time for one in failures), look.copied_at):
        return look
    return replace(look, kept=None, copied=False)


def unread_repair(context: Context, store: Store, found: Diagnosis) -> tuple[Entry, str] | None:
    """Return the repair before a failure, and what its user has to do, where the client has not read it since.

    Such a failure tells nothing of what is stored: the client sent what it had in memory, or had read before. One of
    another kind than the repair's tells, once a client that has all in memory has ended: that was not repaired.
    """
    failure = found.failure
    newest = _repair_before(context.ledger, store, failure)
    if newest is None:
        return None
    client = context.clients.of(store)
    other = is_besides(client, found, newest)
    late = client.unread(store, failure.session, newest.time, None if other else failure)
    besides = "; what else it was refused for is looked at then" if other else ""
    return (newest, f"{late}{besides}") if late else None


def is_besides(client: Client, found: Diagnosis, repair: Entry) -> bool:
    """Whether a failure can't be of the fault of a repair, and tells of what is stored once its client has ended."""
    return client.reads_once and (repair.kind is None or found.kind not in answered_by(repair))


def holding_repair(context: Context, store: Store, found: Diagnosis) -> tuple[Entry, str] | None:
    """Return the repair because of which nothing is to be done about a diagnosis now, and what its user has to do
    first, as a clause ("": only to prompt): it is stored, or the client has not read it yet.
    """
    standing = standing_repair(store, context.ledger, found)
    if standing is None:
        return unread_repair(context, store, found)
    return standing, context.clients.of(store).unread(store, found.failure.session, standing.time)


def maybe_unread(ledger: Ledger, client: Client, store: Store, session: Session, failure: Failure) -> Entry | None:
    """Return the repair before a failure, where nothing was answered since and the client may have built the request
    from what it had in memory: the error may speak of what is stored no more.
    """
    newest = _repair_before(ledger, store, failure)
    if newest is None or store.look(session.id).last_answer > newest.time * 1000:
        return None
    return None if client.has_read(store, session, failure, newest.time) else newest


def repaired_later(store: Store, ledger: Ledger, found: Diagnosis) -> Entry | None:
    """Return the newest repair of a session of what a failure may speak of, if it is still stored, and was made for
    another failure after this one, which tells of what was stored before it (the other's turn was taken back, say). Not
    where it left more to be sent than this refusal's limit. In whichever store: a copy has what was repaired before.
    """
    failure, limit = found.failure, size_of(found.failure.error).limit
    made = (one for one in ledger.history(_RECENT, failure.session) if one.edits and _made(store, one))
    others = (one for one in made if one.message != failure.message)
    alike = (one for one in others if _may_answer(one, found) and (not limit or one.sent <= limit))
    return next((one for one in alike if _answers(store, ledger, one, failure)), None)


def _may_answer(repair: Entry, found: Diagnosis) -> bool:
    """Whether what was repaired may be what a failure speaks of; words of the client's own tell nothing of that."""
    if repair.kind is None:
        return False
    own = found.kind is None and kind_info(repair.kind).by_client and not found.failure.error.answered
    return own or found.kind in answered_by(repair)


def _answers(store: Store, ledger: Ledger, repair: Entry, failure: Failure) -> bool:
    """Whether a repair was made after a failure, and is still stored: the failure tells of what was stored before. By
    the clock, and by the order: behind what was repaired nothing stands that failed before.
    """
    if _came_since(store, failure, repair.time * 1000):
        return False
    try:
        session = store.load(failure.session)
    except RecoverydError:
        return _stands(store, ledger, repair)
    if _is_behind(session, failure, repair.message):
        return False
    stands = _stands(store, ledger, repair) or _is_left(store, ledger, repair, session)
    return stands and not _is_taken_back(store, ledger, repair, session)


def _is_behind(session: Session, failure: Failure, message: str) -> bool:
    """Whether what failed is stored behind a message."""
    order = [one.id for one in session.messages]
    return message in order and failure.message in order[order.index(message) :]


def _is_taken_back(store: Store, ledger: Ledger, repair: Entry, session: Session) -> bool:
    """Whether all that a repair edited is stored, but of turns that its user took back, which are not sent any more:
    what is sent is as it was before it. Of one whose originals are gone that is not known: no.
    """
    revert = session.revert or {}
    if "messageID" not in revert or revert.get("partID"):
        return False
    try:
        made = store.located(ledger.changes(repair.id))
        sent = {message.id for message in session.until(str(revert["messageID"])).messages}
        return bool(made) and len(store.content.homeless(made, sent)) == len(made)
    except RecoverydError:
        return False


def _is_left(store: Store, ledger: Ledger, repair: Entry, session: Session) -> bool:
    """Whether all of a repair stands but for what went with the messages that it edited. What it had added may not be
    gone: without that the session is as it was.
    """
    try:
        made = store.located(ledger.changes(repair.id))
        gone = store.content.homeless(made, {message.id for message in session.messages})
        return _is_stored(store, {change.key: digest(change.after) for change in made if change.key not in gone})
    except RecoverydError:
        return False


def _repair_before(ledger: Ledger, store: Store, failure: Failure) -> Entry | None:
    """Return the newest repair of a session, if the failure is another one, and came after it."""
    newest = _newest_repair(ledger, store, failure)
    return newest if newest is not None and _came_since(store, failure, newest.time * 1000) else None


def _newest_repair(ledger: Ledger, store: Store, failure: Failure) -> Entry | None:
    """Return the newest repair of a session; None where it is that of this failure."""
    newest = next(_repairs(ledger, store, failure), None)
    return newest if newest is not None and newest.message != failure.message else None


def _repairs(ledger: Ledger, store: Store, failure: Failure) -> Iterator[Entry]:
    """Go through the repairs of the session of a failure, newest first."""
    made = (entry for entry in ledger.history(_RECENT, failure.session) if is_store_of(store, entry.store))
    return (entry for entry in made if entry.outcome is Outcome.HEALED)


def _came_since(store: Store, failure: Failure, ms: float) -> bool:
    """Whether a failure came after a moment: its message may be stored, and its time taken, long before. Of a session
    that can't be read its time alone tells.
    """
    if failure.time >= ms:
        return True
    try:
        failed = store.load(failure.session).message(failure.message)
    except RecoverydError:
        return False
    return failed is not None and failed.completed >= ms


def vain_repairs(context: Context, store: Store, failure: Failure, answered: int) -> list[PastRecovery]:
    """List the earlier repairs of a session that were in vain, as the ledger has them of the store of the failure.
    `answered`: its `SessionStatus.last_answer`.
    """
    made = context.ledger.tries(failure.store, failure.session, answered, failure.message)
    return vain_since_success(store.load(failure.session), made, context.clients.of(store)) if made else []


def undone_repair(store: Store, ledger: Ledger, failure: Failure) -> PastRecovery | None:
    """Return the newest repair of a session, if the user took it back and no prompt was answered since."""
    return ledger.taken_back(store.id, failure.session, store.look(failure.session).last_answer, failure.message)


def is_put_back(context: Context, store: Store, session: Session, undone: PastRecovery) -> bool:
    """Whether the next request of a session has what the undo of its repair put back, or the message that this took
    something out of again.

    Where it still has what was refused, a compaction may have taken the place of what was put back; where it has not,
    its turn was taken back. Of one that was made shorter what is stored tells nothing: nobody need have refused it.
    """
    entry, failed = context.ledger.find(undone.recovery), session.message(undone.message)
    shortened = entry is not None and kind_info(entry.kind).shortened
    if entry is None or (shortened and failed is None):
        return failed is not None
    changes = context.ledger.changes(entry.id)
    originals = {change.before for change in changes if change.before is not None}
    meant = {m.id for m in session.messages if m.raw in originals or any(part.raw in originals for part in m.parts)}
    if not meant and failed is None:
        added = [replace(c, before=c.after) for c in changes if c.before is None and store.content.is_part(c.key)]
        return len(store.content.homeless(added, {message.id for message in session.messages})) < len(added)
    if not meant and (shortened or not originals):
        meant = {message.id for message in session.messages[: session.messages.index(failed)]}
    return bool(meant) and not meant.isdisjoint(_next_sent(context, store, session))


def _next_sent(context: Context, store: Store, session: Session) -> Collection[str]:
    """List the messages that the next request of a session is made of, in any way in which its client may send it; all
    where no way is known.
    """
    client = context.clients.of(store)
    made = client.next_failure(session)
    wires = client.wires(store, made) if made is not None else ()
    if not wires:
        return {message.id for message in session.messages}
    requests = [wire.stored(session) for wire in wires]
    unsendable = {part.message_id for request in requests for part in request.unsendable}
    return unsendable | {origin for request in requests for turn in request.turns for origin, _ in turn.origins}
