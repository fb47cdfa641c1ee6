"""A planted session as the product's values, without a store in between."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

from recoveryd.clients.find import read_error
from recoveryd.core.model import Failure, Message, Part, Session
from tests.support.build import Planted
from tests.support.planted import encoded


class Shape(Protocol):
    """What a session is built from."""

    def build(self, now_ms: int | None = None, seed: int | None = None) -> Planted:
        """The session, built anew."""


@cache
def session_of(shape: Shape, seed: int = 1) -> Session:
    """The session of a shape, built once in a process: values that nobody changes."""
    return as_session(shape.build(seed=seed))


def as_session(planted: Planted) -> Session:
    """What a database would load: messages and parts in the client's order, garbage parts without data."""
    messages = tuple(
        Message(m["id"], m, tuple(_part(planted, p) for p in _sorted(planted.parts.get(m["id"], []))), _row(m))
        for m in _sorted(planted.messages)
    )
    session = planted.session
    return Session("store", planted.id, messages, session["title"], session["directory"], revert=session.get("revert"))


def at_times(session: Session, times: Iterable[int]) -> Session:
    """The session as a database of 1.2.1 has it: with these times, and rows in this order."""
    timed = zip(session.messages, times, strict=True)
    return replace(session, messages=tuple(replace(m, at=at, row=row) for row, (m, at) in enumerate(timed, 1)))


def as_failure(session: Session, error: dict[str, Any], message: str = "msg_zzz") -> Failure:
    """The failure of the turn that comes next."""
    return Failure(session.store, session.id, message, 0, read_error(error), "anthropic", "claude-sonnet-4-5")


def _sorted(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: str(item["id"]))


def _part(planted: Planted, part: dict[str, Any]) -> Part:
    garbage = planted.raw.get(part["id"])
    if garbage is not None:
        return Part(part["id"], part["messageID"], None, garbage)
    return Part(part["id"], part["messageID"], part, _row(part))


def _row(value: dict[str, Any]) -> bytes:
    return encoded(json.dumps(value, ensure_ascii=False))
