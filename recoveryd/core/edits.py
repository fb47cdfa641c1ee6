"""Apply edits in memory: the session as it would be stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from recoveryd.core.model import Edit, Json, Message, Part, Session

# Of such a record has several: each goes once.
_ONE_BY_ONE = frozenset({"take_out_media", "rename_document", "drop_field", "forget_tool"})


def edited(session: Session, edits: Iterable[Edit]) -> Session:
    """Return `session` with `edits` applied. Raises KeyError for an edit in a message that is neither there nor
    added.
    """
    messages = {message.id: message for message in session.messages}
    parts: dict[str, dict[str, Edit]] = {}
    for edit in edits:
        if edit.part_id is not None:
            parts.setdefault(edit.message_id, {})[edit.part_id] = edit
        elif edit.after is None:
            del messages[edit.message_id]
        else:
            old = messages.get(edit.message_id)
            messages[edit.message_id] = _message(edit.message_id, edit.after, old, messages.values())
    for message_id, of_message in parts.items():
        message = messages[message_id]
        parts_now = _parts(message.parts, of_message)
        messages[message_id] = replace(message, parts=parts_now)
    return replace(session, messages=tuple(sorted(messages.values(), key=lambda message: (message.at, message.id))))


def _message(message_id: str, data: Json, old: Message | None, others: Collection[Message]) -> Message:
    if old is not None:
        return replace(old, data=data, raw=None)
    new = Message(message_id, data)
    last = max((message.row for message in others), default=0)
    return replace(new, at=new.created, row=last and last + 1) if any(message.at for message in others) else new


def _parts(parts: Sequence[Part], edits: dict[str, Edit]) -> tuple[Part, ...]:
    kept = {part.id: part for part in parts}
    for part_id, edit in edits.items():
        if edit.after is None:
            kept.pop(part_id, None)
        else:
            old = kept.get(part_id)
            kept[part_id] = Part(part_id, edit.message_id, edit.after, old.raw if old is not None else None)
    return tuple(sorted(kept.values(), key=lambda part: part.id))


def merged(first: Sequence[Edit], then: Sequence[Edit], session: Session) -> tuple[Edit, ...]:
    """Join two sets of edits of `session` into one: one edit for each record, none that changes nothing.

    What `then` does to a record was made of what `first` made of it.
    """
    latest = {edit.record: edit for edit in first}
    for edit in then:
        before = latest.get(edit.record)
        latest[edit.record] = edit if before is None else _joined(before, edit)
    # To list the records takes longer than all else here.
    known = stored(session) if any(edit.after is None for edit in latest.values()) else frozenset()
    return tuple(edit for edit in latest.values() if edit.after is not None or edit.record in known)


def _joined(before: Edit, edit: Edit) -> Edit:
    """Tell of both edits of a record, unless it is gone; a companion's deed is told by another edit."""
    done = () if before.companion or edit.after is None else (*before.also, before.action)
    if not done:
        return edit
    now = () if edit.companion else (*edit.also, edit.action)
    more = [name for name in now if name in _ONE_BY_ONE or name not in done]
    *also, action = (*done, *more)
    return replace(edit, action=action, companion=False, also=tuple(also))


def repeated(edit: Edit, times: int) -> Edit:
    """Have an edit tell its deed so many times: two images of one record are two."""
    return replace(edit, also=(edit.action,) * (times - 1))


def deeds(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return an edit for each thing done: two parts of one deed (a closed turn, a new message) count once, two things
    that were done to one record twice.
    """
    return tuple(
        replace(edit, action=action, also=())
        for edit in edits
        if not edit.companion
        for action in (*edit.also, edit.action)
    )


def deed_names(edits: Sequence[Edit]) -> tuple[str, ...]:
    """Name what edits do: one name for each deed."""
    return tuple(edit.action for edit in deeds(edits))


def stored(session: Session) -> frozenset[tuple[str, str]]:
    """List the records that a session has before it is edited, as `Edit.record` names them."""
    records = {(message.id, "") for message in session.messages}
    return frozenset(records | {(part.message_id, part.id) for message in session.messages for part in message.parts})
