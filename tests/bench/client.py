"""The client's side of a database that is measured: one connection that stays open, and writes as the client does."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from tests.bench.store import broken_session
from tests.support.build import MODEL, Message, Planted
from tests.support.database import NEW
from tests.support.plant import write_sqlite
from tests.support.planted import ascending

_SEQ = """INSERT INTO event_sequence VALUES (?, 0, NULL)
    ON CONFLICT (aggregate_id) DO UPDATE SET seq = seq + 1 RETURNING seq"""
_UPDATE = "UPDATE {} SET data = ?, time_updated = ? WHERE id = ?"
_REFUSED = (1, 2)  # of `store.ERRORS`: what 1.18.33 does not mend itself
_PIECE = "a few words more, "


def connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=5, check_same_thread=False)
    for pragma in ("synchronous = NORMAL", "foreign_keys = ON", "cache_size = -64000"):
        db.execute(f"PRAGMA {pragma}")
    return db


class Client:
    """Use it as a context manager."""

    def __init__(self, path: Path, version: str = NEW, seed: int = 7) -> None:
        self._path = path
        self._events = version == NEW
        self._rng = random.Random(seed)

    def __enter__(self) -> Self:
        self._db = connect(self._path)
        self._write("UPDATE project SET time_updated = time_updated + 1")  # from now on there is a WAL
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def plant(self, count: int) -> list[tuple[Planted, Message]]:
        """Sessions that are broken, and for each the failed message that is not there yet."""
        patients = [broken_session(number, _REFUSED[number % len(_REFUSED)]) for number in range(count)]
        for planted, _ in patients:
            write_sqlite(planted, self._path)
        return patients

    def fail(self, session: str, error: Message) -> float:
        """A prompt and its refusal, a transaction for each write. Returns when the last one was committed."""
        now = self._now()
        asked, failed = (ascending("msg", now, count, self._rng) for count in (1, 2))
        user = {"role": "user", "time": {"created": now}, "agent": "build", "model": {}}
        assistant = {name: value for name, value in error.items() if name not in ("id", "sessionID", "error")}
        assistant |= {"time": {"created": now + 1}, "parentID": asked}
        self._insert(asked, session, now, user)
        self._insert(failed, session, now + 1, assistant)
        self._update(failed, session, {**assistant, "error": error["error"]})
        return time.monotonic()

    def lengthen(self, session: str, messages: int, parts: int) -> None:
        """Add answers with so many parts each to a session, of an hour ago."""
        start = self._now() - 3_600_000
        done = {"role": "assistant", "time": {"created": start, "completed": start + 1}, "finish": "stop"}
        text = json.dumps({"type": "text", "text": _PIECE * 100})
        self._db.execute("BEGIN IMMEDIATE")
        for number in range(messages):
            ms = start + number
            message = ascending("msg", ms, 0, self._rng)
            row = message, session, ms, ms, json.dumps(done)
            self._db.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
            rows = [(ascending("prt", ms, n, self._rng), message, session, ms, ms, text) for n in range(parts)]
            self._db.executemany("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._db.execute("COMMIT")

    def stream(self, session: str, seconds: float, per_second: int) -> int:
        """An answer that comes in pieces, each a transaction. Returns how many were written."""
        now = self._now()
        message, part = ascending("msg", now, 1, self._rng), ascending("prt", now, 2, self._rng)
        self._insert(message, session, now, {"role": "assistant", "time": {"created": now}})
        row = part, message, session, now, now, '{"type":"text","text":""}'
        self._write("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row, session, "{}")
        started, count = time.monotonic(), 0
        while time.monotonic() < started + seconds:
            count += 1
            data = json.dumps({"type": "text", "text": _PIECE * (count % 200)})
            self._write(_UPDATE.format("part"), (data, self._now(), part), session, data)
            time.sleep(max(started + count / per_second - time.monotonic(), 0))
        self._update(message, session, {"role": "assistant", "time": {"created": now, "completed": self._now()}})
        return count

    def pieces(self, sessions: Sequence[str]) -> Iterator[None]:
        """Answers in all of these sessions that come in together, a piece for each call, without end."""
        parts = [(session, self._begin(session)[1]) for session in sessions]
        for count in itertools.count():
            session, part = parts[count % len(parts)]
            self._piece(session, part, count // len(parts))
            yield

    def turns(self, sessions: Sequence[str], pieces: int) -> Iterator[None]:
        """A prompt and its answer in all of these sessions at once, each of so many pieces, one for each step."""
        begun = [(session, *self._begin(session, prompt=True)) for session in sessions]
        for count in range(pieces):
            for session, _, part, _ in begun:
                self._piece(session, part, count)
                yield
        for session, message, _, said in begun:
            times = {**said["time"], "completed": self._now()}
            self._update(message, session, {**said, "time": times, "finish": "stop"})
            yield

    def _begin(self, session: str, *, prompt: bool = False) -> tuple[str, str, dict[str, Any]]:
        """An answer without a word yet: the ids of message and part, and what the message says."""
        now = self._now()
        asked, message = (ascending("msg", now, count, self._rng) for count in (0, 1))
        said: dict[str, Any] = {"role": "assistant", "time": {"created": now}}
        if prompt:
            user = {"role": "user", "time": {"created": now - 1}, "agent": "build", "model": MODEL}
            self._insert(asked, session, now - 1, user)
            self._part(ascending("prt", now, 1, self._rng), asked, session, '{"type":"text","text":"go on"}')
            said |= {"parentID": asked, **MODEL}
        part = ascending("prt", now, 2, self._rng)
        self._insert(message, session, now, said)
        self._part(part, message, session, '{"type":"text","text":""}')
        return message, part, said

    def _part(self, part: str, message: str, session: str, data: str) -> None:
        now = self._now()
        row = part, message, session, now, now, data
        self._write("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row, session, "{}")

    def _piece(self, session: str, part: str, count: int) -> None:
        data = json.dumps({"type": "text", "text": _PIECE * (1 + count % 200)})
        self._write(_UPDATE.format("part"), (data, self._now(), part), session, data)

    def _insert(self, message: str, session: str, ms: int, data: dict[str, Any]) -> None:
        text = json.dumps(data)
        self._write("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (message, session, ms, ms, text), session, text)

    def _update(self, message: str, session: str, data: dict[str, Any]) -> None:
        text = json.dumps(data)
        self._write(_UPDATE.format("message"), (text, self._now(), message), session, text)

    def _write(self, statement: str, values: Sequence[Any] = (), session: str = "", event: str = "") -> None:
        """One transaction, with its event where the client keeps those."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(statement, values)
        if self._events and session:
            [[seq]] = self._db.execute(_SEQ, (session,)).fetchall()
            row = ascending("evt", self._now(), seq % 4096, self._rng), session, seq, "message.updated.1", event
            self._db.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", row)
        self._db.execute("COMMIT")

    def _now(self) -> int:
        return int(time.time() * 1000)
