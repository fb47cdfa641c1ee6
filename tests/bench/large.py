"""A database as large as users have, in some seconds: the sessions of the last weeks, with nothing wrong in them."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.database import NEW, SCHEMAS

DAYS = 60
TURNS = 20  # of a session: a prompt, and an answer with a tool in it
_BYTES = {True: 680_000, False: 225_000}  # of a session in the file, with and without its events
_BATCH = 50  # sessions in a transaction
_WORDS = "the quick brown fox jumps over the lazy dog and files a report about it; " * 400
_MODEL = {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
Table = list[tuple[Any, ...]]


@dataclass
class _Rows:
    """What one transaction adds."""

    events: bool
    session: Table = field(default_factory=list)
    message: Table = field(default_factory=list)
    part: Table = field(default_factory=list)
    event_sequence: Table = field(default_factory=list)
    event: Table = field(default_factory=list)

    def record(self, kind: str, data: dict[str, Any], row: tuple[Any, ...], times: int) -> None:
        """A message or a part as it ended, and an event for each time that it was written."""
        text = json.dumps(data, separators=(",", ":"))
        getattr(self, kind).append((*row, text))
        if self.events:
            session = self.session[-1][0]
            said, name = f'{{"sessionID":"{session}","{kind}":{text}}}', f"{kind}.updated.1"
            first = self.event_sequence[-1][1]
            for seq in range(first, first + times):
                self.event.append((f"evt_{row[0][4:]}{seq:06d}", session, seq, name, said))
            self.event_sequence[-1] = session, first + times, None

    def insert(self, db: sqlite3.Connection) -> None:
        with db:
            db.execute("BEGIN")
            for table in ("session", "message", "part", *(("event_sequence", "event") if self.events else ())):
                found: Table = getattr(self, table)
                columns = "(id, project_id, slug, directory, title, version, time_created, time_updated)"
                places = ", ".join("?" * len(found[0]))
                into = f"{table} {columns}" if table == "session" else table
                db.executemany(f"INSERT INTO {into} VALUES ({places})", found)


def create(path: Path, version: str = NEW) -> None:
    """The client's tables, with nothing in them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMAS[version])
        db.execute("INSERT INTO project VALUES ('global', '/', '', '', '', '', 0, 0, 0, '[]', '')")


def generate(path: Path, version: str, size: int) -> int:
    """Make a database of about `size` bytes, in WAL mode. Returns how many sessions it has."""
    create(path, version)
    events = version == NEW
    sessions = max(size // _BYTES[events], 2)
    now = int(time.time() * 1000) - 3_600_000
    starts = [now - DAYS * 86_400_000 * (sessions - 1 - number) // sessions for number in range(sessions)]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
            db.execute(f"PRAGMA {pragma}")
        for first in range(0, sessions, _BATCH):
            rows = _Rows(events)
            for number, ms in list(enumerate(starts))[first : first + _BATCH]:
                _session(rows, number, ms)
            rows.insert(db)
        db.execute("PRAGMA journal_mode = WAL")
    return sessions


def _session(rows: _Rows, number: int, start: int) -> None:
    rng = random.Random(number)
    session = f"ses_{~(start * 4096) % 2**48:012x}{number:014d}"
    rows.session.append((session, "global", "s", "/p", f"session {number}", "1", start, start))
    if rows.events:
        rows.event_sequence.append((session, 0, None))
    for turn in range(TURNS):
        ms = start + turn * 60_000
        asked, answered = (f"msg_{(ms + late) * 4096 % 2**48:012x}{number:014d}" for late in (0, 1000))
        user = {"role": "user", "time": {"created": ms}, "agent": "build", "model": _MODEL}
        rows.record("message", user, (asked, session, ms, ms), 1)
        _parts(rows, (asked, session, ms), [{"type": "text", "text": _words(rng, 300)}])
        done = {"created": ms + 1000, "completed": ms + 9000}
        assistant: dict[str, Any] = {
            "role": "assistant",
            "time": done,
            "parentID": asked,
            **_MODEL,
            "mode": "build",
            "finish": "stop",
        }
        assistant |= {"path": {"cwd": "/p", "root": "/"}, "cost": 0.01, "tokens": {"input": 10, "output": 5}}
        rows.record("message", assistant, (answered, session, ms + 1000, ms + 9000), 3)
        _parts(rows, (answered, session, ms + 1000), list(_answer(rng, f"toolu_{number:08d}{turn:04d}", ms)))


def _answer(rng: random.Random, call: str, ms: int) -> Iterator[dict[str, Any]]:
    yield {"type": "step-start"}
    output, times = _words(rng, 8000), {"start": ms + 2000, "end": ms + 3000}
    state = {"status": "completed", "input": {"command": "true"}, "output": output, "title": "", "metadata": {}}
    yield {"type": "tool", "callID": call, "tool": "bash", "state": {**state, "time": times}}
    yield {"type": "step-finish", "reason": "tool-calls", "cost": 0, "tokens": {"input": 10, "output": 5}}
    yield {"type": "step-start"}
    yield {"type": "text", "text": _words(rng, 2000), "time": times}
    yield {"type": "step-finish", "reason": "stop", "cost": 0, "tokens": {"input": 10, "output": 5}}


def _parts(rows: _Rows, message: tuple[str, str, int], parts: list[dict[str, Any]]) -> None:
    identifier, session, ms = message
    for number, part in enumerate(parts):
        written = 2 if part["type"] in ("tool", "text") else 1
        row = f"prt_{identifier[4:16]}{number:02d}{identifier[18:]}", identifier, session, ms, ms + 10 * number
        rows.record("part", part, row, written)


def _words(rng: random.Random, most: int) -> str:
    start = rng.randrange(1000)
    return _WORDS[start : start + rng.randrange(most // 4, most)]
