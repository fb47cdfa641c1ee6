"""Where in a session something was done, as a person would look for it: "turn 14, tool bash"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from recoveryd.core import Edit, Message, Part, Session, deeds, edited

_NAMES = {
    "reasoning": "thinking",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "text": "text",
    "file": "file",
    "image": "image",
    "document": "document",
    "container_upload": "file",
    "step-start": "answer",
}
_RESULT = "tool_result"
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_CALLS = ("tool", "tool_use", "server_tool_use", "mcp_tool_use")


def places(session: Session, edits: Sequence[Edit]) -> tuple[str, ...]:
    """Name the place of each deed of `edits`, in the order of `edits.deeds`.

    A turn is a prompt of the user and its answer, numbered as they are stored once `edits` are done.
    """
    after = edited(session, edits)
    turns = _turns(session) | _turns(after)
    messages = {message.id: message for message in (*session.messages, *after.messages)}
    within = _within(session, after)
    return tuple(
        _place(session, messages[edit.message_id], turns[edit.message_id], edit, within=edit.message_id in within)
        for edit in deeds(edits)
    )


def _within(session: Session, after: Session) -> frozenset[str]:
    """List the messages of `after` behind which a turn goes on: of what is stored already, no prompt comes next."""
    known, found, goes_on = {message.id for message in session.messages}, [], True
    for message in reversed(after.messages):
        if goes_on:
            found.append(message.id)
        if message.id in known:
            goes_on = not _is_prompt(message)
    return frozenset(found)


def _turns(session: Session) -> dict[str, int]:
    number, turns = 0, {}
    for message in session.messages:
        number += _is_prompt(message)
        turns[message.id] = number
    return turns


def _is_prompt(message: Message) -> bool:
    """Whether a user message is a prompt, and not what the client itself adds (as its store says, or by its parts: a
    compaction, or only synthetic text).
    """
    if message.role != "user" or message.data.get("added") is True:
        return False
    added = [part.type == "compaction" or (part.data or {}).get("synthetic") is True for part in message.parts]
    return not added or not all(added)


def _place(session: Session, message: Message, turn: int, edit: Edit, *, within: bool) -> str:
    if edit.action == "compact":
        return f"within turn {turn}" if within and turn else f"before turn {turn + 1}"
    if edit.action == "close_turn":
        return f"end of turn {turn}" if turn else "before turn 1"
    return f"{f'turn {turn}' if turn else 'before turn 1'}, {_name(session, message, edit)}"


def _name(session: Session, message: Message, edit: Edit) -> str:
    old = session.part(edit.part_id) if edit.part_id is not None else None
    if old is None and edit.action == "split_step":  # what is put in stands behind the call that it is about
        calls = [part for part in message.parts if part.type == "tool" and part.id < (edit.part_id or "")]
        old = calls[-1] if calls else None
    if old is None:
        return "prompt" if message.role == "user" else "answer"
    if old.data is None:
        return "unreadable part"
    if old.type.endswith(_RESULT):
        call = next((p for m in session.messages for p in m.parts if _calls(p, old.data)), None)
        return f"tool {tool_name((call.data if call else None) or {})}".rstrip()
    if old.type in _CALLS:
        return f"tool {tool_name(old.data)}".rstrip()
    if old.type == "file" and str(old.data.get("mime")).startswith("image/"):
        return "image"
    return _NAMES.get(old.type, "part")


def _calls(part: Part, result: Mapping[str, object]) -> bool:
    return part.type in _CALLS and (part.data or {}).get("id") == result.get("tool_use_id")


def tool_name(data: Mapping[str, object]) -> str:
    """Name a tool where it is told what was done to its call: the model's word, and not for ever. "" where it is no
    name: a model may write its whole call there, which is content.
    """
    name = data.get("tool", data.get("name"))
    return name[:40] if isinstance(name, str) and _NAME.fullmatch(name) else ""


def places_line(places: Sequence[str]) -> str:
    """Write the places of a recovery on one line: "turn 14, tool bash and 2 more places"; the end of a turn only where
    that is all.
    """
    named = list(dict.fromkeys(place for place in places if not place.startswith("end of"))) or list(places[:1])
    more = len(named) - 1
    rest = f" and {more} more place{'s' if more > 1 else ''}" if more > 0 else ""
    return f"{named[0]}{rest}" if named else ""
