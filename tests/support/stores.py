"""Every store of every client, with the client at work in it, for the promises that `tests/contract` holds them to.

A new store: a class with the members of `Kept`, and a line in `STORES`.
"""

from __future__ import annotations

import json
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite import rows
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import About, Store
from recoveryd.core.model import Change, Json, Message
from recoveryd.disk import tree as reading
from tests.support.database import NEW, OLD, Base, text
from tests.support.growing_stores import Threads, Transcripts
from tests.support.json_tree import ABORTED, NOW, REFUSED, SES, Tree, done, message, name
from tests.support.kept import Kept, Raw


class _OpenCode(Kept, Protocol):
    """What all stores of OpenCode's kind have in common: its messages."""

    adds: bool = True
    aside: Json | None = None
    asked: tuple[str, str] = ("anthropic", "m")
    spoken: frozenset[str] = frozenset({"text"})
    passed_over: Sequence[Raw] = ()

    @abstractmethod
    def _say(self, session: str, role: str, ms: int, fields: Mapping[str, Any]) -> str: ...

    @abstractmethod
    def _part(self, owner: str, label: str, data: Any) -> None: ...

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

    def is_aborted(self, ms: int, kinds: Sequence[str], session: str = SES) -> None:
        aborted = self._say(session, "assistant", ms, ABORTED)
        for number, kind in enumerate(kinds):
            self._part(aborted, f"prt_{number}", {"type": kind})

    def id(self, label: str) -> str:
        return label

    @abstractmethod
    def retitles(self, session: str, title: str) -> None:
        """Give another title to a session that is there."""

    def writes(self, owner: str) -> Sequence[Callable[[], object]]:
        return (
            lambda: self.part(owner, "prt_9"),
            lambda: self.removes(owner, "prt_2"),
            lambda: self.asks(self.ms),
            lambda: self.retitles(SES, "x"),
        )

    def line(self, raw: Raw) -> None:
        raise AssertionError("records are no lines")

    def messages(self, session: str = SES) -> Sequence[Message]:
        return self.store.load(session).messages

    def ordered(self, ids: Sequence[str]) -> Sequence[str]:
        return sorted(ids)

    def called(self, owner: str, label: str) -> str:
        return label

    def record(self, owner: str, label: str) -> bytes | None:
        part = self.store.load(SES).part(label)
        return part.raw if part else None

    @abstractmethod
    def needed(self) -> Sequence[Path]:
        """What has to be written to for an edit, be it a file or a folder."""

    def protect(self, number: int, patch: pytest.MonkeyPatch) -> str:
        path = self.needed()[number]
        if os.geteuid() == 0:  # root may write everywhere
            patch.setattr(os, "access", lambda where, how: Path(where) != path)
        else:
            path.chmod(0o500 if path.is_dir() else 0o400)
        return f"{path.name} can't be written to"

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

    def session(self, session: str, title: str, directory: str, parent: str) -> About:
        said = {"id": session, "title": title, "directory": directory, "parentID": parent}
        self.tree.put(f"session/global/{session}.json", said)
        return About(title, directory, parent or None)

    def retitles(self, session: str, title: str) -> None:
        self.tree.put(f"session/global/{session}.json", {"id": session, "title": title})

    def _say(self, session: str, role: str, ms: int, fields: Mapping[str, Any]) -> str:
        said = {**message(name(ms), role, ms, **fields), "sessionID": session}
        self.tree.put(f"message/{session}/{said['id']}.json", said)
        return str(said["id"])

    def _part(self, owner: str, label: str, data: Any) -> None:
        self.tree.part(owner, label, data)

    def part(self, owner: str, label: str, raw: Raw | None = None, session: str = SES) -> None:
        self.tree.part(owner, label, raw)

    def rewrites(self, owner: str, label: str) -> None:
        self.tree.part(owner, label, {"id": label, "client": "was here"})

    def removes(self, owner: str, label: str) -> None:
        self.file(owner, label).unlink()

    def broken_message(self, ms: int) -> str:
        self.tree.put(f"message/{SES}/{name(ms)}.json", b'{"role": ')
        return name(ms)

    def key(self, owner: str, label: str) -> str:
        return f"part/{owner}/{label}.json"

    def other_layout(self, owner: str, label: str) -> Raw:
        return json.dumps({"id": label, "sessionID": SES, "messageID": owner, "a": 1}).encode()

    def content(self) -> Mapping[str, Any]:
        root = self.tree.root
        folders = {str(path.relative_to(root)): "" for path in root.rglob("*") if path.is_dir()}
        return {
            key: raw for key, raw in self.tree.files().items() if not key.rpartition("/")[2].startswith(".")
        } | folders

    def left(self) -> list[str]:
        return sorted(path.name for path in self.tree.root.rglob(".*"))

    def cut_off(self, change: Change) -> int:
        path = self.tree.root / change.key
        path.with_name(f".recoveryd-{path.name}").write_text("half")
        return 1

    def foreign(self, owner: str) -> None:
        self.tree.put(f"part/{owner}/.hidden", b"x")  # passed over by the client
        for key in (f"message/{SES}/notes.txt", f"part/{owner}/prt_2.json.bak"):
            self.tree.put(key, b"x")

    def limited(self, patch: pytest.MonkeyPatch, record: int, session: int) -> Store:
        return OpencodeFiles(self.tree.root, max_file=record, max_session=session)

    def absent(self, folder: Path) -> Store:
        return OpencodeFiles(folder / "storage")

    def is_now(self, ns: int) -> bool:
        return abs(ns - time.time_ns()) < 10 * 10**9

    def file(self, owner: str, label: str) -> Path:
        return self.tree.root / self.key(owner, label)

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
    place = "opencode/opencode.db"
    broken = (*_BROKEN, b"\xff")
    odd = (b"[]", b"null", b"7")
    readable = _READABLE
    bad_keys = ("../x", "part/", "part/a b", "project/p_1", "part/p/q", "x", "message", "")
    named = r"(part|message)/{id} of "
    too_large = ("too large: at most 4,000 bytes", r"session ses_1 .* too large: it may take 5,100 bytes of memory")

    def __init__(self, folder: Path) -> None:
        self.ms = NOW
        self.base = Base(folder / self.place, self.version, lambda: self.ms / 1000)
        self.store = self.base.store

    def session(self, session: str, title: str, directory: str, parent: str) -> About:
        self.base.session(session, title=title, directory=directory, parent_id=parent)
        return About(title, directory, parent or None)

    def retitles(self, session: str, title: str) -> None:
        self.base.run("UPDATE session SET title = ?, time_updated = ? WHERE id = ?", title, self.ms, session)

    def _say(self, session: str, role: str, ms: int, fields: Mapping[str, Any]) -> str:
        return self.base.say(role, ms, session=session, **fields)

    def _part(self, owner: str, label: str, data: Any) -> None:
        self.base.part(owner, label, data, self.ms)

    def part(self, owner: str, label: str, raw: Raw | None = None, session: str = SES) -> None:
        self.base.part(owner, label, None if raw is None else text(raw), self.ms)

    def rewrites(self, owner: str, label: str) -> None:
        words = '{"client":"was here"}'
        self.base.run("UPDATE part SET data = ?, time_updated = ? WHERE id = ?", words, self.ms, label)

    def removes(self, owner: str, label: str) -> None:
        self.base.run("DELETE FROM part WHERE id = ?", label)

    def broken_message(self, ms: int) -> str:
        return self.base.message('{"role": ', ms)

    def key(self, owner: str, label: str) -> str:
        return f"part/{label}"

    def other_layout(self, owner: str, label: str) -> Raw:
        return b'{ "a" : 1 }'

    def content(self) -> Mapping[str, Any]:
        return self.base.rows()

    def left(self) -> list[str]:
        return self.base.beside()

    def cut_off(self, change: Change) -> int:
        return 0  # SQLite takes it back

    def foreign(self, owner: str) -> None:
        """A row is a record, or of no session."""

    def limited(self, patch: pytest.MonkeyPatch, record: int, session: int) -> Store:
        return OpencodeSqlite(self.base.path, max_row=record, max_session=session)

    def absent(self, folder: Path) -> Store:
        return OpencodeSqlite(folder / "opencode.db")

    def is_now(self, ns: int) -> bool:
        return ns == self.ms * 1_000_000

    def file(self, owner: str, label: str) -> Path:
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


class KiloRows(Rows):
    """The database of Kilo, which is OpenCode's under another name at another place."""

    place = "kilo/kilo.db"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path, clock = self.base.path, lambda: self.ms / 1000
        self.store = self.base.store = OpencodeSqlite(path, busy_s=0.1, clock=clock, client="kilo", title="Kilo")


STORES: Mapping[str, type[Kept]] = {
    "opencode-files": Files,
    "opencode-sqlite-old": OldRows,
    "opencode-sqlite-new": Rows,
    "kilo": KiloRows,
    "codex": Threads,
    "claude-code": Transcripts,
}
