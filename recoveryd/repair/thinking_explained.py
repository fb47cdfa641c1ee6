"""Tell what becomes of a session's thinking, block by block: what the model forgets, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recoveryd.core import Edit, Kind, Session, kind_info


def explain_thinking(session: Session, edits: Sequence[Edit], kind: Kind | None) -> Iterator[str]:
    """Write a line for each stored block of thinking: kept or set aside by `edits`, and why. No content: ids alone.

    None where nothing is set aside.
    """
    gone = {edit.part_id for edit in edits if edit.action == "set_aside_thinking"}
    unsent = {edit.part_id for edit in edits if "unsent_thinking" in (edit.action, *edit.also)}
    rejected = kind_info(kind).signature
    first = "the provider rejects it" if rejected else "it stands behind an edit, and may be bound to it"
    reason = first
    for message in session.messages if gone or unsent else ():
        for part in message.parts:
            if part.id in gone:
                yield f"thinking {part.id} of message {message.id}: set aside, {reason}"
                reason = "it stands behind another, and may be bound to it"
            elif part.id in unsent:
                yield f"thinking {part.id} of message {message.id}: kept, the client does not send it any more"
            elif part.type == "reasoning":
                where = "before all that is edited" if reason is first else "where nothing objects to it"
                yield f"thinking {part.id} of message {message.id}: kept, it stands {where}"
