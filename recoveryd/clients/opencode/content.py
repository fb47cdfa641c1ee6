"""Read OpenCode's records, given images of them: a file's JSON, or a row as JSON of its columns. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from recoveryd.clients.json_leaves import leaves
from recoveryd.core import Change, Entry, Json, NotFoundError, RefusedError, json_of, kind_info

# Keys of a record, and of a tool's state, whose values name or place it: what those lose, nobody wrote.
_FRAME = frozenset({"id", "sessionID", "messageID", "callID", "type", "tool", "time", "role", "cost", "tokens"})
_FRAME |= {"parentID", "tail_start_id", "revert"}  # name other records; nothing but ids is ever changed in them
_STATE_FRAME = frozenset({"status", "time"})
_LONG = 64  # characters from which on a text is compared by its digest: a session's texts may fill the memory

quoting_titles = False  # the client has a model make one

Value = str | float


def is_part(key: str) -> bool:
    """Whether the record of OpenCode's of this key is a part; else it is a message, or what a session says about
    itself.
    """
    return key.startswith("part/")


def part_at(key: str, image: bytes) -> tuple[str, str] | None:
    """Return the ids of message and part that a record of OpenCode's is; None where it is no part."""
    return (_message_of(key, image), _name(key)) if is_part(key) else None


def homeless(changes: Sequence[Change], messages: Collection[str]) -> Collection[str]:
    """List the keys of the changes whose before-image is a part of a message of OpenCode's that is not among
    `messages`, nor comes back with them. Nothing can hold it: a row would have no message. And of those that edited a
    message, or gave it another id, which is not among them: without its prompt it says what was not, and its user took
    it back. What was taken back before the recovery, by a revert that comes back, comes back with that.
    """
    of_messages = [change for change in changes if not is_part(change.key)]
    staged = any(change.key.startswith("session/") for change in of_messages)
    became = {_apart_from_ids(c.after): _name(c.key) for c in of_messages if c.before is None and c.after is not None}

    def is_deleted(change: Change, before: bytes) -> bool:
        now = _name(change.key) if change.after is not None else became.get(_apart_from_ids(before))
        return not staged and now is not None and now not in messages

    deleted = {c.key for c in of_messages if c.before is not None and is_deleted(c, c.before)}
    back = {_name(c.key) for c in of_messages if c.before is not None and c.key not in deleted}
    of = {c.key: _message_of(c.key, c.before) for c in changes if c.before is not None and is_part(c.key)}
    return deleted | {key for key, message in of.items() if message not in messages and message not in back}


def _apart_from_ids(image: bytes) -> str:
    """Return what a message says by which it is known under another id."""
    return json.dumps({key: value for key, value in (said(image) or {}).items() if key not in ("id", "parentID")})


def _message_of(key: str, image: bytes) -> str:
    """Return the id of a part's message: a file lies in a folder of that name, a row names it, be its text broken."""
    folder = key.split("/")[1:-1]
    row = None if folder else json_of(image.decode("utf-8", "surrogateescape"))
    return folder[-1] if folder else str(row.get("message_id")) if isinstance(row, dict) else ""


def _name(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(".json")


def said(image: bytes) -> Json | None:
    """Read from its image what a record of OpenCode's says: the JSON object of a file, or that in a row's column
    `data`; None when that is none.
    """
    data = json_of(image)
    column = _column(data)
    if column is not None:
        data = json_of(column)
    return data if isinstance(data, dict) else None


def shown(image: bytes) -> Any:
    """Read from its image a record of OpenCode's as JSON for people: a row with what its column `data` says, not as one
    long text. None: no JSON.
    """
    data = json_of(image)
    column = _column(data)
    inner = None if column is None else json_of(column)
    return data if inner is None else {**data, "data": inner}


def error_names() -> Collection[str]:
    """List the names of errors that may stand in a record of OpenCode's, for a bug report."""
    from recoveryd.clients.opencode import record_shape

    return record_shape.ERROR_NAMES


def part_shape(data: Json, call: Callable[[str], str]) -> dict[str, Any]:
    """Answer for a record's part with its shape for a bug report (`record_shape`)."""
    from recoveryd.clients.opencode import record_shape

    return record_shape.part_shape(data, call)


def message_shape(data: Json) -> dict[str, Any]:
    """Answer for a record's message with the shape of what it says beside its role and its parts (`record_shape`)."""
    from recoveryd.clients.opencode import record_shape

    return record_shape.message_shape(data)


def sole(changes: Sequence[Change]) -> bool:
    """Whether OpenCode's records had content before a recovery that none has after it.

    Content is each text and number but what frames a part (its ids, type, status and times); of a record that is no
    JSON object, the whole. What moves is one change that takes it away and one that adds it, so all are seen together.
    A record that comes along unchanged is in the way of something else: the client is about to take it away.
    """
    if any(change.before is not None and change.before == change.after for change in changes):
        return True
    after = [change.after for change in changes if change.after is not None]
    whole, kept = set(after), {_mark(value) for image in after for value in _content(image) or ()}
    lost: list[Value] = []
    for before in (change.before for change in changes if change.before is not None):
        content = _content(before)
        if content is None and before.strip() and before not in whole:
            return True
        lost += (value for value in content or () if _mark(value) not in kept)
    texts = [value for value in lost if isinstance(value, str)]
    return len(texts) < len(lost) or bool(_not_within(texts, after))


def undo_obstacle(entry: Entry, changes: Sequence[Change], revert: Callable[[], Json | None]) -> RefusedError | None:
    """Tell from OpenCode's records why an undo must wait: a revert was staged since, to an id that would go.

    OpenCode 1.2 then deletes all behind it (seen).

    One that was staged before is among the changes, and goes back with them. `revert` reads what the session has staged
    now.
    """
    gone = {_name(change.key) for change in changes if change.before is None}
    if not gone or any(change.key.startswith("session/") for change in changes):
        return None
    with suppress(NotFoundError):
        staged = revert() or {}
        if not gone.isdisjoint(str(staged.get(key)) for key in ("messageID", "partID")):
            becomes = "get another id" if kind_info(entry.kind).new_ids else "be taken away"
            return RefusedError(
                f"A revert was staged in the session since {entry.id}, to a message that would {becomes}.",
                "Take the revert back (/redo) or prompt the session, and undo then.",
            )
    return None


def _column(data: object) -> str | None:
    """Return the column of a row, given its image as JSON, that holds what the row says; None for a file's image."""
    column = data.get("data") if isinstance(data, dict) and "session_id" in data else None
    return column if isinstance(column, str) else None


def _content(image: bytes) -> Iterator[Value] | None:
    """Go through the content of a record; None when it is no JSON object."""
    data = said(image)
    if data is None:
        return None
    inner = [value for key, value in data.items() if key not in _FRAME and key != "state"]
    state = data.get("state")
    inner += [v for k, v in state.items() if k not in _STATE_FRAME] if isinstance(state, dict) else [state]
    return leaves(inner)


def _mark(value: Value) -> Value | bytes:
    """Return what stands for a value when it is compared."""
    if not isinstance(value, str) or len(value) < _LONG:
        return value
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()


def _not_within(texts: list[str], images: Iterable[bytes]) -> list[str]:
    """List the texts that are a piece of no text in the images."""
    for image in images:
        if not texts:
            break
        held = [value for value in _content(image) or () if isinstance(value, str)]
        texts = [text for text in texts if not any(text in value for value in held)]
    return texts
