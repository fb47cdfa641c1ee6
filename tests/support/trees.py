"""Stuck sessions on the disk of a test, and all that a recovery of them needs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recoveryd.clients import Config
from recoveryd.clients.client import Server
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.core.model import Event, Failure
from recoveryd.diagnose import Context
from recoveryd.heal.recovery import Recovery
from recoveryd.ledger.ledger import Ledger
from recoveryd.tell.callbacks import Callbacks
from tests.support.build import BINDS, SessionBuilder
from tests.support.cases import case
from tests.support.parts import Part, api_error, compaction, reasoning, subtask, text, tool
from tests.support.plant import dump, write_tree

MISSING = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message."
)
EMPTY = "messages: text content blocks must be non-empty"
SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
Turns = Callable[[SessionBuilder], object]
Files = dict[str, tuple[bytes, int]]


def behind_a_call(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant(tool(), text("behind"))


def blank_answer(session: SessionBuilder) -> None:
    session.user("go")
    session.assistant(reasoning("first"), text(" "))
    session.user("next")
    session.assistant(reasoning("second"), text("fine"))


class Tree:
    """A JSON store below a folder. What is planted was made a few seconds ago, and failed just now."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "opencode" / "storage"
        for name in ("message", "part", "session"):
            (self.root / name).mkdir(parents=True)
        self.store = OpencodeFiles(self.root)
        self._builders: dict[str, SessionBuilder] = {}

    def stuck(
        self, turns: Turns = behind_a_call, words: str = MISSING, title: str = "My session", **fields: Any
    ) -> str:
        """A session whose last prompt was refused with these words."""
        fields.setdefault("model", BINDS)
        session = SessionBuilder(int(time.time() * 1000) - 60_000, title=title, **fields)
        turns(session)
        self._builders[session.session["id"]] = session
        return self.refused(session.session["id"], words)

    def refused(self, session: str, words: str = MISSING, folder: str = "", **error: Any) -> str:
        """The next prompt, refused; in another `folder` than that of the session."""
        made = self._builders[session]
        failed = made.failed("continue", api_error(words, 400, **error))
        failed["path"] = {"cwd": folder or made.directory, "root": "/"}
        return self._write(made)

    def answered(self, session: str, **model: Any) -> str:
        """The next prompt, answered, and not before now; `model`: by another one than before (providerID, modelID)."""
        made = self._builders[session]
        asked = made.user("continue")
        asked["model"] = model or asked["model"]
        answer = made.assistant("fine", **model)
        now = int(time.time() * 1000) + 5
        answer["time"] = {"created": now, "completed": now + 1}
        return self._write(made)

    def compacted(self, session: str) -> str:
        """What is stored of a compaction that its user asked for (`/compact`)."""
        made = self._builders[session]
        asked = made.user(compaction())
        made.assistant("summary: all of it", parentID=asked["id"], summary=True, mode="compaction")
        return self._write(made)

    def commanded(self, session: str, by_agent: bool = False) -> str:
        """What is stored of a command that the user runs in the session (`!ls`), or has an agent do (`/review`)."""
        made = self._builders[session]
        if by_agent:
            made.user(subtask())
            made.assistant(tool("task", {"prompt": "look around"}, "all is well"), finish="tool-calls", bare=True)
            return self._write(made)
        made.user("The following tool was executed by the user")
        made.assistant(tool(output="a file"), finish=None, bare=True)
        return self._write(made)

    def asked(self, turns: Turns, before_s: int = 60, ago_s: int = 0) -> str:
        """A session whose last prompt, of `ago_s` seconds ago, nothing has come of; its turns began `before_s` ago."""
        now = int(time.time() * 1000) - ago_s * 1000
        session = SessionBuilder(now - before_s * 1000, title="My session", model=BINDS)
        turns(session)
        session.user("continue")["time"]["created"] = now
        self._builders[session.session["id"]] = session
        return self._write(session)

    def keep(self, session: SessionBuilder) -> str:
        """Write what was built so far."""
        self._builders[session.session["id"]] = session
        return self._write(session)

    def made(self, session: str) -> SessionBuilder:
        """What a session is built by."""
        return self._builders[session]

    def ended(self, turns: Turns, title: str = "My session") -> str:
        """A session whose turns were never refused, written just now."""
        session = SessionBuilder(int(time.time() * 1000) - 60_000, title=title)
        turns(session)
        self._builders[session.session["id"]] = session
        return self._write(session)

    def began(self, session: str, subagent: str) -> None:
        """The first has the second as its subagent."""
        write_over(next((self.root / "session").rglob(f"{subagent}.json")), parentID=session)

    def prompted(self, session: str, part: Part | str = "continue") -> str:
        """The next prompt, as the client stores it, before anything is answered."""
        made = self._builders[session]
        made.user(part)
        return self._write(made)

    def running(self, session: str) -> str:
        """The next prompt, with an answer that has begun and is not finished."""
        made = self._builders[session]
        made.user("continue")
        made.assistant("half an ans", completed=False)
        return self._write(made)

    def begun(self, session: str) -> str:
        """An answer to the last prompt that the client made, and put nothing into."""
        made = self._builders[session]
        made.assistant(completed=False)["time"]["created"] = int(time.time() * 1000)
        return self._write(made)

    def _write(self, made: SessionBuilder) -> str:
        """Only what is not there yet: what was repaired stays so."""
        planted = made.planted()
        there = {path: path.read_bytes() for path in self.root.rglob("*.json") if path.is_file()}
        write_tree(planted, self.root)
        for path, content in there.items():
            path.write_bytes(content)
        return planted.id

    def failure(self, session: str) -> Failure:
        found = self.store.look(session).failure
        assert found is not None
        return found

    def part(self, session: str, kind: str, number: int = 0) -> Path:
        """The file of a part of this type."""
        parts = [p for m in self.store.load(session).messages for p in m.parts if p.type == kind]
        return self.root / "part" / parts[number].message_id / f"{parts[number].id}.json"

    def files(self) -> Files:
        return {
            str(path.relative_to(self.root)): (path.read_bytes(), path.stat().st_mode)
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


def write_over(path: Path, **fields: Any) -> None:
    """As the client does, while it runs."""
    path.write_bytes(dump({**json.loads(path.read_bytes()), **fields}))


class Bench:
    """A ledger, a configuration and the recovery that uses them."""

    def __init__(self, folder: Path, callbacks: Callbacks | None = None, **config: Any) -> None:
        self.state = folder / "state"
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.ledger = Ledger(self.state / "ledger.db")
        self.recovery = Recovery(Context(self.ledger, Config(**config), self.state), callbacks=callbacks)

    def listens(self, server: Server) -> None:
        """From now on `server` is the program that runs."""
        for client in self.recovery.context.clients.all():
            vars(client).update(server=server)

    def attempt(self, tree: Tree, session: str) -> Event:
        return self.recovery.attempt(case(tree.store, tree.failure(session))).event


def told(bench: Bench, recovery: str) -> bool | None:
    """Whether the ledger was told that images of a recovery hold what exists nowhere else; None: it was not told."""
    [(sole,)] = bench.ledger.file.read("SELECT sole FROM recovery WHERE id = ?", (recovery,))
    return None if sole is None else bool(sole)
