"""The shape of a stored session without a word of what it says: roles, types, lengths, flags.

Nothing of the session's own text gets through: a value is either a word that is listed here or by the client, a number,
or yes or no.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from recoveryd.clients import Content, read_error
from recoveryd.core import Edit, Json, Message, Part, RecordedError, Session, known_word, type_name, words
from recoveryd.providers import MODEL_WORDS, known_sentences

_ROLES = ("user", "assistant")
_ERROR_TYPES = words(
    "invalid_request_error authentication_error permission_error not_found_error request_too_large rate_limit_error "
    "api_error overloaded_error"
)
_PLACE = re.compile(r"messages\.(\d{1,5})(?:\.content\.(\d{1,5}))?")


class Ordinals:
    """Replaces ids in a report by numbers, in the order in which they are met: an id tells when something was made, and
    perhaps by whom.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._known: dict[str, str] = {}

    def of(self, identifier: str) -> str:
        """Return the number of an id: "m1", always the same."""
        return self._known.setdefault(identifier, f"{self._prefix}{len(self._known) + 1}")


class Shaper:
    """Makes shapes of one session's records, with the same names for the same ids in all of them."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self.messages, self.parts, self._calls = Ordinals("m"), Ordinals("p"), Ordinals("c")

    def session(self, session: Session) -> list[dict[str, Any]]:
        """Make the shapes of all messages of a session."""
        start = next((message.created for message in session.messages if message.created), 0)
        return [self._message(message, start) for message in session.messages]

    def edit(self, edit: Edit, session: Session) -> dict[str, Any]:
        """Make the shape of an edit: the part before and after."""
        stored = session.part(edit.part_id) if edit.part_id else None
        return {
            "action": edit.action,
            "message": self.messages.of(edit.message_id),
            "part": self.parts.of(edit.part_id) if edit.part_id else None,
            "before": self.part(stored.data) if stored is not None else None,
            "after": self.part(edit.after) if edit.after is not None else None,
        }

    def part(self, data: Json | None) -> dict[str, Any]:
        """Make the shape of a part, or of what stands in its place; None: it is no JSON object."""
        return {"json": False} if data is None else self._content.part_shape(data, self._calls.of)

    def _message(self, message: Message, start: int) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "id": self.messages.of(message.id),
            "role": known_word(message.role, _ROLES),
            "after_s": (message.created - start) // 1000 if message.created else None,
            "completed": bool(message.completed),
            "parts": [self._stored(part) for part in message.parts],
        }
        shape |= self._content.message_shape(message.data)
        if "modelID" in message.data:
            shape["model"] = model_in_report(message.data["modelID"])
        if message.error is not None:
            shape["error"] = error_shape(read_error(message.error), self._content.error_names())
        return shape

    def _stored(self, part: Part) -> dict[str, Any]:
        return {"id": self.parts.of(part.id), "bytes": len(part.raw or b""), **self.part(part.data)}


def model_in_report(model: object) -> str:
    """Write a model's name as a report may hold it, `claude-sonnet-4-5-#` for `claude-sonnet-4-5-20250929`: known words
    and short numbers.
    """
    if not isinstance(model, str):
        return type_name(model)
    pieces = re.split(r"[-./:_@]", model.lower())
    said = [p if p in MODEL_WORDS or (p.isascii() and p.isdigit() and len(p) < 3) else "#" for p in pieces[:12]]
    return "-".join(said)


def error_shape(error: RecordedError, names: Collection[str]) -> dict[str, Any]:
    """Make the shape of an error: its name, its figures, and the sentences in it that providers are known to say."""
    together = "\n".join(error.texts)
    place = _PLACE.search(together)
    return {
        "name": known_word(error.name, names),
        "status": error.status if error.status is not None and 0 <= error.status < 1000 else None,
        "types": [name for name in _ERROR_TYPES if name in together],
        "says": known_sentences(together),
        "place": [int(n) if n else None for n in place.groups()] if place else None,
        "lengths": [len(text) for text in error.texts],
    }
