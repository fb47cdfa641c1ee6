"""What a repair has before it: the session as it would be by now, and the tools to write parts as the client does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recoveryd.clients.opencode.ids import between, unique_between
from recoveryd.core.model import Edit, Json, Message, Part, Session
from recoveryd.core.request import Wire


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's choices that repairs follow (config keys of the same names)."""

    placeholder: str = "[user interrupted]"
    cancelled_text: str = "Operation cancelled by user (ESC pressed)"
    keep_thinking: bool = True


@dataclass(frozen=True, slots=True)
class Bench:
    """`recovery` is the id that marks what is injected, `now` milliseconds since the epoch for times that it needs."""

    session: Session
    wire: Wire
    settings: Settings
    recovery: str
    now: int

    def message(self, message_id: str) -> Message:
        return next(m for m in self.session.messages if m.id == message_id)

    def part(self, part_id: str) -> Part:
        part = self.session.part(part_id)
        assert part is not None, part_id
        return part

    def replace(self, part: Part, changes: Json, action: str) -> Edit:
        """`part` with some fields changed, marked."""
        return Edit(part.message_id, part.id, self._marked({**(part.data or {}), **changes}), action)

    def set_aside(self, part: Part, action: str) -> Edit:
        return Edit(part.message_id, part.id, None, action)

    def insert(self, message_id: str, behind: str | None, bodies: Sequence[Json], action: str) -> tuple[Edit, ...]:
        """New parts behind the part `behind` (None: in front of all) of a message, in the given order."""
        message = self.message(message_id)
        ids = [part.id for part in message.parts]
        at = ids.index(behind) + 1 if behind is not None else 0
        high = ids[at] if at < len(ids) else None
        # Ids are unique in the whole store: one behind a part inherits that from it, others need a mark.
        low = behind or unique_between("prt_", high, message_id.removeprefix("msg_"))
        edits: list[Edit] = []
        for body in bodies:
            low = between(low, high)
            stored = {"id": low, "sessionID": self.session.id, "messageID": message_id, **body}
            edits.append(Edit(message_id, low, self._marked(stored), action))
        return tuple(edits)

    def add_message(self, before: str, body: Json, part: Json, action: str) -> tuple[Edit, ...]:
        """A new message with one part, right in front of the message `before`."""
        ids = [message.id for message in self.session.messages]
        at = ids.index(before)
        new = unique_between(ids[at - 1] if at else "msg_", before, self.recovery)
        first = "prt_" + new.removeprefix("msg_")
        stored = {"id": first, "sessionID": self.session.id, "messageID": new, **part}
        return (Edit(new, None, {"id": new, **body}, action), Edit(new, first, self._marked(stored), action))

    def text(self, text: str, *, assistant: bool) -> dict[str, Any]:
        """The body of an injected text. A user's must not be synthetic: the client does not draw those."""
        body: dict[str, Any] = {"type": "text", "text": text}
        if assistant:
            body["synthetic"] = True
        return body

    def _marked(self, data: Json) -> Json:
        metadata = data.get("metadata")
        kept = metadata if isinstance(metadata, Mapping) else {}
        return {**data, "metadata": {**kept, "recoveryd": {"recovery": self.recovery}}}
