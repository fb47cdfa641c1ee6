"""A database of OpenCode to fill by hand, with the tables of a real client, and a clock of its own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from tests.support.json_tree import NOW, SES, name

# What 1.2.1 and 1.18.33 have in common, as they declare it.
_COMMON = """
CREATE TABLE `project` (`id` text PRIMARY KEY, `worktree` text NOT NULL, `vcs` text, `name` text,
    `icon_url` text, `icon_color` text, `time_created` integer NOT NULL, `time_updated` integer NOT NULL,
    `time_initialized` integer, `sandboxes` text NOT NULL, `commands` text);
CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `time_created` integer NOT NULL,
    `time_updated` integer NOT NULL, `data` text NOT NULL, CONSTRAINT `fk_message_session_id_session_id_fk`
    FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE);
CREATE TABLE `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL,
    `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL,
    CONSTRAINT `fk_part_message_id_message_id_fk`
    FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE);
CREATE TABLE `session` (`id` text PRIMARY KEY, `project_id` text NOT NULL, `parent_id` text, `slug` text NOT NULL,
    `directory` text NOT NULL, `title` text NOT NULL, `version` text NOT NULL, `share_url` text,
    `summary_additions` integer, `summary_deletions` integer, `summary_files` integer, `summary_diffs` text,
    `revert` text, `permission` text, `time_created` integer NOT NULL, `time_updated` integer NOT NULL,
    `time_compacting` integer, `time_archived` integer, CONSTRAINT `fk_session_project_id_project_id_fk`
    FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE);
CREATE INDEX `part_session_idx` ON `part` (`session_id`);
CREATE INDEX `session_project_idx` ON `session` (`project_id`);
CREATE INDEX `session_parent_idx` ON `session` (`parent_id`);
"""
SCHEMAS = {
    "1.2.1": _COMMON
    + """
CREATE INDEX `message_session_idx` ON `message` (`session_id`);
CREATE INDEX `part_message_idx` ON `part` (`message_id`);
""",
    "1.18.33": _COMMON
    + """
CREATE TABLE `session_message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `type` text NOT NULL,
    `seq` integer NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE TABLE `event_sequence` (`aggregate_id` text PRIMARY KEY, `seq` integer NOT NULL, `owner_id` text);
CREATE TABLE `event` (`id` text PRIMARY KEY, `aggregate_id` text NOT NULL, `seq` integer NOT NULL,
    `type` text NOT NULL, `data` text NOT NULL,
    CONSTRAINT `fk_event_aggregate_id_event_sequence_aggregate_id_fk`
    FOREIGN KEY (`aggregate_id`) REFERENCES `event_sequence`(`aggregate_id`) ON DELETE CASCADE);
CREATE UNIQUE INDEX `event_aggregate_seq_idx` ON `event` (`aggregate_id`,`seq`);
CREATE INDEX `event_aggregate_type_seq_idx` ON `event` (`aggregate_id`,`type`,`seq`);
CREATE INDEX `message_session_time_created_id_idx` ON `message` (`session_id`,`time_created`,`id`);
CREATE INDEX `part_message_id_id_idx` ON `part` (`message_id`,`id`);
""",
}
OLD, NEW = SCHEMAS
_WITHOUT = {"message": ("id", "sessionID"), "part": ("id", "sessionID", "messageID")}
Rows = dict[str, list[tuple[Any, ...]]]


class Base:
    """A database to fill by hand. No connection stays open, so no WAL does, unless a `client` has one."""

    def __init__(self, path: Path, version: str = NEW, clock: Callable[[], float] = lambda: NOW / 1000) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.client() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(SCHEMAS[version])
            db.execute("INSERT INTO project VALUES ('global', '/', '', '', '', '', 0, 0, 0, '[]', '')")
        self.store = OpencodeSqlite(path, busy_s=0.1, clock=clock)

    @contextmanager
    def client(self) -> Iterator[sqlite3.Connection]:
        """A connection as the client has it."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=5)) as db:
            db.execute("PRAGMA foreign_keys = ON")
            yield db

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.client() as db:
            return db.execute(statement, values).fetchall()

    def session(self, session: str = SES, **columns: Any) -> None:
        row: dict[str, Any] = {
            "id": session,
            "project_id": "global",
            "slug": "s",
            "directory": "/p",
            "title": "A title",
        }
        row |= {"version": "1", "time_created": NOW, "time_updated": NOW, **columns}
        self._insert("INSERT OR REPLACE INTO", "session", row)

    def message(self, data: Any, ms: int, session: str = SES, identifier: str = "", **columns: Any) -> str:
        """A message made at `ms`; a session that is not there comes with it. `data` may be its text or bytes."""
        if not self.run("SELECT 1 FROM session WHERE id = ?", session):
            self.session(session)
        row: dict[str, Any] = {"id": identifier or name(ms), "session_id": session}
        row |= {"time_created": ms, "time_updated": ms}
        self._insert("INSERT INTO", "message", {**row, **columns, "data": _text("message", data)})
        return str(row["id"])

    def say(self, role: str, ms: int, *, session: Any = SES, **fields: Any) -> str:
        return self.message({"role": role, "time": {"created": ms}, **fields}, ms, session)

    def part(self, message: str, identifier: str, data: Any = None, ms: int = NOW, **columns: Any) -> None:
        data = {"type": "text", "text": "hello"} if data is None else data
        [[session]] = self.run("SELECT session_id FROM message WHERE id = ?", message)
        row = {"id": identifier, "message_id": message, "session_id": session, "time_created": ms, "time_updated": ms}
        self._insert("INSERT INTO", "part", {**row, **columns, "data": _text("part", data)})

    def small(self) -> tuple[str, str]:
        """A user's and an assistant's message, each with one part."""
        asked = self.say("user", NOW - 100)
        answered = self.say("assistant", NOW - 90, time={"created": NOW - 90, "completed": NOW - 85}, finish="stop")
        self.part(asked, "prt_1")
        self.part(answered, "prt_2")
        return asked, answered

    def event(self, session: str, seq: int, kind: str = "message.updated.1") -> None:
        self.run("INSERT OR IGNORE INTO event_sequence VALUES (?, 0, NULL)", session)
        row = f"evt_{session}_{seq}", session, seq, kind, "{}"
        self.run("INSERT INTO event VALUES (?, ?, ?, ?, ?)", *row)

    def rows(self) -> Rows:
        """All that the client has, as it has it, types and all."""
        with self.client() as db:
            db.text_factory = bytes
            tables = ("session", "message", "part")
            return {t: db.execute(f"SELECT *, typeof(data) FROM {t} ORDER BY id").fetchall() for t in tables[1:]} | {
                "session": db.execute("SELECT * FROM session ORDER BY id").fetchall()
            }

    def beside(self) -> list[str]:
        """The names of the files beside the database."""
        return sorted(path.name for path in self.path.parent.iterdir() if path != self.path)

    def _insert(self, how: str, table: str, row: dict[str, Any]) -> None:
        places = ", ".join("CAST(? AS TEXT)" if isinstance(value, _Bytes) else "?" for value in row.values())
        values = [bytes(value) if isinstance(value, _Bytes) else value for value in row.values()]
        self.run(f"{how} {table} ({', '.join(row)}) VALUES ({places})", *values)


class _Bytes(bytes):
    """A text as its bytes, which may be no UTF-8."""


def text(raw: bytes) -> _Bytes:
    """`raw` as the text of a row; plain bytes make a BLOB."""
    return _Bytes(raw)


def _text(table: str, data: Any) -> Any:
    if isinstance(data, (str, bytes)):
        return data
    said = {key: value for key, value in data.items() if key not in _WITHOUT[table]}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))
