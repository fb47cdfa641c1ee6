"""Each store in a folder, with a ledger beside it: what the client keeps there, and its own writes."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path

from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite import rows, schema
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from recoveryd.core.model import Failure, Part
from tests.support import transcript
from tests.support.build import Planted, SessionBuilder
from tests.support.database import NEW, SCHEMAS
from tests.support.long_sessions import spent
from tests.support.parts import api_error, compaction, text, tool
from tests.support.plant import dump, write_sqlite, write_tree
from tests.support.rollouts import THREAD, Rollout, message, threads
from tests.support.transcript import Transcript, call

EMPTY = "messages: text content blocks must be non-empty"
Records = dict[str, bytes]  # by the store's own keys


class Place(ABC):
    """A store under `folder` that `start` makes and `reset` takes back to what `save` saw."""

    name: str
    store: Store
    faults: tuple[str, ...] = ("one", "many")
    movable = False  # whether its client moves a session's file to another folder

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.saved = folder / "saved"
        self.state = self.home / "state"
        self.data = self.home / "data" / "opencode"

    def start(self) -> None:
        """An empty store and no ledger."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.state.mkdir(parents=True, mode=0o700)
        self._make()

    def save(self) -> None:
        """Remember all that is there, the ledger too."""
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.home, self.saved)

    def reset(self) -> None:
        """As it was at `save`, at the same path."""
        shutil.rmtree(self.home)
        shutil.copytree(self.saved, self.home)

    def plant(self, faults: str, *, seed: int = 7) -> str:
        """A session with so many faults ("one", "many"), refused a moment ago; its id."""
        session = SessionBuilder(int(time.time() * 1000) - 60_000, seed=seed)
        words = FAULTS[faults](session)
        session.failed("continue", api_error(words, 400))
        planted = session.planted()
        self.write_planted(planted)
        return planted.id

    def failure(self, session: str) -> Failure:
        """The refusal that the session is stuck on."""
        found = self.store.look(session).failure
        assert found is not None
        return found

    @abstractmethod
    def _make(self) -> None: ...

    @abstractmethod
    def write_planted(self, planted: Planted) -> None:
        """A whole session, as the client has it."""

    @abstractmethod
    def records(self) -> Records:
        """Everything that the client keeps of messages and parts, byte for byte."""

    @abstractmethod
    def write(self, key: str, words: str, patience: float = 5) -> bytes:
        """The client writes another text into a record, or makes it anew; the record as it is then.

        `patience`: seconds that it waits for a lock of ours.
        """

    @abstractmethod
    def key(self, part: Part) -> str:
        """The key of a part's record."""

    @abstractmethod
    def strays(self) -> list[str]:
        """What lies in the store and is nothing of the client's."""


class JsonPlace(Place):
    """The tree of OpenCode up to 1.1."""

    name = "json"
    faults = ("one", "many", "long")

    def _make(self) -> None:
        self.root = self.data / "storage"
        for folder in ("session", "message", "part"):
            (self.root / folder).mkdir(parents=True)
        self.store = OpencodeFiles(self.root)

    def write_planted(self, planted: Planted) -> None:
        write_tree(planted, self.root)

    def records(self) -> Records:
        found = [path for kind in ("message", "part") for path in (self.root / kind).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): path.read_bytes() for path in sorted(found)}

    def write(self, key: str, words: str, patience: float = 5) -> bytes:
        path = self.root / key
        try:
            said = json.loads(path.read_bytes())
        except FileNotFoundError:
            path.parent.mkdir(exist_ok=True)
            said = {"id": path.stem, "messageID": path.parent.name, "type": "text"}
        path.write_bytes(dump({**said, "text": words}))
        return path.read_bytes()

    def key(self, part: Part) -> str:
        return f"part/{part.message_id}/{part.id}.json"

    def strays(self) -> list[str]:
        return [str(path) for path in self.data.rglob("*") if path.is_file() and path.suffix != ".json"] + [
            str(path) for path in self.data.rglob(".*")
        ]


class SqlitePlace(Place):
    """The database of OpenCode from 1.2 on."""

    name = "sqlite"
    faults = ("one", "many", "long")
    version = NEW

    def _make(self) -> None:
        self.path = self.data / "opencode.db"
        self.path.parent.mkdir(parents=True)
        with closing(sqlite3.connect(self.path)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(SCHEMAS[self.version])
        self.store = OpencodeSqlite(self.path, busy_s=0.2)

    def write_planted(self, planted: Planted) -> None:
        write_sqlite(planted, self.path)

    def records(self) -> Records:
        with closing(sqlite3.connect(self.path, timeout=5)) as db:
            found = {}
            for table, columns in schema.COLUMNS.items():
                for row in db.execute(f"SELECT {', '.join(columns)} FROM {table}"):
                    found[f"{table}/{row[0]}"] = rows.row_image(dict(zip(columns, row, strict=True)))
            return found

    def write(self, key: str, words: str, patience: float = 5) -> bytes:
        _, identifier = key.split("/")
        with closing(sqlite3.connect(self.path, timeout=patience)) as db, db:
            row = db.execute("SELECT data FROM part WHERE id = ?", (identifier,)).fetchone()
            now = int(time.time() * 1000)
            if row is None:
                message, session = db.execute("SELECT id, session_id FROM message ORDER BY id LIMIT 1").fetchone()
                data = json.dumps({"type": "text", "text": words})
                values = (identifier, message, session, now, now, data)
                db.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", values)
            else:
                data = json.dumps({**json.loads(row[0]), "text": words})
                db.execute("UPDATE part SET data = ?, time_updated = ? WHERE id = ?", (data, now, identifier))
        return self.records()[key]

    def key(self, part: Part) -> str:
        return f"part/{part.id}"

    def strays(self) -> list[str]:
        own = {self.path.name + suffix for suffix in ("", "-wal", "-shm")}
        return [str(path) for path in self.data.rglob("*") if path.name not in own]


class KiloPlace(SqlitePlace):
    """The database of Kilo, which is OpenCode's under another name."""

    name = "kilo"

    def _make(self) -> None:
        self.data = self.home / "data" / "kilo"
        super()._make()
        self.path = self.path.rename(self.path.with_name("kilo.db"))
        self.store = OpencodeSqlite(self.path, busy_s=0.2, client="kilo", title="Kilo")


class RolloutPlace(Place):
    """The threads of Codex."""

    name = "codex"

    def _make(self) -> None:
        self.codex = self.home / "codex"
        (self.codex / "sessions").mkdir(parents=True)
        self.store = threads(self.codex)

    def plant(self, faults: str, *, seed: int = 7) -> str:
        rollout = Rollout(self.codex, ms=int(time.time() * 1000) - 60_000)
        for _ in range({"one": 1, "many": 4}[faults]):
            rollout.healthy()
        rollout.asks("continue")
        rollout.is_refused()
        return rollout.thread

    def write_planted(self, planted: Planted) -> None:
        raise NotImplementedError  # a session of OpenCode

    def records(self) -> Records:
        found: Records = {}
        for path in (self.codex / "sessions").rglob("*.jsonl"):
            at = 0
            for line in path.read_bytes().splitlines(keepends=True):
                found[f"line/{THREAD}/{at:013d}"] = line.rstrip(b"\n")
                at += len(line)
        return found

    def write(self, key: str, words: str, patience: float = 5) -> bytes:
        """Some other program puts an answer with these words into the line; where those are blank, reasoning."""
        [path] = (self.codex / "sessions").rglob("*.jsonl")
        at = int(key.rpartition("/")[2])
        old = self.records()[key]
        summary = [{"type": "summary_text", "text": words}]
        faulty = {"type": "reasoning", "summary": summary, "encrypted_content": "gAAAA"}
        item = message("assistant", words) if words.strip() else faulty
        line = json.dumps({"type": "response_item", "payload": item}).encode()
        new = line + b" " * (len(old) - len(line))
        assert len(new) == len(old)
        with path.open("r+b") as file:
            file.seek(at)
            file.write(new)
        return new

    def key(self, part: Part) -> str:
        return f"line/{THREAD}/{part.id}"

    def strays(self) -> list[str]:
        return [str(p) for p in self.codex.rglob("*") if p.is_file() and p.suffix != ".jsonl"]


class TranscriptPlace(Place):
    """The transcripts of Claude Code."""

    name = "claude_code"
    movable = True

    def _make(self) -> None:
        self.projects = self.home / ".claude" / "projects"
        self.projects.mkdir(parents=True)
        self.store = ClaudeCodeTranscripts(self.projects)

    def plant(self, faults: str, *, seed: int = 7) -> str:
        session = Transcript(start=int(time.time() * 1000) - 60_000)
        words = EMPTY
        if faults == "one":
            session.user("  ")
            session.assistant(transcript.text("done"))
        for number in range(4 if faults == "many" else 0):
            words = "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            session.user(f"question {number}")
            session.assistant(transcript.text("I look"), call(call_id=f"call:{number}"))
            session.result(f"call:{number}")
            session.assistant(transcript.text("done"))
        session.user("continue")
        session.refused(words)
        session.write(self.projects)
        return session.session

    def write_planted(self, planted: Planted) -> None:
        raise NotImplementedError  # a session of OpenCode

    def records(self) -> Records:
        found: Records = {}
        for path in self.projects.rglob("[!.]*.jsonl"):
            for number, line in enumerate(path.read_bytes().split(b"\n")[:-1]):
                found[f"{path.relative_to(self.projects)}#{json.loads(line).get('uuid', number)}"] = line
        return found

    def write(self, key: str, words: str, patience: float = 5) -> bytes:
        """Some other program puts these words into the line; where those are blank, what is refused again."""
        file, uuid = key.split("#")
        path = self.projects / file
        lines = path.read_bytes().split(b"\n")
        at = next(n for n, line in enumerate(lines) if line and json.loads(line).get("uuid") == uuid)
        said = json.loads(lines[at])
        faulty = [call(call_id="call:again")] if said["type"] == "assistant" else words
        said["message"]["content"] = [transcript.text(words)] if words.strip() else faulty
        lines[at] = transcript.dump(said)[:-1]
        path.write_bytes(b"\n".join(lines))
        return lines[at]

    def key(self, part: Part) -> str:
        return f"{next(iter(self.records())).partition('#')[0]}#{part.message_id}"

    def move(self, session: str, project: str = "-other") -> None:
        """As its client does by `/cd`."""
        [file] = self.projects.glob(f"*/{session}.jsonl")
        (self.projects / project).mkdir(exist_ok=True)
        file.rename(self.projects / project / file.name)

    def strays(self) -> list[str]:
        found = (path for path in (self.home / ".claude").rglob("*") if path.is_file())
        return [str(path) for path in found if path.suffix != ".jsonl" or path.name.startswith(".")]


def _one(session: SessionBuilder) -> str:
    """One record is changed."""
    session.user("go")
    session.assistant(text(" "))
    return EMPTY


def _many(session: SessionBuilder) -> str:
    """Records are changed, added and taken out, and one gets a folder of its own."""
    session.user()
    session.assistant("hello")
    session.user("go")
    session.assistant(tool(), text("behind"))
    session.user("next")
    session.assistant(text(" "), text("said"))
    session.user("more")
    session.assistant("half \ud800")
    session.user("last")
    session.assistant(text(" "))
    return EMPTY


def _long(session: SessionBuilder) -> str:
    """Messages are added in the midst of others, one is changed, and a part goes."""
    session.user("go")
    for turn in range(6):
        session.assistant(f"answer {turn}. " + "so it is. " * 200)
        session.user(f"and then, {turn}?")
        if turn == 3:
            marker = session.user(compaction())
            session.assistant(error=api_error("no credit", 400), summary=True, parentID=marker["id"])
    session.assistant("that is all")
    spent(session.planted(), base=100)
    return "prompt is too long: 3500 tokens > 3000 maximum"


FAULTS = {"one": _one, "many": _many, "long": _long}
_ALL: tuple[type[Place], ...] = (JsonPlace, SqlitePlace, KiloPlace, RolloutPlace, TranscriptPlace)
PLACES: dict[str, type[Place]] = {place.name: place for place in _ALL}
