"""The files of a session under other ids, as changes: the messages, and around them what the client does not see."""

from __future__ import annotations

from collections.abc import Callable

from recoveryd.model import Change, Message, Part, Session
from recoveryd.stores import renaming, tree
from recoveryd.stores.opencode_reader import Folder
from recoveryd.stores.renaming import Names

Mode = Callable[[str], int | None]  # the permission bits of a file, by its key


def changes(
    session: Session, folder: Folder, about: tuple[str, bytes] | None, names: Names, mode: Mode
) -> list[Change]:
    """`folder` is that of the messages, `about` the session's own file: its key and its bytes.

    Parts are read only after their message: so their new files come first, and their old ones go last. In between the
    messages change over one by one, the oldest first: until the last of them did, new prompts stay as they were.
    """
    first: list[Change] = []
    between: list[Change] = []
    last: list[Change] = []
    for message in session.messages:
        for part in message.parts:
            come, gone = _part(message, part, names, mode)
            first += come
            last += gone
    for message in sorted(session.messages, key=lambda message: names.get(message.id, "~")):
        come, gone = _message(message, folder, names, mode)
        between += come + gone
    if about is not None:
        key, raw = about
        after = renaming.renamed(raw, renaming.SESSION, names, key)
        between += [Change(key, raw, after, mode(key))] if after != raw else []
    return [*first, *between, *last]


def _message(message: Message, folder: Folder, names: Names, mode: Mode) -> tuple[list[Change], list[Change]]:
    key, new = (_key(folder, identifier) for identifier in (message.id, names.get(message.id, message.id)))
    assert message.raw is not None
    return _moved(key, new, message.raw, renaming.renamed(message.raw, renaming.MESSAGE, names, key), mode)


def _part(message: Message, part: Part, names: Names, mode: Mode) -> tuple[list[Change], list[Change]]:
    key = _key(("part", message.id), part.id)
    new = _key(("part", names.get(message.id, message.id)), names.get(part.id, part.id))
    assert part.raw is not None
    return _moved(key, new, part.raw, renaming.renamed(part.raw, renaming.PART, names, key), mode)


def _moved(key: str, new: str, before: bytes, after: bytes, mode: Mode) -> tuple[list[Change], list[Change]]:
    """What comes, and what goes."""
    if key == new:
        return ([Change(key, before, after, mode(key))] if after != before else []), []
    return [Change(new, None, after, mode(key))], [Change(key, before, None, mode(key))]


def _key(folder: Folder, identifier: str) -> str:
    return "/".join((*folder, identifier)) + tree.SUFFIX
