"""From edits of blocks to lines of a transcript, before and after. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from recoveryd.clients.claude_code.attachment import put_words
from recoveryd.clients.claude_code.transcript import parse, part_id, place_of
from recoveryd.core import Change, Edit, Message, Session, StoreError, UnknownKeyError

MARK = "recoveryd"  # beside the message in its line: a block takes no field that the provider does not know
_SURROGATE = re.compile("[\ud800-\udfff]")


def changes(session: Session, edits: Sequence[Edit], file: str) -> list[Change]:
    """Make one change for each line of a transcript that is edited. What changes nothing is left out. StoreError: an
    edit of a line that is not there.
    """
    messages = {message.id: message for message in session.messages}
    of_line: dict[str, dict[str, Edit]] = {}
    for edit in edits:
        if edit.message_id not in messages or edit.part_id is None:
            raise StoreError(f"An edit of session {session.id} names a line that is not there: {edit.record}.")
        of_line.setdefault(edit.message_id, {})[edit.part_id] = edit
    found = (_change(messages[uuid], of_parts, file) for uuid, of_parts in of_line.items())
    return [change for change in found if change.before != change.after]


def edited_line_key(file: str, uuid: str) -> str:
    """Make the key by which the ledger names an edited line of a transcript."""
    return f"{file}#{uuid}"


def split_key(name: str) -> tuple[tuple[str, ...], str]:
    """Cut the key of an edited line of a transcript: the file's names below `projects`, and the line's id. StoreError
    for what is no key.
    """
    file, mark, uuid = name.partition("#")
    if not mark or not uuid:
        raise UnknownKeyError(f"{name!r} is no record of this store.")
    return tuple(file.split("/")), uuid


def _change(message: Message, edits: Mapping[str, Edit], file: str) -> Change:
    line = parse(message.raw or b"")
    if line is None:
        raise StoreError(f"Line {message.id} is no JSON any more.")
    known = {part.id for part in message.parts}
    unknown = {name for name, edit in edits.items() if edit.after is not None} - known
    if unknown:
        raise StoreError(f"An edit names a block that is not there: {min(unknown)}.")
    told = [edit.after[MARK] for edit in edits.values() if edit.after is not None and MARK in edit.after]
    if not (_with_words if line.get("type") == "attachment" else _with_blocks)(line, message, edits):
        return Change(edited_line_key(file, message.id), message.raw, message.raw)
    if told:
        line[MARK] = told[-1]
    return Change(edited_line_key(file, message.id), message.raw, _dump(line))


def _with_blocks(line: dict[str, Any], message: Message, edits: Mapping[str, Edit]) -> bool:
    """Put the blocks into a line of the user's or the model's; tell whether that changes anything."""
    holder: dict[str, Any] = line if line.get("type") == "system" else line["message"]
    plain = isinstance(holder.get("content"), str)
    blocks = [{"type": "text", "text": holder["content"]}] if plain else list(holder["content"])
    kept: list[Any] = []
    for index, block in enumerate(blocks):
        edit = edits.get(part_id(message.id, index))
        if edit is None:
            kept.append(block)
        elif edit.after is not None:
            kept.append({name: value for name, value in edit.after.items() if name != MARK})
    holder["content"] = kept[0]["text"] if plain and kept and set(kept[0]) == {"type", "text"} else kept
    return json.dumps(kept, sort_keys=True, default=dict) != json.dumps(blocks, sort_keys=True)


def _with_words(line: dict[str, Any], message: Message, edits: Mapping[str, Edit]) -> bool:
    """Put words in the place of images that were attached: nothing else can stand there, and they alone are sent."""
    told = {name: edit.after["text"] for name, edit in edits.items() if edit.after and "text" in edit.after}
    words = {place_of(name): text for name, text in told.items()}
    if len(words) != len(edits):
        raise StoreError(f"An edit of what is attached in line {message.id} puts no words in the place of an image.")
    put_words(line["attachment"], words)
    return bool(words)


def _dump(line: Mapping[str, Any]) -> bytes:
    """Write JSON as the client does, on one line; a lone surrogate becomes an escape."""
    try:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=dict, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StoreError(f"This can't be written as JSON: {error}") from error
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
