"""Make the changes that give the files of a session other ids."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from recoveryd.clients.opencode import replace_ids
from recoveryd.clients.opencode.files.reader import Folder
from recoveryd.clients.opencode.replace_ids import Names
from recoveryd.core import Change, Session
from recoveryd.disk import tree


@dataclass(frozen=True, slots=True)
class MovedFiles:
    """What files of OpenCode's tree get other ids by: the new ids, the messages that come along as they are, and how to
    learn the permission bits of a file by its key.
    """

    names: Names
    keep: Collection[str]
    mode: Callable[[str], int | None]

    def record(
        self, old: Folder, new: Folder, raw: bytes | None, part: bool, kept: bool
    ) -> tuple[list[Change], list[Change]]:
        """Make the changes of one file: the files that come, and those that go."""
        assert raw is not None
        key, target = ("/".join(path) + tree.SUFFIX for path in (old, new))
        after = replace_ids.replace(raw, replace_ids.PART if part else replace_ids.MESSAGE, self.names, key)
        if key != target:
            return [Change(target, None, after, self.mode(key))], [Change(key, raw, None, self.mode(key))]
        return ([Change(key, raw, after, self.mode(key))] if after != raw or kept else []), []

    def name(self, old: str) -> str:
        """Return the new id; the old one where it stays."""
        return self.names.get(old, old)


def changes(session: Session, folder: Folder, about: tuple[str, bytes] | None, move: MovedFiles) -> list[Change]:
    """Make the changes that give the files of OpenCode's tree other ids, in the order in which they are written.
    `folder`: of the messages; `about`: key and bytes of the session's file.

    The client reads parts only after their message: so new files of parts come first, and old ones go last. In between
    the messages change over one by one, the oldest first: until the last of them did, new prompts stay as they were.
    """
    first: list[Change] = []
    between: list[Change] = []
    last: list[Change] = []
    for message in sorted(session.messages, key=lambda message: move.names.get(message.id, "~")):
        kept, new = message.id in move.keep, move.name(message.id)
        for part in message.parts:
            old = "part", message.id, part.id
            come, gone = move.record(old, ("part", new, move.name(part.id)), part.raw, part=True, kept=kept)
            first += come
            last += gone
        come, gone = move.record((*folder, message.id), (*folder, new), message.raw, part=False, kept=kept)
        between += come + gone
    if about is not None:
        key, raw = about
        after = replace_ids.replace(raw, replace_ids.SESSION, move.names, key)
        between += [Change(key, raw, after, move.mode(key))] if after != raw else []
    return [*first, *between, *last]
