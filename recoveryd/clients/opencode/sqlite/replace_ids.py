"""Make the changes that give the rows of a session other ids. A row that goes stands right before its new self."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from recoveryd.clients.opencode import replace_ids
from recoveryd.clients.opencode.replace_ids import Names
from recoveryd.clients.opencode.sqlite import rows
from recoveryd.core import Change, Session


def changes(session: Session, about: bytes | None, names: Names, keep: Collection[str]) -> list[Change]:
    """Make the changes that give rows of OpenCode's database other ids, in the order in which they are written. `about`
    is the image of the session's own row; the messages `keep` come along as they are.
    """
    found: list[Change] = []
    for message in session.messages:
        kept = message.id in keep
        found += _moved("message", message.id, message.raw, names, kept)
        for part in message.parts:
            found += _moved("part", part.id, part.raw, names, kept)
    if about is not None:
        found += _reverted(session.id, about, names)
    return found


def _moved(table: str, identifier: str, image: bytes | None, names: Names, kept: bool) -> Iterator[Change]:
    assert image is not None
    key, row = rows.row_key(table, identifier), rows.row_of_image(table, image)
    paths = replace_ids.MESSAGE if table == "message" else replace_ids.PART
    raw = replace_ids.replace(rows.data_bytes(row["data"]), paths, names, key)
    data = raw.decode("utf-8", "surrogateescape") if isinstance(row["data"], str) else raw
    moved = {column: names.get(value, value) for column, value in row.items() if column in ("id", "message_id")}
    after = rows.row_image({**row, **moved, "data": data})
    if moved["id"] != identifier:
        yield Change(key, image, None)
        yield Change(rows.row_key(table, moved["id"]), None, after)
    elif after != image or kept:
        yield Change(key, image, after)


def _reverted(session: str, image: bytes, names: Names) -> Iterator[Change]:
    row, key = rows.row_of_image("session", image), rows.row_key("session", session)
    if row["revert"] is not None:
        raw = rows.data_bytes(row["revert"])
        text = replace_ids.replace(raw, replace_ids.REVERT, names, key).decode("utf-8", "surrogateescape")
        if text != row["revert"]:
            yield Change(key, image, rows.row_image({**row, "revert": text}))
