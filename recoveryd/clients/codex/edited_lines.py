"""The lines that edits of a thread stand for, before and after. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recoveryd.clients.codex import rollout_lines
from recoveryd.clients.codex.thread import LAST, META, place
from recoveryd.core import Change, Edit, Json, Part, Session, StoreError, UnknownKeyError

_KEY = re.compile(r"line/([0-9a-f-]{36})/(\d{13})")
_TIMES = ("time_to_first_token_ms", "duration_ms", "started_at", "completed_at", "rate_limits")
# An item of older versions, which the client passes over, and which its `migrate-rollouts` takes (0.169.0).
_NOTHING: Json = {"type": "ghost_snapshot"}


def edited_line_key(file: str, offset: int) -> str:
    """Make the key of an edited line of a rollout: the id of its file, and the byte that it begins at. The first file
    of a thread has the thread's id; one in which it goes on, once its user took turns back, has its own.
    """
    return f"line/{file}/{offset:013d}"


def split_key(text: str) -> tuple[str, int]:
    """Cut the key of an edited line of a rollout into the id of its file and the byte that it begins at. StoreError for
    a text that is none.
    """
    found = _KEY.fullmatch(text)
    if found is None:
        raise UnknownKeyError(f"{text!r} is no record of this store.")
    return found[1], int(found[2])


def in_file(change: Change, file: str) -> Change:
    """Return a change as that of the line of another file that begins at the same byte."""
    return replace(change, key=edited_line_key(file, split_key(change.key)[1]))


def changes(session: Session, edits: Sequence[Edit], file: str) -> list[Change]:
    """Make one change for each line of a rollout (the `file` of this id) that is edited, in its length. StoreError for
    what does not fit into it, and for no line of the thread.
    """
    stored = {part.id: part for message in session.messages for part in message.parts}
    messages = {message.id for message in session.messages}
    of_line: dict[int, list[tuple[int | None, Edit, Part]]] = {}
    for edit in {edit.record: edit for edit in edits}.values():
        part = stored.get(edit.part_id or "")
        if part is None and edit.after is None and edit.part_id and edit.message_id in messages:
            continue  # it is gone already
        if part is None or part.message_id != edit.message_id or not part.raw:
            raise StoreError(f"An edit of thread {session.id} names a record that is not there: {edit.record}.")
        offset, index = place(part.id)
        of_line.setdefault(offset, []).append((index, edit, part))
    made = [_change(session, file, offset, of_line[offset]) for offset in sorted(of_line)]
    return [change for change in made if change.before != change.after]


def _change(session: Session, file: str, offset: int, edits: Sequence[tuple[int | None, Edit, Part]]) -> Change:
    raw = edits[0][2].raw or b""
    if edits[0][2].type == META:
        return Change(edited_line_key(file, offset), raw, rollout_lines.tidied(raw))
    line = rollout_lines.parse(raw)
    if line is None:
        raise StoreError(f"The line at byte {offset:,} of thread {session.id} is no JSON object; it is left alone.")
    new = dict(line)
    for _, edit, part in edits:
        if part.type == LAST and edit.after is not None:
            new["ordinal"] = edit.after["ordinal"]
    items = {index: edit.after for index, edit, part in edits if part.type != LAST}
    if items:
        new["payload"] = _payload(rollout_lines.payload(line), items)
    written = raw if new == line else _within(raw, new)
    if written is None:
        raise StoreError(f"What is to be written over the line at byte {offset:,} of thread {session.id} is too long.")
    return Change(edited_line_key(file, offset), raw, written)


def _payload(old: Json, items: Mapping[int | None, Json | None]) -> Json:
    """Return what a line carries, with other items in the place of those at some places in it; None: of itself."""
    if None in items:
        return items[None] or _NOTHING
    history = list(old["replacement_history"])
    kept = [at for at, item in enumerate(history) if items.get(at, item) is not None]
    new = {**old, "replacement_history": [items.get(at, history[at]) for at in kept]}
    notes = old.get("replacement_history_metadata")
    if isinstance(notes, list):  # one for each item, or the client passes over the line
        new["replacement_history_metadata"] = [notes[at] for at in kept]
    return new


def _within(raw: bytes, line: Mapping[str, Any]) -> bytes | None:
    """Write a line in the length of another; what only times an event makes room where it is needed."""
    carried = dict(rollout_lines.payload(line))
    for field in (None, *_TIMES):
        if field is not None and line.get("type") == "event_msg":
            carried.pop(field, None)
        written = rollout_lines.in_length_of(raw, {**line, "payload": carried})
        if written is not None:
            return written
    return None
