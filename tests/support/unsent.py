"""What a session's client sends no more after a repair that does not tell so: by the words alone, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from recoveryd.core.model import Edit, Session
from recoveryd.core.request import Request

_NO_WORDS = frozenset({"id", "sessionID", "messageID", "callID", "call_id", "type", "role", "mime", "url", "signature"})


def lost(session: Session, before: Request, after: Request, edits: Sequence[Edit]) -> list[tuple[str, str]]:
    """List each part and words of it that were sent and are sent no more, and that no edit of the part tells of."""
    had, has, told = _sent(before), _sent(after), {edit.record for edit in edits}
    return [
        (part.id, words)
        for message in session.messages
        for part in message.parts
        if (message.id, part.id) not in told
        for words in _words(part.data, own=part.type == "reasoning")
        if _spelled(words) in had and _spelled(words) not in has
    ]


def _sent(request: Request) -> str:
    bodies = [block.body for turn in request.turns for block in turn.blocks]
    return json.dumps(bodies, default=dict, ensure_ascii=False)


def _spelled(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)[1:-1]


def _words(value: object, *, own: bool = True) -> Iterator[str]:
    """List the texts of a value. `own`: also what is kept beside it, which calls and texts share with the thinking."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name not in _NO_WORDS and (own or name != "metadata"):
                yield from _words(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _words(item)
    elif isinstance(value, str) and value.strip():
        yield value.strip()
