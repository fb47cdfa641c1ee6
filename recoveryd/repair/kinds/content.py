"""Messages and texts with nothing in them."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core.model import Edit, Message, Part
from recoveryd.core.violation import Violation
from recoveryd.repair.bench import Bench

NO_OUTPUT = "[no output]"


def empty(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """A blank text beside content is set aside, one that is all there is becomes the placeholder."""
    block = violation.block
    if block is None:
        return _empty_turn(bench, violation)
    if not block.part_id:
        return ()
    part = bench.part(block.part_id)
    if block.type == "tool_result":
        return _blank_output(bench, part)
    if part.type != "text":
        return ()
    aside = (bench.set_aside(part, "set_aside_blank"),)
    words = (bench.replace(part, {"text": bench.settings.placeholder}, "placeholder"),)
    others = [b for b in bench.wire.blocks() if b.message_id == part.message_id and b.part_id != part.id]
    return (aside, words) if others else (words, aside)


def _empty_turn(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """One placeholder behind any of the stored steps that the empty message is made of; the last of them is best."""
    words = [bench.text(bench.settings.placeholder, assistant=True)]
    origins = bench.wire.turns[violation.turn].origins
    return tuple(bench.insert(message, part, words, "placeholder") for message, part in reversed(origins) if message)


def _blank_output(bench: Bench, part: Part) -> Sequence[tuple[Edit, ...]]:
    state = (part.data or {}).get("state")
    if not isinstance(state, dict):
        return ()
    return ((bench.replace(part, {"state": {**state, "output": NO_OUTPUT}}, "placeholder"),),)


def first_message(bench: Bench, violation: Violation) -> Sequence[tuple[Edit, ...]]:
    """The first message sent is the assistant's: the user message that vanished gets words, or one is added."""
    first = bench.wire.turns[violation.turn].origins[0][0]
    before: list[Message] = []
    for message in bench.session.messages:
        if message.id == first:
            break
        if message.role == "user":
            before.append(message)
    words = [bench.text(bench.settings.placeholder, assistant=False)]
    proposals = [
        bench.insert(message.id, message.parts[-1].id if message.parts else None, words, "placeholder")
        for message in reversed(before)
    ]
    return proposals or [_user_message(bench, first)]


def _user_message(bench: Bench, first: str) -> tuple[Edit, ...]:
    """A user message in front of all, in the likeness of the session's own: agent and model are needed."""
    answer = bench.message(first)
    like = next((m for m in bench.session.messages if m.role == "user"), None)
    if like is not None:
        kept = {key: like.data[key] for key in ("agent", "model") if key in like.data}
    else:
        model = {key: answer.data[key] for key in ("providerID", "modelID") if key in answer.data}
        kept = {"agent": answer.data.get("agent", "build"), "model": model}
    created = max((answer.at or answer.created) - 1, 0)
    body = {"sessionID": bench.session.id, "role": "user", "time": {"created": created}, **kept}
    return bench.add_message(first, body, bench.text(bench.settings.placeholder, assistant=False), "placeholder")
