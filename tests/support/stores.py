"""Every store of every client, with the client at work in it, for the promises that `tests/contract` holds them to.

A new store: a class with the members of `Kept`, and a line in `STORES`.
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite import rows
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from recoveryd.core.model import Json
from recoveryd.disk import tree as reading
from tests.support.database import NEW, OLD, Base, text
from tests.support.json_tree import ABORTED, NOW, REFUSED, SES, Tree, done, message, name

Raw = bytes  # the text of a record as a client that broke it may have left it


class Kept(Protocol):
    """A store, and a client that writes to it. All times are milliseconds since the epoch."""

    def __init__(self, folder: Path) -> None:
        """Make an empty store in `folder`."""

    store: Store
    ms: int  # the clock of the store: now

    # What no part can be, so that it is kept as bytes; what is read as a part that says nothing; and what is read.
    broken: Sequence[Raw]
    odd: Sequence[Raw]
    readable: Sequence[tuple[Raw, Json]]
    bad_keys: Sequence[str]  # no records of this store
    named: str  # how a record is named that can't be read, as an expression with {id}
    too_large: tuple[str, str]  # what is said of a part `prt_huge` of 5 KB and of a session, as expressions

    # The client writes.
    def session(self, session: str, title: str, directory: str, parent: str) -> None:
        """Say of a session what it is."""

    def retitles(self, session: str, title: str) -> None:
        """Give another title to a session that is there."""

    def asks(self, ms: int, session: str = SES) -> str:
        """Add a user's message, of which nothing has come; its id."""

    def answers(self, ms: int, session: str = SES) -> str:
        """Add a whole answer that was finished 5 ms later; its id."""

    def calls(self, ms: int, session: str = SES) -> str:
        """Add a finished step of the model that ended in a call of a tool; its id."""

    def runs(self, ms: int, session: str = SES) -> str:
        """Add an answer that is not finished; its id."""

    def is_refused(self, ms: int, session: str = SES) -> str:
        """Add a turn that the provider refused, of provider "anthropic" and model "m"; its id."""

    def is_aborted(self, ms: int, kinds: Sequence[str], session: str = SES) -> str:
        """Add a turn that the user ended, with a part of each of these kinds (step-start, reasoning, text)."""

    def part(self, owner: str, identifier: str, raw: Raw | None = None, session: str = SES) -> None:
        """Add a part that says "hello", or this record as it is."""

    def rewrites(self, owner: str, identifier: str) -> None:
        """Write other words over a part."""

    def removes(self, owner: str, identifier: str) -> None:
        """Delete a part."""

    def broken_message(self, ms: int) -> str:
        """Add a message that is no JSON; its id."""

    # What is in the store, and what can be done to it from outside.
    def key(self, owner: str, identifier: str) -> str:
        """The key of a part."""

    def said(self, data: Json) -> Json:
        """A part without the ids that the store puts into it."""

    def other_layout(self, owner: str, identifier: str) -> Raw:
        """A part that says "a": 1, in another layout than the store would write it."""

    def words(self, words: str) -> Json:
        """A part that says `words`, as an edit gives it."""

    def content(self) -> Mapping[str, Any]:
        """All that the client has there, byte by byte."""

    def left(self) -> list[str]:
        """What lies there that neither this client nor a person put there."""

    def cut_off(self, key: str) -> int:
        """Leave there what a crash in the middle of a write of `key` leaves; how many things."""

    def foreign(self, owner: str) -> None:
        """Put what is no record where the client keeps them, if that can be."""

    def limited(self, record: int, session: int) -> Store:
        """The same store, with other limits in bytes."""

    def absent(self, folder: Path) -> Store:
        """A store in `folder`, where none is."""

    def is_now(self, ns: int) -> bool:
        """Whether a stamp of this time, in nanoseconds, may be of a write of now."""

    def file(self, owner: str, identifier: str) -> Path:
        """The file that a part is in."""

    def needed(self) -> Sequence[Path]:
        """What has to be written to for an edit, be it a file or a folder."""

    def reads(self, patch: pytest.MonkeyPatch) -> list[str]:
        """A list, empty yet, of the ids of all messages that the store reads from now on."""


class _OpenCode(Kept, Protocol):
    """What both of OpenCode's stores have in common: its messages."""

    @abstractmethod
    def _say(self, session: str, role: str, ms: int, fields: Mapping[str, Any]) -> str: ...

    @abstractmethod
    def _part(self, owner: str, identifier: str, data: Any) -> None: ...

    def says(self, role: str, ms: int, **fields: Any) -> str:
        """Add a message with these fields; its id."""
        return self._say(SES, role, ms, fields)

    def asks(self, ms: int, session: str = SES) -> str:
        return self._say(session, "user", ms, {})

    def answers(self, ms: int, session: str = SES) -> str:
        return self._say(session, "assistant", ms, done(ms))

    def calls(self, ms: int, session: str = SES) -> str:
        return self._say(session, "assistant", ms, {**done(ms), "finish": "tool-calls"})

    def runs(self, ms: int, session: str = SES) -> str:
        return self._say(session, "assistant", ms, {})

    def is_refused(self, ms: int, session: str = SES) -> str:
        return self._say(session, "assistant", ms, REFUSED)

    def is_aborted(self, ms: int, kinds: Sequence[str], session: str = SES) -> str:
        aborted = self._say(session, "assistant", ms, ABORTED)
        for number, kind in enumerate(kinds):
            self._part(aborted, f"prt_{number}", {"type": kind})
        return aborted

    def said(self, data: Json) -> Json:
        return {key: value for key, value in data.items() if key not in ("id", "sessionID", "messageID")}

    def words(self, words: str) -> Json:
        return {"type": "text", "text": words}


_BROKEN = (b"", b'{"id": "prt_', b'{"a":NaN}')
_READABLE = (
    (b'{"text": "a\xffb"}', {"text": "a\ufffdb"}),
    (b'{"text": "a\\u0000b"}', {"text": "a\0b"}),
    (b'\xef\xbb\xbf{"text": "x"}', {"text": "x"}),
    (b'{"n": ' + b"9" * 5000 + b', "m": 1}', {"n": float("inf"), "m": 1}),
)


class Files(_OpenCode):
    """The JSON tree of OpenCode up to 1.1."""

    broken = (*_BROKEN, b"null", b"\xff\xfe")
    odd = (b"[]", b"7", b"true", b'"words"')
    readable = _READABLE
    bad_keys = (
        *("../x.json", "part/../../x.json", "/etc/x.json", "part//x.json"),
        *("part/m/x", "x.json", "part/m/.x.json"),
    )
    named = r"{id}\.json"
    too_large = (
        r"prt_huge\.json is too large: 5,0\d\d bytes, at most 4,000",
        r"too large: it may take 5,100 bytes of memory",
    )

    def __init__(self, folder: Path) -> None:
        self.ms = NOW
        self.tree = Tree(folder / "opencode" / "storage")
        self.store = OpencodeFiles(self.tree.root, clock=lambda: self.ms / 1000)

    def session(self, session: str, title: str, directory: str, parent: str) -> None:
        said = {"id": session, "title": title, "directory": directory, "parentID": parent}
        self.tree.put(f"session/global/{session}.json", said)

    def retitles(self, session: str, title: str) -> None:
        self.tree.put(f"session/global/{session}.json", {"id": session, "title": title})

    def _say(self, session: str, role: str, ms: int, fields: Mapping[str, Any]) -> str:
        said = {**message(name(ms), role, ms, **fields), "sessionID": session}
        self.tree.put(f"message/{session}/{said['id']}.json", said)
        return str(said["id"])

    def _part(self, owner: str, identifier: str, data: Any) -> None:
        self.tree.part(owner, identifier, data)

    def part(self, owner: str, identifier: str, raw: Raw | None = None, session: str = SES) -> None:
        self.tree.part(owner, identifier, raw)

    def rewrites(self, owner: str, identifier: str) -> None:
        self.tree.part(owner, identifier, {"id": identifier, "client": "was here"})

    def removes(self, owner: str, identifier: str) -> None:
        self.file(owner, identifier).unlink()

    def broken_message(self, ms: int) -> str:
        self.tree.put(f"message/{SES}/{name(ms)}.json", b'{"role": ')
        return name(ms)

    def key(self, owner: str, identifier: str) -> str:
        return f"part/{owner}/{identifier}.json"

    def other_layout(self, owner: str, identifier: str) -> Raw:
        return json.dumps({"id": identifier, "sessionID": SES, "messageID": owner, "a": 1}).encode()

    def content(self) -> Mapping[str, Any]:
        root = self.tree.root
        folders = {str(path.relative_to(root)): "" for path in root.rglob("*") if path.is_dir()}
        return {
            key: raw for key, raw in self.tree.files().items() if not key.rpartition("/")[2].startswith(".")
        } | folders

    def left(self) -> list[str]:
        return sorted(path.name for path in self.tree.root.rglob(".*"))

    def cut_off(self, key: str) -> int:
        path = self.tree.root / key
        path.with_name(f".recoveryd-{path.name}").write_text("half")
        return 1

    def foreign(self, owner: str) -> None:
        self.tree.put(f"part/{owner}/.hidden", b"x")  # passed over by the client
        for key in (f"message/{SES}/notes.txt", f"part/{owner}/prt_2.json.bak"):
            self.tree.put(key, b"x")

    def limited(self, record: int, session: int) -> Store:
        return OpencodeFiles(self.tree.root, max_file=record, max_session=session)

    def absent(self, folder: Path) -> Store:
        return OpencodeFiles(folder / "storage")

    def is_now(self, ns: int) -> bool:
        return abs(ns - time.time_ns()) < 10 * 10**9

    def file(self, owner: str, identifier: str) -> Path:
        return self.tree.root / self.key(owner, identifier)

    def needed(self) -> Sequence[Path]:
        return (self.tree.root / "message", self.tree.root / "part")

    def reads(self, patch: pytest.MonkeyPatch) -> list[str]:
        found: list[str] = []
        real = reading.read

        def read(fd: int, file: str, *rest: Any) -> bytes:
            found.append(file.removesuffix(".json"))
            return real(fd, file, *rest)

        patch.setattr(reading, "read", read)
        return found


class Rows(_OpenCode):
    """The database of OpenCode as the newest version makes it."""

    version = NEW
    broken = (*_BROKEN, b"\xff")
    odd = (b"[]", b"null", b"7")
    readable = _READABLE
    bad_keys = ("../x", "part/", "part/a b", "project/p_1", "part/p/q", "x", "message", "")
    named = r"(part|message)/{id} of "
    too_large = ("too large: at most 4,000 bytes", r"session ses_1 .* too large: it may take 5,100 bytes of memory")

    def __init__(self, folder: Path) -> None:
        self.ms = NOW
        self.base = Base(folder / "opencode" / "opencode.db", self.version, lambda: self.ms / 1000)
        self.store = self.base.store

    def session(self, session: str, title: str, directory: str, parent: str) -> None:
        self.base.session(session, title=title, directory=directory, parent_id=parent)

    def retitles(self, session: str, title: str) -> None:
        self.base.run("UPDATE session SET title = ?, time_updated = ? WHERE id = ?", title, self.ms, session)

    def _say(self, session: str, role: str, ms: int, fields: Mapping[str, Any]) -> str:
        return self.base.say(role, ms, session=session, **fields)

    def _part(self, owner: str, identifier: str, data: Any) -> None:
        self.base.part(owner, identifier, data, self.ms)

    def part(self, owner: str, identifier: str, raw: Raw | None = None, session: str = SES) -> None:
        self.base.part(owner, identifier, None if raw is None else text(raw), self.ms)

    def rewrites(self, owner: str, identifier: str) -> None:
        words = '{"client":"was here"}'
        self.base.run("UPDATE part SET data = ?, time_updated = ? WHERE id = ?", words, self.ms, identifier)

    def removes(self, owner: str, identifier: str) -> None:
        self.base.run("DELETE FROM part WHERE id = ?", identifier)

    def broken_message(self, ms: int) -> str:
        return self.base.message('{"role": ', ms)

    def key(self, owner: str, identifier: str) -> str:
        return f"part/{identifier}"

    def other_layout(self, owner: str, identifier: str) -> Raw:
        return b'{ "a" : 1 }'

    def content(self) -> Mapping[str, Any]:
        return self.base.rows()

    def left(self) -> list[str]:
        return self.base.beside()

    def cut_off(self, key: str) -> int:
        return 0  # SQLite takes it back

    def foreign(self, owner: str) -> None:
        """A row is a record, or of no session."""

    def limited(self, record: int, session: int) -> Store:
        return OpencodeSqlite(self.base.path, max_row=record, max_session=session)

    def absent(self, folder: Path) -> Store:
        return OpencodeSqlite(folder / "opencode.db")

    def is_now(self, ns: int) -> bool:
        return ns == self.ms * 1_000_000

    def file(self, owner: str, identifier: str) -> Path:
        return self.base.path

    def needed(self) -> Sequence[Path]:
        return (self.base.path, self.base.path.parent)

    def reads(self, patch: pytest.MonkeyPatch) -> list[str]:
        found: list[str] = []
        real = rows.fetch

        def fetch(db: Any, table: str, identifier: str, path: Path) -> rows.Row | None:
            found.append(identifier)
            return real(db, table, identifier, path)

        patch.setattr(rows, "fetch", fetch)
        return found


class OldRows(Rows):
    """A database as the first version with one makes it."""

    version = OLD


STORES: Mapping[str, type[Kept]] = {
    "opencode-files": Files,
    "opencode-sqlite-old": OldRows,
    "opencode-sqlite-new": Rows,
}
