"""What OpenCode's two stores share: parse and write records, weigh them, match edits with records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recoveryd.clients import javascript
from recoveryd.core import Edit, Json, Message, Part, Session, StoreError
from recoveryd.disk import safe_name

TITLE = "OpenCode"  # what people call it
# Release builds (latest, beta, prod) use `opencode.db`, an older beta its own; `local` is a build from source, `stable`
# that of Nix. A channel may have any name, so others have to be configured.
CHANNELS = ("beta", "canary", "dev", "local", "next", "nightly", "preview", "prod", "snapshot", "stable")
MAX_RECORD = 256 * 1024 * 1024  # weight
MAX_SESSION = 256 * 1024 * 1024  # weight of all its records
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(raw: bytes, what: str = "A record") -> Json | None:
    """Parse a record as OpenCode reads it; None when it is no JSON object to the client.

    Broken UTF-8 becomes U+FFFD there, so it does here; NaN is no JSON there. StoreError: it is nested too deeply, or
    holds too much.
    """
    data = _value(raw, what)
    return data if isinstance(data, dict) else None


def parse_part(raw: bytes, what: str, *, null: Json | None) -> Json | None:
    """Read a record of OpenCode's as `parse` does, but other JSON is a part that says nothing: the client passes over
    it. `null`: what a null is.
    """
    data = _value(raw, what)
    if data is None:
        return null
    return None if data is _BROKEN else data if isinstance(data, dict) else {}


_BROKEN = object()


def _value(raw: bytes, what: str) -> Any:
    if len(raw) > MAX_RECORD // 200 and javascript.weight_in_memory(raw) > MAX_RECORD:
        raise StoreError(f"{what} holds too many values to be read.")
    try:
        return javascript.parse_json(raw)
    except RecursionError:
        raise StoreError(f"{what} is nested too deeply to be read.") from None
    except ValueError:
        return _BROKEN


def dump(data: Json, *, compact: bool = False) -> bytes:
    """Write a record as OpenCode does: `JSON.stringify(x, null, 2)`, where a lone surrogate becomes an escape.

    `compact` is how it writes into a database: without any white space.
    """
    layout: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 2}
    try:
        text = json.dumps(data, ensure_ascii=False, default=_plain, allow_nan=False, **layout)
    except (TypeError, ValueError) as error:
        raise StoreError(f"This can't be written as JSON: {error}") from error
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} can't be stored")


def records_of_edits(session: Session, edits: Iterable[Edit]) -> Iterator[tuple[Edit, Message | Part | None]]:
    """Pair each edit with the record of OpenCode's that it replaces; the last one counts where two mean the same
    record.

    StoreError: an edit in a message that neither is there nor comes with them, and an id that can't be one.
    """
    messages = {message.id: message for message in session.messages}
    parts = {part.id: part for message in session.messages for part in message.parts}
    latest = {edit.record: edit for edit in edits}
    new = {edit.message_id for edit in latest.values() if edit.part_id is None and edit.after is not None}
    for edit in latest.values():
        if not safe_name(edit.message_id) or not (edit.part_id is None or safe_name(edit.part_id)):
            raise StoreError(f"An edit of session {session.id} names an id that can't be one: {edit.record}.")
        stored = messages.get(edit.message_id) if edit.part_id is None else parts.get(edit.part_id)
        elsewhere = isinstance(stored, Part) and stored.message_id != edit.message_id
        if elsewhere or edit.message_id not in messages.keys() | new:
            raise StoreError(f"An edit of session {session.id} names a record that is not there: {edit.record}.")
        yield edit, stored
