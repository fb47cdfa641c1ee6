"""Tell in words what is wrong with a session, and what is done about it."""

from __future__ import annotations

from recoveryd.clients import Client, Store, way_back
from recoveryd.core import KINDS, Json, Kind, first_of, kind_info

NOT_AGAIN = "is not repaired again by itself before a prompt was answered"  # a session whose repair was taken back


def evidence_line(evidence: Json) -> str:
    """Tell the evidence of a diagnosis on one line: "message msg_1, status 400". What an error is about, the remedy
    tells.
    """
    told = ((key, value) for key, value in evidence.items() if value and key != "about")
    return ", ".join(f"{key.replace('_', ' ')} {_value(value)}" for key, value in told)


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return first_of([*map(str, value)], between=" ")
    return "yes" if value is True else str(value)


def cause(kind: Kind | None) -> str:
    """Tell what is wrong: a part of a sentence, as "an empty message or text"."""
    return kind_info(kind).cause


def next_step(kind: Kind | None, client: Client, store: Store, session: str) -> str:
    """Tell what its user can do where nothing of a session is repaired, as a clause."""
    return ", or ".join(filter(None, (kind_info(kind).instead, way_back(client, store, session))))


def remedy(kind: Kind | None) -> str:
    """Tell what recoveryd would do about a failure, or what the user can."""
    if kind is None:
        return "Nothing is edited."
    known = KINDS[kind]
    return known.remedy or f"Nothing is edited: {known.unrepaired or 'recoveryd has no repair for this yet'}."
