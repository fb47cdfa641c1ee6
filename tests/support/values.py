"""A planted session as the product's values, without a store in between."""

from __future__ import annotations

from typing import Any

from recoveryd.clients.find import recorded
from recoveryd.core.model import Failure, Message, Part, Session
from tests.support.build import Planted
from tests.support.plant import dump


def as_session(planted: Planted) -> Session:
    """What a store would load: messages and parts in the client's order, garbage parts without data."""
    messages = tuple(
        Message(m["id"], m, tuple(_part(planted, p) for p in _sorted(planted.parts.get(m["id"], []))), dump(m))
        for m in _sorted(planted.messages)
    )
    session = planted.session
    return Session("store", planted.id, messages, session["title"], session["directory"], revert=session.get("revert"))


def as_failure(session: Session, error: dict[str, Any], message: str = "msg_zzz") -> Failure:
    """The failure of the turn that comes next."""
    return Failure(session.store, session.id, message, 0, recorded(error), "anthropic", "claude-sonnet-4-5")


def _sorted(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: str(item["id"]))


def _part(planted: Planted, part: dict[str, Any]) -> Part:
    garbage = planted.raw.get(part["id"])
    if garbage is not None:
        return Part(part["id"], part["messageID"], None, garbage)
    return Part(part["id"], part["messageID"], part, dump(part))
